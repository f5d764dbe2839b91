#include "nn/weight_formats.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "tensor/weight_view.h"

namespace blockdraft {
namespace {

constexpr const char* kMultiplier = "_scale_2";    // of ModelOpt
constexpr const char* kDivisor = "_global_scale";  // of compressed-tensors
constexpr const char* kPacked = "_packed";         // of compressed-tensors
constexpr const char* kScale = "_scale";
constexpr const char* kScaleInverse = "_scale_inv";

// Names that scales of the activations going into a weight have; none for a parameter.
std::vector<std::string> activation_scales(const std::string& name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.ends_with(kWeight)) return {};
  const std::string module = name.substr(0, name.size() - kWeight.size());
  return {module + ".input_scale", module + ".input_global_scale"};
}

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const std::string& name) : checkpoint_(checkpoint), name_(name) {}

  Result<WeightTensors> find() const {
    BLOCKDRAFT_TRY(refuse_both("", kPacked));
    BLOCKDRAFT_TRY(refuse_both(kScale, kScaleInverse));
    BLOCKDRAFT_TRY(refuse_both(kMultiplier, kDivisor));
    if (has(kPacked)) return packed();
    BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_.require(name_));
    switch (tensor->dtype) {
      case DType::f32:
      case DType::f16:
      case DType::bf16:
        return unscaled();
      case DType::f8_e4m3:
        return fp8();
      case DType::u8:
        return nvfp4("", kMultiplier, kDivisor);
      case DType::i8:
        return int8();
      default:
        return make_error(Code::unsupported,
                          "{}: tensor '{}' has type {}, expected BF16, F16, F32, F8_E4M3, I8 or U8 (packed NVFP4)",
                          file(), name_, name_of(tensor->dtype));
    }
  }

 private:
  bool has(const char* suffix) const { return checkpoint_.find(name_ + suffix) != nullptr; }
  DType type_of(const char* suffix) const { return checkpoint_.find(name_ + suffix)->dtype; }
  std::string file() const { return checkpoint_.file_of(has("") ? name_ : name_ + kPacked); }

  Status refuse_both(const char* one, const char* other) const {
    if (!has(one) || !has(other)) return {};
    return make_error(Code::mismatch, "{}: both '{}{}' and '{}{}' are there, expected one of them",
                      checkpoint_.file_of(name_ + one), name_, one, name_, other);
  }

  // Tensors of another format: what they mean beside this one cannot be guessed.
  Status refuse(const char* suffix, const char* format) const {
    if (!has(suffix)) return {};
    return make_error(Code::mismatch, "{}: '{}{}' is there, but '{}' is {}, which has no such scale",
                      checkpoint_.file_of(name_ + suffix), name_, suffix, name_, format);
  }

  Status expect(const char* suffix, const char* format) const {
    if (has(suffix)) return {};
    return make_error(Code::not_found, "{}: '{}' is {} and has no '{}{}'", file(), name_, format, name_, suffix);
  }

  Status expect_type(const char* suffix, DType type) const {
    if (type_of(suffix) == type) return {};
    return make_error(Code::unsupported, "{}: tensor '{}{}' has type {}, expected {}",
                      checkpoint_.file_of(name_ + suffix), name_, suffix, name_of(type_of(suffix)), name_of(type));
  }

  Result<WeightTensors> unscaled() const {
    for (const char* suffix : {kScale, kScaleInverse, kMultiplier, kDivisor}) {
      BLOCKDRAFT_TRY(refuse(suffix, "not quantized"));
    }
    return with_ignored({.scheme = WeightScheme::unscaled, .codes = name_});
  }

  Result<WeightTensors> fp8() const {
    for (const char* suffix : {kMultiplier, kDivisor}) BLOCKDRAFT_TRY(refuse(suffix, "F8_E4M3"));
    const char* scale = has(kScaleInverse) ? kScaleInverse : kScale;
    BLOCKDRAFT_TRY(expect(scale, "F8_E4M3"));
    return with_ignored({.scheme = WeightScheme::fp8, .codes = name_, .scale = name_ + scale});
  }

  Result<WeightTensors> int8() const {
    for (const char* suffix : {kScaleInverse, kMultiplier, kDivisor}) BLOCKDRAFT_TRY(refuse(suffix, "I8"));
    BLOCKDRAFT_TRY(expect(kScale, "I8"));
    BLOCKDRAFT_TRY(expect_type(kScale, DType::f16));
    return with_ignored({.scheme = WeightScheme::int8, .codes = name_, .scale = name_ + kScale});
  }

  Result<WeightTensors> packed() const {
    BLOCKDRAFT_TRY(expect_type(kPacked, DType::u8));
    return nvfp4(kPacked, kDivisor, kMultiplier);
  }

  Result<WeightTensors> nvfp4(const char* codes, const char* global_scale, const char* of_other_family) const {
    BLOCKDRAFT_TRY(refuse(kScaleInverse, "packed NVFP4"));
    if (has(of_other_family)) {
      return make_error(Code::mismatch, "{}: '{}{}' and '{}{}' belong to different ways to store NVFP4",
                        checkpoint_.file_of(name_ + of_other_family), name_, codes, name_, of_other_family);
    }
    for (const char* suffix : {kScale, global_scale}) BLOCKDRAFT_TRY(expect(suffix, "U8 (packed NVFP4)"));
    BLOCKDRAFT_TRY(expect_type(kScale, DType::f8_e4m3));
    return with_ignored({.scheme = WeightScheme::nvfp4,
                         .codes = name_ + codes,
                         .scale = name_ + kScale,
                         .global_scale = name_ + global_scale,
                         .global_is_divisor = global_scale == kDivisor});
  }

  WeightTensors with_ignored(WeightTensors tensors) const {
    for (std::string& scale : activation_scales(name_)) {
      if (checkpoint_.find(scale) != nullptr) tensors.ignored.push_back(std::move(scale));
    }
    return tensors;
  }

  const Checkpoint& checkpoint_;
  const std::string& name_;
};

}  // namespace

