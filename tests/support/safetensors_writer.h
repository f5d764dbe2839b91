// Writes safetensors files for tests: well-formed ones from a list of tensors, malformed ones from a raw header.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/temp_dir.h"
#include "tensor/codec.h"

namespace blockdraft {

struct TensorToWrite {
  std::string name;
  std::string dtype;  // as in the header: "F32", "BF16", "F8_E4M3", ...
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian elements
};

// The values are stored as they lie in memory: for F32 from float, F64 from double, I64 from int64_t, U8 and F8_E4M3
// from uint8_t (codes), F16 and BF16 from uint16_t (bit patterns), ...
template <class T>
TensorToWrite raw_tensor(std::string name, std::string dtype, std::vector<int64_t> shape,
                         const std::vector<T>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return {std::move(name), std::move(dtype), std::move(shape), std::move(bytes)};
}

inline TensorToWrite f32_tensor(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  return raw_tensor(std::move(name), "F32", std::move(shape), values);
}

// Values rounded to nearest even.
inline TensorToWrite bf16_tensor(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(bf16_from_float(value));
  return raw_tensor(std::move(name), "BF16", std::move(shape), bits);
}

inline std::vector<float> values_of_bf16(const TensorToWrite& tensor) {
  std::vector<float> values;
  for (size_t i = 0; i < tensor.bytes.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, &tensor.bytes[i], sizeof(bits));
    values.push_back(float_from_bf16(bits));
  }
  return values;
}

// Of values that BF16 holds; what is below the smallest normal number of F16 becomes 0.
inline TensorToWrite f16_tensor(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  std::vector<uint16_t> codes;
  for (const float value : values) {
    const uint32_t bits = bf16_from_float(value);
    const uint32_t exponent = bits >> 7 & 0xffu;
    const uint32_t magnitude = exponent < 113 ? 0 : (exponent - 112) << 10 | (bits & 0x7fu) << 3;
    codes.push_back(static_cast<uint16_t>((bits & 0x8000u) | magnitude));
  }
  return raw_tensor(std::move(name), "F16", std::move(shape), codes);
}

inline TensorToWrite fp8_tensor(std::string name, std::vector<int64_t> shape, const std::vector<uint8_t>& codes) {
  return raw_tensor(std::move(name), "F8_E4M3", std::move(shape), codes);
}

// Header length, header, data: whatever they are.
inline std::string safetensors_from_header(std::string_view header, std::string_view data = {}) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xffu);
  return bytes.append(header).append(data);
}

// The tensors lie in the file in the order of the list, each directly after the one before.
inline std::string safetensors_from(const std::vector<TensorToWrite>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const TensorToWrite& tensor : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", std::vector<size_t>{begin, data.size()}}};
  }
  return safetensors_from_header(header.dump(), data);
}

inline void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors) {
  write_file(path, safetensors_from(tensors));
}

// model.safetensors.index.json: tensor name to file name of its shard.
inline void write_shard_index(const std::filesystem::path& folder,
                              const std::map<std::string, std::string>& shard_of_tensor) {
  const nlohmann::json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", shard_of_tensor}};
  write_file(folder / "model.safetensors.index.json", index.dump(1));
}

}  // namespace blockdraft
