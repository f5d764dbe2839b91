// Model folders of any size that hold their config and the headers of their weights, as the beginning of a download
// does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace blockdraft {

struct HeaderTensor {
  std::string name;
  std::string dtype;  // as in the header
  std::vector<int64_t> shape;
};

// The tensors of a drafter with this config, in BF16, by spec 3.1 to 3.3; DeepSpec's files with their own tables.
std::vector<HeaderTensor> drafter_tensors(const nlohmann::json& config);
// Of a dense target.
std::vector<HeaderTensor> target_tensors(const nlohmann::json& config);

// How linear weights of layers and fc.weight are stored (spec 3.5), the scales of activations included.
enum class HeaderFormat { bf16, fp8_tensor, fp8_row, fp8_block, nvfp4_modelopt, nvfp4_compressed_tensors };
std::vector<HeaderTensor> stored_as(HeaderFormat format, const std::vector<HeaderTensor>& tensors);

int64_t data_bytes(const std::vector<HeaderTensor>& tensors);

// config.json and model.safetensors, the latter without data.
void write_header_only(const std::filesystem::path& folder, const nlohmann::json& config,
                       const std::vector<HeaderTensor>& tensors);

}  // namespace blockdraft