bool has_weight(const Checkpoint& checkpoint, const std::string& name) {
  return checkpoint.find(name) != nullptr || checkpoint.find(name + kPacked) != nullptr;
}

Result<WeightTensors> find_weight(const Checkpoint& checkpoint, const std::string& name) {
  return Finder(checkpoint, name).find();
}

std::vector<std::string> tensors_of(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<std::string> names = activation_scales(name);
  for (const char* suffix : {"", kPacked, kScale, kScaleInverse, kMultiplier, kDivisor}) {
    names.push_back(name + suffix);
  }
  std::erase_if(names, [&](const std::string& tensor) { return checkpoint.find(tensor) == nullptr; });
  return names;
}

std::string describe(const Checkpoint& checkpoint, const WeightTensors& tensors) {
  if (tensors.scheme == WeightScheme::int8) return fmt::format("I8, a scale for {} columns", kInt8Group);
  if (tensors.scheme != WeightScheme::nvfp4) return name_of(checkpoint.find(tensors.codes)->dtype);
  return tensors.global_is_divisor ? "NVFP4 (compressed-tensors)" : "NVFP4 (ModelOpt)";
}

const char* name_of(Fp8Scales scales) {
  switch (scales) {
    case Fp8Scales::tensor:
      return "one scale";
    case Fp8Scales::row:
      return "a scale a row";
    case Fp8Scales::block:
      return "a scale a 128x128 block";
  }
  return "unknown";
}

Result<Fp8Scales> fp8_scales(const Checkpoint& checkpoint, const std::string& scale_name, int64_t out_features,
                             int64_t in_features) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* scale, checkpoint.require(scale_name));
  const std::vector<int64_t>& shape = scale->shape;
  const std::vector<int64_t> blocks{(out_features + kScaleBlock - 1) / kScaleBlock,
                                    (in_features + kScaleBlock - 1) / kScaleBlock};
  if (shape.empty() || shape == std::vector<int64_t>{1}) return Fp8Scales::tensor;
  if (shape == std::vector{out_features} || shape == std::vector<int64_t>{out_features, 1}) return Fp8Scales::row;
  if (shape == blocks) return Fp8Scales::block;
  return make_error(Code::mismatch,
                    "{}: tensor '{}' has shape {}, expected [1] (one scale), [{}, 1] (one a row) or {} (128x128 "
                    "blocks)",
                    checkpoint.file_of(scale_name), scale_name, to_string(shape), out_features, to_string(blocks));
}

}  // namespace blockdraft
