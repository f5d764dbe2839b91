// Model files of the foreign engine, turned into float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;  // [rows, columns], row-major

  const float* row(int64_t index) const { return values.data() + index * columns; }
};

// All tensors of all .safetensors files in `folder`. A tensor of one dimension is a matrix of one row. FP8 weights are
// multiplied by their row scales (NAME.weight_scale), which are in the map too.
// Throws std::runtime_error for what it cannot read.
std::map<std::string, Matrix> read_weights(const std::filesystem::path& folder);
