// Folders are quantized and loaded again; the FP8 result is compared with the reference's to the bit.
#include "blockdraft/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "blockdraft/inspect.h"
#include "checkpoint/config_reader.h"
#include "draft/drafter_weights.h"
#include "ops/cpu/decode.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"
#include "target/target_config.h"

namespace blockdraft {
namespace {

namespace fs = std::filesystem;

const std::string kSource = BLOCKDRAFT_SOURCE_DIR;
const fs::path kGolden = kSource + "/tests/golden";

// The model folder in a fixture: the weights that lie beside it are inputs and expectations.
void copy_model(const std::string& name, const fs::path& to) {
  fs::create_directories(to);
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy_file(kGolden / name / file, to / file);
}

Checkpoint opened(const fs::path& folder) {
  auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
  return std::move(checkpoint).value();
}

bool same_tensor(const StoredTensor& a, const StoredTensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::memcmp(a.data, b.data, a.size_bytes) == 0;
}

TEST(QuantizeFolder, Fp8IsTheReferenceToTheBit) {
  const TempDir folder;
  copy_model("dflash_plain", folder / "in");
  const Status status = quantize_folder(folder / "in", folder / "out", QuantizedFormat::fp8);
  ASSERT_TRUE(status) << status.error().message;
  const Checkpoint found = opened(folder / "out");
  const Checkpoint expected = opened(kGolden / "dflash_fp8_row");
  ASSERT_EQ(found.names(), expected.names());
  for (const std::string& name : expected.names()) {
    EXPECT_TRUE(same_tensor(*found.find(name), *expected.find(name))) << name;
  }
}

TEST(QuantizeFolder, FieldFault8_DraftersOfAllFamiliesLoadAgain) {
  for (const char* name : {"dflash_plain", "dflash2_plain", "dspark_gated_flat", "dspark_rnn_flat"}) {
    for (const QuantizedFormat format : {QuantizedFormat::fp8, QuantizedFormat::nvfp4, QuantizedFormat::int8}) {
      SCOPED_TRACE(name);
      const TempDir folder;
      copy_model(name, folder / "in");
      const Status status = quantize_folder(folder / "in", folder / "out/", format);
      ASSERT_TRUE(status) << status.error().message;
      const auto config = read_drafter_config(folder / "out");
      ASSERT_TRUE(config) << config.error().message;
      WeightStore store(std::make_shared<const Checkpoint>(opened(folder / "out")), "");
      const auto weights = load_drafter_weights(store, *config);
      ASSERT_TRUE(weights) << weights.error().message;
      const DType expected = format == QuantizedFormat::fp8     ? DType::f8_e4m3
                             : format == QuantizedFormat::nvfp4 ? DType::u8
                                                                : DType::i8;
      EXPECT_EQ(weights->fc.dtype, expected);
      EXPECT_EQ(weights->layers[1].decoder.down_proj.dtype, expected);
      // All others are copies.
      const Checkpoint& out = store.checkpoint();
      const Checkpoint in = opened(folder / "in");
      for (const std::string& tensor : in.names()) {
        const bool quantized = out.find(tensor + "_scale") != nullptr;
        const bool named = tensor == "fc.weight" || tensor.find("self_attn") != std::string::npos ||
                           tensor.find(".mlp.") != std::string::npos;
        EXPECT_EQ(quantized, named && tensor.find("norm") == std::string::npos) << tensor;
        EXPECT_TRUE(quantized || same_tensor(*in.find(tensor), *out.find(tensor))) << tensor;
      }
    }
  }
}

// The relative error of all elements together: 2 to 3 % is what 3 bits of mantissa give, 8 to 11 % what E2M1 does, and
// half a percent int8.
double relative_error(const fs::path& in, const fs::path& out) {
  WeightStore exact(std::make_shared<const Checkpoint>(opened(in)), "");
  WeightStore rounded(std::make_shared<const Checkpoint>(opened(out)), "");
  double errors = 0, squares = 0;
  for (const std::string& name : exact.checkpoint().names()) {
    const StoredTensor& tensor = *exact.checkpoint().find(name);
    if (tensor.shape.size() != 2) continue;
    const auto a = exact.parameter(name, tensor.shape[0], tensor.shape[1]);
    const auto b = rounded.parameter(name, tensor.shape[0], tensor.shape[1]);
    EXPECT_TRUE(a && b) << name;
    std::vector<float> x(static_cast<size_t>(tensor.shape[1])), y(x.size());
    for (int64_t n = 0; n < tensor.shape[0]; ++n) {
      cpu::decode_row(*a, n, x.data());
      cpu::decode_row(*b, n, y.data());
      for (size_t k = 0; k < x.size(); ++k) {
        const auto value = static_cast<double>(x[k]);
        errors += (value - static_cast<double>(y[k])) * (value - static_cast<double>(y[k]));
        squares += value * value;
      }
    }
  }
  return std::sqrt(errors / squares);
}

TEST(QuantizeFolder, ErrorsAreThoseOfTheFormats) {
  const TempDir folder;
  copy_model("dflash_plain", folder / "in");
  ASSERT_TRUE(quantize_folder(folder / "in", folder / "fp8", QuantizedFormat::fp8));
  ASSERT_TRUE(quantize_folder(folder / "in", folder / "nvfp4", QuantizedFormat::nvfp4));
  EXPECT_NEAR(relative_error(folder / "in", folder / "fp8"), 0.026, 0.005);
  EXPECT_NEAR(relative_error(folder / "in", folder / "nvfp4"), 0.095, 0.015);
  ASSERT_TRUE(quantize_folder(folder / "in", folder / "int8", QuantizedFormat::int8));
  EXPECT_NEAR(relative_error(folder / "in", folder / "int8"), 0.005, 0.001);
}

TEST(QuantizeFolder, ATargetWithItsTokenizer) {
  const TempDir folder;
  copy_model("target_qwen3_tied", folder / "in");
  for (const char* file : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    fs::copy_file(kSource + "/demo/pycode-14m/" + file, folder.path() / "in" / file);
  }
  write_file(folder.path() / "in" / "chat_template.jinja", "template");
  write_file(folder.path() / "in" / "notes.md", "not part of the model");
  const Status status = quantize_folder(folder / "in", folder / "made" / "out", QuantizedFormat::nvfp4);
  ASSERT_TRUE(status) << status.error().message;
  const fs::path out = folder.path() / "made" / "out";
  for (const char* file :
       {"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"}) {
    EXPECT_EQ(read_file(out / file), read_file(folder.path() / "in" / file)) << file;
  }
  EXPECT_FALSE(fs::exists(out / "notes.md"));
  EXPECT_FALSE(fs::exists(folder.path() / "made" / "out.partial"));
  const auto report = inspect_folder(out);
  ASSERT_TRUE(report) << report.error().message;
  const auto before = read_target_config(folder / "in");
  const auto after = read_target_config(out);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->transformer.hidden_size, after->transformer.hidden_size);
}

TEST(QuantizeFolder, TheConfigSaysHow) {
  const TempDir folder;
  copy_model("dspark_gated_flat", folder / "in");
  const auto original = read_config_json(folder / "in");
  for (const QuantizedFormat format : {QuantizedFormat::fp8, QuantizedFormat::nvfp4}) {
    const bool fp8 = format == QuantizedFormat::fp8;
    const fs::path out = folder / (fp8 ? "fp8" : "nvfp4");
    ASSERT_TRUE(quantize_folder(folder / "in", out, format));
    auto config = read_config_json(out);
    ASSERT_TRUE(config) << config.error().message;
    const Json quantization = config->at("quantization_config");
    EXPECT_EQ(quantization.at("quant_method"), "compressed-tensors");
    EXPECT_EQ(quantization.at("format"), fp8 ? "float-quantized" : "nvfp4-pack-quantized");
    const Json& weights = quantization.at("config_groups").at("group_0").at("weights");
    EXPECT_EQ(weights.at("num_bits"), fp8 ? 8 : 4);
    EXPECT_EQ(weights.at("strategy"), fp8 ? "channel" : "tensor_group");
    const auto ignored = quantization.at("ignore").get<std::vector<std::string>>();
    EXPECT_NE(std::ranges::find(ignored, "markov_head.gate_proj"), ignored.end());
    EXPECT_EQ(std::ranges::find(ignored, "fc"), ignored.end());
    config->erase("quantization_config");
    EXPECT_EQ(*config, *original);
  }
  ASSERT_TRUE(quantize_folder(folder / "in", folder / "int8", QuantizedFormat::int8));
  const Json quantization = read_config_json(folder / "int8")->at("quantization_config");
  EXPECT_EQ(quantization.at("format"), "int-quantized");
  const Json expected = {{"num_bits", 8},    {"type", "int"},       {"symmetric", true},
                         {"dynamic", false}, {"strategy", "group"}, {"group_size", 32}};
  EXPECT_EQ(quantization.at("config_groups").at("group_0").at("weights"), expected);
}

// Nothing is left behind by a refusal.
void expect_refused(const TempDir& folder, QuantizedFormat format, Code code,
                    std::initializer_list<std::string_view> parts) {
  expect_error(quantize_folder(folder / "in", folder / "out", format), code, parts);
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_FALSE(fs::exists(folder / "out.partial"));
}

TEST(QuantizeFolder, RefusesWhatItCannotDo) {
  const float nan = std::nanf("");
  struct Case {
    std::vector<TensorToWrite> tensors;
    QuantizedFormat format;
    Code code;
    std::initializer_list<std::string_view> parts;
  };
  const Case cases[] = {
      {{bf16_tensor("norm.weight", {2}, {1, 1})}, QuantizedFormat::fp8, Code::unsupported, {"no linear weight"}},
      {{bf16_tensor("q_proj.weight", {2, 8}, std::vector<float>(16, 1))},
       QuantizedFormat::nvfp4,
       Code::unsupported,
       {"'q_proj.weight'", "rows of 8", "multiple of 16"}},
      {{bf16_tensor("q_proj.weight", {1, 48}, std::vector<float>(48, 1))},
       QuantizedFormat::int8,
       Code::unsupported,
       {"'q_proj.weight'", "rows of 48", "multiple of 32 for int8"}},
      {{bf16_tensor("q_proj.weight", {1, 2}, {1, nan})},
       QuantizedFormat::fp8,
       Code::numeric,
       {"'q_proj.weight'", "finite"}},
      {{fp8_tensor("q_proj.weight", {1, 2}, {1, 2}), f32_tensor("q_proj.weight_scale", {1}, {1})},
       QuantizedFormat::fp8,
       Code::unsupported,
       {"'q_proj.weight'", "F8_E4M3", "BF16"}},
  };
  for (const Case& one : cases) {
    const TempDir folder;
    fs::create_directory(folder / "in");
    write_file(folder.path() / "in" / "config.json", "{}");
    write_safetensors(folder.path() / "in" / "model.safetensors", one.tensors);
    expect_refused(folder, one.format, one.code, one.parts);
  }
}

TEST(QuantizeFolder, RefusesAQuantizedFolderAndAMissingOne) {
  const TempDir folder;
  expect_error(quantize_folder(kSource + "/demo/pycode-14m", folder / "out", QuantizedFormat::nvfp4), Code::unsupported,
               {"config.json", "quantization_config"});
  expect_refused(folder, QuantizedFormat::fp8, Code::not_found, {"in"});
}

TEST(QuantizeFolder, NeverWritesOverWhatIsThere) {
  for (const char* name : {"out", "out.partial"}) {
    const TempDir folder;
    copy_model("dflash_plain", folder / "in");
    fs::create_directory(folder / name);
    write_file(folder.path() / name / "mine", "mine");
    expect_error(quantize_folder(folder / "in", folder / "out", QuantizedFormat::fp8), Code::invalid_argument,
                 {name, "exists"});
    EXPECT_EQ(read_file(folder.path() / name / "mine"), "mine");
  }
}

TEST(QuantizeFolder, FormatNames) {
  EXPECT_EQ(quantized_format_from_name("fp8"), QuantizedFormat::fp8);
  EXPECT_EQ(quantized_format_from_name("nvfp4"), QuantizedFormat::nvfp4);
  EXPECT_EQ(quantized_format_from_name("int8"), QuantizedFormat::int8);
  EXPECT_EQ(quantized_format_from_name("int4"), std::nullopt);
}

}  // namespace
}  // namespace blockdraft
