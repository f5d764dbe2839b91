#include "blockdraft/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_reader.h"
#include "checkpoint/safetensors_writer.h"
#include "nn/quantize.h"
#include "nn/quantize_int8.h"
#include "ops/cpu/decode.h"
#include "tensor/int8_pack.h"

namespace blockdraft {
namespace {

namespace fs = std::filesystem;

// A tensor of the new file, and how its bytes are made.
struct Output {
  TensorSpec spec;
  std::function<Status(SafetensorsWriter&)> write;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

WeightView view_of(const StoredTensor& tensor) { return {tensor.data, tensor.dtype, tensor.shape[0], tensor.shape[1]}; }

// Calls use(row values) for each row, in order; ends at the first error.
template <class Use>
Status for_each_row(const WeightView& weight, const Use& use) {
  std::vector<float> row(static_cast<size_t>(weight.in_features));
  for (int64_t n = 0; n < weight.out_features; ++n) {
    cpu::decode_row(weight, n, row.data());
    BLOCKDRAFT_TRY(use(std::span<const float>(row)));
  }
  return {};
}

// A format in the words of compressed-tensors.
struct Scheme {
  const char* format;
  int bits;
  const char* type;
  const char* strategy;
  int64_t group;  // columns that share a scale; 0: all of a row
};

Scheme scheme_of(QuantizedFormat format) {
  switch (format) {
    case QuantizedFormat::fp8:
      break;
    case QuantizedFormat::nvfp4:
      return {"nvfp4-pack-quantized", 4, "float", "tensor_group", kScaleGroup};
    case QuantizedFormat::int8:
      return {"int-quantized", 8, "int", "group", kInt8Group};
  }
  return {"float-quantized", 8, "float", "channel", 0};
}

class FolderQuantizer {
 public:
  FolderQuantizer(const Checkpoint& checkpoint, QuantizedFormat format) : checkpoint_(checkpoint), format_(format) {}

  // What the new file holds. Reads all weights once, so that nothing is written for a folder that is refused.
  Status plan() {
    for (const std::string& name : checkpoint_.names()) {
      const StoredTensor& tensor = *checkpoint_.find(name);
      if (is_quantizable(name) && tensor.shape.size() == 2) {
        BLOCKDRAFT_TRY(plan_quantized(name, tensor));
      } else {
        plan_copy(name, tensor);
      }
    }
    if (!has_quantized_) {
      return make_error(Code::unsupported, "{}: no linear weight to quantize, expected tensors NAME_proj.weight",
                        checkpoint_.folder().string());
    }
    // The largest elements first: each tensor is then aligned to its own.
    std::ranges::stable_sort(outputs_, std::greater<>(),
                             [](const Output& output) { return size_of(output.spec.dtype); });
    return {};
  }

  Status write(const fs::path& path) const {
    std::vector<TensorSpec> specs;
    for (const Output& output : outputs_) specs.push_back(output.spec);
    BLOCKDRAFT_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, specs));
    for (const Output& output : outputs_) BLOCKDRAFT_TRY(output.write(writer));
    return writer.finish();
  }

  // In the words of compressed-tensors.
  Json quantization_config() const {
    const Scheme scheme = scheme_of(format_);
    Json weights = {{"num_bits", scheme.bits}, {"type", scheme.type}, {"symmetric", true}, {"dynamic", false}};
    weights["strategy"] = scheme.strategy;
    if (scheme.group > 0) weights["group_size"] = scheme.group;
    const Json group = {{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}};
    return {{"quant_method", "compressed-tensors"},
            {"format", scheme.format},
            {"quantization_status", "compressed"},
            {"ignore", ignored_modules_},
            {"config_groups", {{"group_0", group}}}};
  }

 private:
  void plan_copy(const std::string& name, const StoredTensor& tensor) {
    constexpr std::string_view kWeight = ".weight";
    if (name.ends_with(kWeight) && tensor.shape.size() == 2) {
      ignored_modules_.push_back(name.substr(0, name.size() - kWeight.size()));
    }
    outputs_.push_back({{name, tensor.dtype, tensor.shape}, [&tensor](SafetensorsWriter& writer) {
                          return writer.append({tensor.data, tensor.size_bytes});
                        }});
  }

