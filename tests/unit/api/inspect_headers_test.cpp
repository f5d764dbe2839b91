// Folders that hold their config and the headers of their weights only: what can be said before a large download.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "blockdraft/drafter.h"
#include "blockdraft/engine.h"
#include "blockdraft/inspect.h"
#include "support/drafter_examples.h"
#include "support/expect_error.h"
#include "support/header_only.h"
#include "support/take.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

using test::take;
using ::testing::HasSubstr;

const std::filesystem::path kDemo = BLOCKDRAFT_SOURCE_DIR "/demo";

std::string line_of(const FolderReport& report, const std::string& name) {
  for (const ReportLine& line : report.lines) {
    if (line.name == name) return line.value;
  }
  return "no such line";
}

// The published sizes of spec 10; of the Muse assistant, half the bytes of its published header.
TEST(InspectHeaders, ParameterCounts) {
  struct Published {
    const char* name;
    Json config;
    int64_t parameters;
    int64_t tensors;
  };
  const std::vector<Published> drafters = {
      {"Qwen3-4B-DFlash", qwen3_4b(), 537'427'200, 58},
      {"Qwen3-8B-DFlash", qwen3_8b(), 1'048'626'432, 58},
      {"Qwen3.5-4B-DFlash", qwen35_4b(), 634'425'856, 69},
      {"Qwen3.6-27B-DFlash", qwen36_27b(), 1'730'213'120, 58},
      {"Qwen3.5-35B-A3B-DFlash", qwen35_35b_a3b(), 473'995'264, 91},
      {"gpt-oss-20b-DFlash", gpt_oss_20b(), 784'767'104, 123},
      {"gemma-4-31B-it-DFlash", gemma4_31b(), 1'535'967'488, 58},
      {"Qwen3.8-27B-DFlash2", qwen38_27b_dflash2(), 1'924'404'480, 81},
      {"Muse-Glimmer-30B-DFlash2", muse_30b_dflash2(), 2'772'159'744, 81},
      {"Qwen3-4B DSpark", qwen3_4b_deepspec(), 1'393'133'569, 64},
      {"Muse Glimmer assistant", muse_assistant(), 2'555'985'152, 58},
  };
  for (const Published& drafter : drafters) {
    SCOPED_TRACE(drafter.name);
    const TempDir folder;
    const std::vector<HeaderTensor> tensors = drafter_tensors(drafter.config);
    write_header_only(folder.path(), drafter.config, tensors);
    const FolderReport report = take(inspect_folder(folder.path()));
    EXPECT_EQ(report.parameters, drafter.parameters);
    EXPECT_EQ(report.weight_bytes, 2 * drafter.parameters);
    EXPECT_EQ(line_of(report, "weights"), std::to_string(drafter.tensors) + " tensors, 1 file (BF16)");
    int64_t grouped = 0;
    for (const WeightGroup& group : report.groups) {
      EXPECT_EQ(group.format, "BF16");
      EXPECT_NE(group.name, "other");
      grouped += group.parameters;
    }
    EXPECT_EQ(grouped, drafter.parameters);
  }
}

// bench/configs holds configs alone; TARGET-FAMILY drafts for TARGET.
TEST(InspectHeaders, DraftersOfTheBenchFitTheirTargets) {
  const std::filesystem::path configs = BLOCKDRAFT_SOURCE_DIR "/bench/configs";
  int pairs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) {
    const std::string name = entry.path().filename().string();
    const std::filesystem::path of_target = configs / name.substr(0, name.rfind('-'));
    if (!std::filesystem::exists(of_target)) continue;
    SCOPED_TRACE(name);
    const TempDir target, drafter;
    const Json target_config = Json::parse(std::ifstream(of_target / "config.json"));
    const Json drafter_config = Json::parse(std::ifstream(entry.path() / "config.json"));
    write_header_only(target.path(), target_config, target_tensors(target_config));
    write_header_only(drafter.path(), drafter_config, drafter_tensors(drafter_config));
    EXPECT_EQ(take(inspect_pair(target.path(), drafter.path())).problem(), "");
    EXPECT_THAT(take(inspect_folder(target.path())).warnings, ::testing::IsEmpty());
    EXPECT_THAT(take(inspect_folder(drafter.path())).warnings, ::testing::IsEmpty());
    ++pairs;
  }
  EXPECT_EQ(pairs, 5);
}

// The same numbers, however they are stored: a packed byte holds two, scales are none.
TEST(InspectHeaders, QuantizedWeightsHaveAsManyParameters) {
  struct Format {
    HeaderFormat format;
    const char* text;
  };
  for (const Format& stored :
       {Format{HeaderFormat::fp8_tensor, "F8_E4M3, one scale"}, Format{HeaderFormat::fp8_row, "F8_E4M3, a scale a row"},
        Format{HeaderFormat::fp8_block, "F8_E4M3, a scale a 128x128 block"},
        Format{HeaderFormat::nvfp4_modelopt, "NVFP4 (ModelOpt)"},
        Format{HeaderFormat::nvfp4_compressed_tensors, "NVFP4 (compressed-tensors)"}}) {
    for (const Json& config : {qwen3_8b(), qwen38_27b_dflash2(), qwen3_4b_deepspec()}) {
      SCOPED_TRACE(stored.text);
      const TempDir folder;
      write_header_only(folder.path(), config, drafter_tensors(config));
      const int64_t parameters = take(inspect_folder(folder.path())).parameters;
      const std::vector<HeaderTensor> tensors = stored_as(stored.format, drafter_tensors(config));
      write_header_only(folder.path(), config, tensors);
      const FolderReport report = take(inspect_folder(folder.path()));
      EXPECT_EQ(report.parameters, parameters);
      EXPECT_EQ(report.weight_bytes, data_bytes(tensors));
      int64_t grouped = 0;
      for (const WeightGroup& group : report.groups) {
        const bool linear = group.name == "fc" || group.name == "attention" || group.name == "mlp";
        EXPECT_EQ(group.format, linear ? stored.text : "BF16") << group.name;
        grouped += group.size_bytes;
      }
      EXPECT_EQ(grouped, report.weight_bytes);
    }
  }
}

Json qwen3_4b_target() {
  return Json::parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 2560, "intermediate_size": 9728,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-06,
    "tie_word_embeddings": true, "eos_token_id": 151645})");
}

TEST(InspectHeaders, TargetsAndPairs) {
  const TempDir folder;
  write_header_only(folder / "target", qwen3_4b_target(), target_tensors(qwen3_4b_target()));
  write_header_only(folder / "drafter", qwen3_4b(), drafter_tensors(qwen3_4b()));
  EXPECT_EQ(take(inspect_folder(folder / "target")).parameters, 4'022'468'096);  // as published
  const PairingReport pair = take(inspect_pair(folder / "target", folder / "drafter"));
  EXPECT_TRUE(pair.fits()) << pair.problem();
  EXPECT_GT(pair.memory.size_bytes(), 0);
  Json padded = qwen3_4b();
  padded["vocab_size"] = 151680;
  write_header_only(folder / "drafter", padded, drafter_tensors(padded));
  EXPECT_THAT(take(inspect_pair(folder / "target", folder / "drafter")).problem(),
              HasSubstr("vocabulary is 151680 rows, the target has 151936 rows, real ids not known"));
  write_header_only(folder / "drafter", qwen3_4b(), drafter_tensors(qwen3_4b()));
  std::filesystem::remove(folder / "target/model.safetensors");
  EXPECT_THAT(inspect_pair(folder / "target", folder / "drafter").error().message, HasSubstr("target"));
}

// 'tied' says that the head is the embedding table: other copies, of whatever format, are neither used nor counted.
TEST(InspectHeaders, CopiesOfATiedHeadDoNotCount) {
  const TempDir folder;
  const Json config = qwen3_4b_target();
  for (const HeaderFormat format : {HeaderFormat::bf16, HeaderFormat::fp8_row, HeaderFormat::fp8_block,
                                    HeaderFormat::nvfp4_modelopt, HeaderFormat::nvfp4_compressed_tensors}) {
    std::vector<HeaderTensor> tensors = target_tensors(config);
    // stored_as knows the names of linear weights, so the copy gets its tensors under such a name.
    for (HeaderTensor copy : stored_as(format, {{"fc.weight", "BF16", {151936, 2560}}})) {
      copy.name = "lm_head" + copy.name.substr(2);
      tensors.push_back(copy);
    }
    write_header_only(folder.path(), config, tensors);
    const FolderReport report = take(inspect_folder(folder.path()));
    EXPECT_EQ(report.parameters, 4'022'468'096);
    EXPECT_EQ(report.weight_bytes, data_bytes(tensors));
    EXPECT_THAT(line_of(report, "not used"), HasSubstr("lm_head."));
  }
}

// Copies the demo's drafter with so many bytes of its weights.
void cut_demo(const std::filesystem::path& folder, size_t bytes) {
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::string content = read_file(kDemo / "pycode-14m-dspark" / file);
    if (std::string(file) == "model.safetensors") content.resize(bytes);
    write_file(folder / file, content);
  }
}

size_t header_bytes_of_demo() {
  const std::string content = read_file(kDemo / "pycode-14m-dspark/model.safetensors");
  size_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(content[i]);
  return 8 + length;
}

TEST(InspectHeaders, TheBeginningOfADownloadSaysTheSame) {
  const FolderReport whole = take(inspect_folder(kDemo / "pycode-14m-dspark"));
  EXPECT_TRUE(whole.has_tensor_data);
  EXPECT_EQ(whole.data_bytes, whole.weight_bytes);
  EXPECT_EQ(line_of(whole, "tensor data"), "no such line");
  for (const size_t data : {size_t{0}, size_t{1000}}) {
    const TempDir folder;
    cut_demo(folder.path(), header_bytes_of_demo() + data);
    const FolderReport cut = take(inspect_folder(folder.path()));
    EXPECT_FALSE(cut.has_tensor_data);
    EXPECT_EQ(cut.data_bytes, static_cast<int64_t>(data));
    EXPECT_THAT(line_of(cut, "tensor data"), HasSubstr("not there: " + std::to_string(data) + " of "));
    EXPECT_EQ(cut.parameters, whole.parameters);
    EXPECT_EQ(cut.weight_bytes, whole.weight_bytes);
    EXPECT_EQ(cut.memory.size_bytes(), whole.memory.size_bytes());
    EXPECT_EQ(cut.groups.size(), whole.groups.size());
    EXPECT_TRUE(take(inspect_pair(kDemo / "pycode-14m", folder.path())).fits());
  }
}

TEST(InspectHeaders, AreNotDecodedWith) {
  const TempDir folder;
  cut_demo(folder.path(), header_bytes_of_demo());
  expect_error(Engine::open({.target = kDemo / "pycode-14m", .drafter = folder.path()}), Code::corrupt_file,
               {"model.safetensors", "ends behind its header", "inspected, not loaded"});
  cut_demo(folder.path(), header_bytes_of_demo() + 1000);
  expect_error(Engine::open({.target = kDemo / "pycode-14m", .drafter = folder.path()}), Code::corrupt_file,
               {"model.safetensors", "the file has 1000"});
  cut_demo(folder.path(), header_bytes_of_demo() - 1);
  expect_error(inspect_folder(folder.path()), Code::corrupt_file, {"model.safetensors", "header length"});
}

// What loading would refuse by name, type or shape is refused here, too.
TEST(InspectHeaders, TensorsAreChecked) {
  const Json config = qwen38_27b_dflash2();
  const TempDir folder;
  const auto inspect = [&](const std::vector<HeaderTensor>& tensors) {
    write_header_only(folder.path(), config, tensors);
    return inspect_folder(folder.path());
  };
  std::vector<HeaderTensor> tensors = drafter_tensors(config);
  ASSERT_EQ(tensors.back().name, "candidate_selector.hidden_projection.weight");
  tensors.back().shape = {128, 5120};
  expect_error(inspect(tensors), Code::mismatch, {"hidden_projection", "[128, 5120]", "[256, 5120]"});
  tensors.pop_back();
  expect_error(inspect(tensors), Code::not_found, {"candidate_selector.hidden_projection.weight"});
  tensors = drafter_tensors(config);
  tensors.push_back({"markov_head.markov_w1.weight", "BF16", {1, 1}});
  expect_error(inspect(tensors), Code::unsupported, {"markov_head.markov_w1.weight", "DFlash2DraftModel"});
  tensors = stored_as(HeaderFormat::nvfp4_modelopt, drafter_tensors(config));
  for (HeaderTensor& tensor : tensors) {
    if (tensor.name == "fc.weight_scale") tensor.shape = {5120, 800};
  }
  expect_error(inspect(tensors), Code::mismatch, {"fc.weight_scale", "[5120, 800]", "[5120, 1600]"});
}

}  // namespace
}  // namespace blockdraft
