// The matrices and vectors of a model folder as plain numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace blockdraft::test {

struct NaiveMatrix {
  int64_t rows = 0;
  int64_t columns = 0;        // of a vector 1
  std::vector<float> values;  // [rows, columns]

  const float* row(int64_t index) const { return values.data() + index * columns; }
};

// By name, codes times the scales of their rows; the tensors of scales are there, too.
std::map<std::string, NaiveMatrix> naive_weights(const std::filesystem::path& folder);

// y = W x.
std::vector<double> naive_product(const NaiveMatrix& weight, const std::vector<double>& x);

}  // namespace blockdraft::test