  Status plan_quantized(const std::string& name, const StoredTensor& tensor) {
    if (tensor.dtype != DType::f32 && tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) {
      return make_error(Code::unsupported, "{}: tensor '{}' has type {}, expected BF16, F16 or F32 to quantize from",
                        checkpoint_.file_of(name), name, name_of(tensor.dtype));
    }
    const WeightView weight = view_of(tensor);
    BLOCKDRAFT_ASSIGN(const float largest, largest_of(name, weight));
    has_quantized_ = true;
    if (format_ == QuantizedFormat::fp8) {
      plan_fp8(name, weight);
      return {};
    }
    const bool int8 = format_ == QuantizedFormat::int8;
    const int64_t group = scheme_of(format_).group;
    if (weight.in_features % group != 0) {
      return make_error(Code::unsupported, "{}: tensor '{}' has rows of {} elements, expected a multiple of {} for {}",
                        checkpoint_.file_of(name), name, weight.in_features, group, int8 ? "int8" : "NVFP4");
    }
    if (int8) {
      plan_int8(name, weight);
      return {};
    }
    plan_nvfp4(name, weight, nvfp4_divisor(largest));
    return {};
  }

  Result<float> largest_of(const std::string& name, const WeightView& weight) const {
    float largest = 0.0f;
    BLOCKDRAFT_TRY(for_each_row(weight, [&](std::span<const float> row) -> Status {
      if (!std::ranges::all_of(row, [](float value) { return std::isfinite(value); })) {
        return make_error(Code::numeric, "{}: tensor '{}' holds a value that is not finite", checkpoint_.file_of(name),
                          name);
      }
      largest = std::max(largest, largest_magnitude(row));
      return {};
    }));
    return largest;
  }

  void plan_fp8(const std::string& name, const WeightView& weight) {
    outputs_.push_back(
        {{name, DType::f8_e4m3, {weight.out_features, weight.in_features}}, [weight](SafetensorsWriter& writer) {
           std::vector<uint8_t> codes(static_cast<size_t>(weight.in_features));
           return for_each_row(weight, [&](std::span<const float> row) {
             quantize_row_fp8(row, fp8_row_scale(row), codes);
             return writer.append(bytes_of(codes));
           });
         }});
    outputs_.push_back({{name + "_scale", DType::f32, {weight.out_features, 1}}, [weight](SafetensorsWriter& writer) {
                          return for_each_row(weight, [&](std::span<const float> row) {
                            const float scale = fp8_row_scale(row);
                            return writer.append(std::as_bytes(std::span(&scale, 1)));
                          });
                        }});
  }

  void plan_nvfp4(const std::string& name, const WeightView& weight, float divisor) {
    const auto columns = static_cast<size_t>(weight.in_features);
    const auto each_row = [=](SafetensorsWriter& writer, bool scales) {
      std::vector<uint8_t> packed(columns / 2);
      std::vector<uint8_t> group_scales(columns / kScaleGroup);
      return for_each_row(weight, [&](std::span<const float> row) {
        quantize_row_nvfp4(row, divisor, packed, group_scales);
        return writer.append(bytes_of(scales ? group_scales : packed));
      });
    };
    outputs_.push_back({{name + "_packed", DType::u8, {weight.out_features, weight.in_features / 2}},
                        [=](SafetensorsWriter& writer) { return each_row(writer, false); }});
    outputs_.push_back({{name + "_scale", DType::f8_e4m3, {weight.out_features, weight.in_features / kScaleGroup}},
                        [=](SafetensorsWriter& writer) { return each_row(writer, true); }});
    outputs_.push_back({{name + "_global_scale", DType::f32, {1}}, [divisor](SafetensorsWriter& writer) {
                          return writer.append(std::as_bytes(std::span(&divisor, 1)));
                        }});
  }

  void plan_int8(const std::string& name, const WeightView& weight) {
    const auto columns = static_cast<size_t>(weight.in_features);
    const auto each_row = [=](SafetensorsWriter& writer, bool scales) {
      std::vector<int8_t> codes(columns);
      std::vector<uint16_t> group_scales(columns / kInt8Group);
      return for_each_row(weight, [&](std::span<const float> row) {
        quantize_row_int8(row, codes, group_scales);
        return writer.append(scales ? bytes_of(group_scales) : bytes_of(codes));
      });
    };
    outputs_.push_back({{name, DType::i8, {weight.out_features, weight.in_features}},
                        [=](SafetensorsWriter& writer) { return each_row(writer, false); }});
    outputs_.push_back({{name + "_scale", DType::f16, {weight.out_features, weight.in_features / kInt8Group}},
                        [=](SafetensorsWriter& writer) { return each_row(writer, true); }});
  }

