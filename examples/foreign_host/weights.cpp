#include "weights.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace {

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// 1 sign, 4 exponent (bias 7) and 3 mantissa bits; no infinities.
float from_e4m3(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return std::nanf("");
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 128) != 0 ? -magnitude : magnitude;
}

template <class Code, class Decode>
std::vector<float> decode(const std::string& bytes, Decode to_float) {
  std::vector<float> values(bytes.size() / sizeof(Code));
  for (size_t i = 0; i < values.size(); ++i) {
    Code code;
    std::memcpy(&code, bytes.data() + i * sizeof(Code), sizeof(Code));
    values[i] = to_float(code);
  }
  return values;
}

std::vector<float> to_floats(const std::string& bytes, const std::string& dtype) {
  if (dtype == "F32") return decode<float>(bytes, [](float value) { return value; });
  if (dtype == "BF16") return decode<uint16_t>(bytes, from_bf16);
  if (dtype == "F8_E4M3") return decode<uint8_t>(bytes, from_e4m3);
  throw std::runtime_error("tensors of type " + dtype + " are not supported");
}

// A safetensors file is the length of its header (8 bytes), the header as JSON, and the bytes of the tensors.
void read_file(const std::filesystem::path& path, std::map<std::string, Matrix>& weights) {
  std::ifstream file(path, std::ios::binary);
  uint64_t header_size = 0;
  file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  if (!file || header_size > std::filesystem::file_size(path)) throw std::runtime_error(path.string() + ": no header");
  std::string header(header_size, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_size));
  const nlohmann::json entries = nlohmann::json::parse(header);
  for (const auto& [name, entry] : entries.items()) {
    if (name == "__metadata__") continue;
    const auto shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
    std::string bytes(offsets.at(1) - offsets.at(0), '\0');
    file.seekg(static_cast<std::streamoff>(sizeof header_size + header_size + offsets[0]));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file) throw std::runtime_error(path.string() + ": ends before tensor " + name);
    Matrix matrix{.rows = shape.size() == 2 ? shape[0] : 1,
                  .columns = shape.back(),
                  .values = to_floats(bytes, entry.at("dtype").get<std::string>())};
    if (static_cast<int64_t>(matrix.values.size()) != matrix.rows * matrix.columns) {
      throw std::runtime_error(path.string() + ": shape and size of tensor " + name + " differ");
    }
    weights.emplace(name, std::move(matrix));
  }
}

}  // namespace

std::map<std::string, Matrix> read_weights(const std::filesystem::path& folder) {
  std::map<std::string, Matrix> weights;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") read_file(entry.path(), weights);
  }
  for (auto& [name, matrix] : weights) {
    const auto scale = weights.find(name + "_scale");
    if (scale == weights.end()) continue;
    for (int64_t row = 0; row < matrix.rows; ++row) {
      for (int64_t column = 0; column < matrix.columns; ++column) {
        matrix.values[static_cast<size_t>(row * matrix.columns + column)] *= scale->second.values.at(row);
      }
    }
  }
  return weights;
}