  const Checkpoint& checkpoint_;
  QuantizedFormat format_;
  bool has_quantized_ = false;
  std::vector<Output> outputs_;
  std::vector<std::string> ignored_modules_;
};

Error io_error(const fs::path& path, const std::error_code& error) {
  return make_error(Code::io_error, "{}: {}", path.string(), error.message());
}

// Tokenizer, generation settings, templates: all but the config and what belongs to the weights.
Status copy_companions(const fs::path& in, const fs::path& out) {
  constexpr std::array kExtensions{".json", ".txt", ".model", ".jinja"};
  std::error_code error;
  for (fs::directory_iterator entry(in, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const bool other = path.filename() == "config.json" || path.filename() == "model.safetensors.index.json" ||
                       std::ranges::find(kExtensions, path.extension().string()) == kExtensions.end();
    if (other || !entry->is_regular_file(error)) continue;
    fs::copy_file(path, out / path.filename(), error);
    if (error) return io_error(path, error);
  }
  if (error) return io_error(in, error);
  return {};
}

Status write_config(const fs::path& path, const Json& config) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << config.dump(2) << '\n';
  file.close();
  if (!file) return make_error(Code::io_error, "{}: cannot be written", path.string());
  return {};
}

// A folder under a temporary name, removed unless it is moved to its own.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(fs::path folder) : folder_(std::move(folder)) { partial_ += ".partial"; }
  FolderInTheMaking(const FolderInTheMaking&) = delete;
  FolderInTheMaking& operator=(const FolderInTheMaking&) = delete;
  ~FolderInTheMaking() {
    std::error_code ignored;
    if (created_) fs::remove_all(partial_, ignored);
  }

  const fs::path& path() const { return partial_; }

  Status create() {
    std::error_code error;
    for (const fs::path& path : {folder_, partial_}) {
      if (fs::exists(fs::symlink_status(path, error))) {
        return make_error(Code::invalid_argument, "{}: exists already, expected a folder to be made", path.string());
      }
    }
    fs::create_directories(partial_, error);
    if (error) return io_error(partial_, error);
    created_ = true;
    return {};
  }

  Status complete() {
    std::error_code error;
    fs::rename(partial_, folder_, error);
    if (error) return io_error(folder_, error);
    created_ = false;
    return {};
  }

 private:
  fs::path folder_;
  fs::path partial_ = folder_;
  bool created_ = false;
};

// "some/folder/" and "some/folder" are the same folder, and ".partial" goes behind its name.
fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

}  // namespace

std::optional<QuantizedFormat> quantized_format_from_name(std::string_view name) {
  if (name == "fp8") return QuantizedFormat::fp8;
  if (name == "nvfp4") return QuantizedFormat::nvfp4;
  if (name == "int8") return QuantizedFormat::int8;
  return std::nullopt;
}

Status quantize_folder(const fs::path& in, const fs::path& out, QuantizedFormat format) {
  BLOCKDRAFT_ASSIGN(Json config, read_config_json(in));
  if (config.contains("quantization_config")) {
    return make_error(Code::unsupported, "{}: has a quantization_config, expected a folder that is not quantized",
                      (in / "config.json").string());
  }
  BLOCKDRAFT_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(in));
  FolderInTheMaking folder(without_trailing_slash(out));
  BLOCKDRAFT_TRY(folder.create());
  FolderQuantizer quantizer(checkpoint, format);
  BLOCKDRAFT_TRY(quantizer.plan());
  config["quantization_config"] = quantizer.quantization_config();
  BLOCKDRAFT_TRY(quantizer.write(folder.path() / "model.safetensors"));
  BLOCKDRAFT_TRY(write_config(folder.path() / "config.json", config));
  BLOCKDRAFT_TRY(copy_companions(in, folder.path()));
  return folder.complete();
}

}  // namespace blockdraft
