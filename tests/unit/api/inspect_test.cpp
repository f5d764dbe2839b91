#include "blockdraft/inspect.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "blockdraft/engine.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

using ::testing::HasSubstr;

const std::string kDemo = BLOCKDRAFT_SOURCE_DIR "/demo/";

std::string value_of(const FolderReport& report, const std::string& name) {
  for (const ReportLine& line : report.lines) {
    if (line.name == name) return line.value;
  }
  return "no such line";
}

TEST(Inspect, DescribesATarget) {
  const auto report = inspect_folder(kDemo + "pycode-14m");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->is_drafter);
  EXPECT_EQ(report->kind, "Qwen3ForCausalLM");
  EXPECT_EQ(value_of(*report, "output head"), "the embedding table");
  EXPECT_EQ(value_of(*report, "stop ids"), "0");
  // 4160 x 384 embeddings, then 8 layers of q, k, v, o, gate, up, down and four norms, then the last norm.
  const int64_t layer = 384 * (384 + 128 + 128 + 384 + 3 * 1024) + 2 * 384 + 2 * 64;
  EXPECT_EQ(report->parameters, 4160 * 384 + 8 * layer + 384);
}

TEST(Inspect, DescribesADrafter) {
  const auto report = inspect_folder(kDemo + "pycode-14m-dflash");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->is_drafter);
  EXPECT_EQ(report->kind, "DFlash");
  EXPECT_THAT(value_of(*report, "block"), HasSubstr("8 rows, 7 drafts"));
  EXPECT_THAT(value_of(*report, "taps"), HasSubstr("1, 4, 6"));
  EXPECT_EQ(value_of(*report, "attention"), "whole context, both ways in the block (layers 0 to 1)");
}

TEST(Inspect, ReportsThePairingItemByItem) {
  const auto fitting = inspect_pair(kDemo + "pycode-14m", kDemo + "pycode-14m-dflash");
  ASSERT_TRUE(fitting) << fitting.error().message;
  EXPECT_TRUE(fitting->fits());
  EXPECT_EQ(fitting->problem(), "");

  const auto foreign = inspect_pair(kDemo + "pycode-14m", BLOCKDRAFT_SOURCE_DIR "/tests/golden/dflash_plain");
  ASSERT_TRUE(foreign) << foreign.error().message;
  EXPECT_FALSE(foreign->fits());
  EXPECT_THAT(foreign->problem(), HasSubstr("hidden size is 64, the target has 384"));
}

TEST(Inspect, DescribesWhatOneFamilyHas) {
  const auto dflash2 = inspect_folder(kDemo + "pycode-14m-dflash2");
  ASSERT_TRUE(dflash2) << dflash2.error().message;
  EXPECT_EQ(dflash2->kind, "DFlash2");
  EXPECT_EQ(value_of(*dflash2, "convolutions"), "2 taps, groups of 16 channels");
  EXPECT_EQ(value_of(*dflash2, "candidate selector"), "rank 64, 16 candidates a row");

  const auto dspark = inspect_folder(kDemo + "pycode-14m-dspark");
  ASSERT_TRUE(dspark) << dspark.error().message;
  EXPECT_EQ(dspark->kind, "DSpark");
  EXPECT_EQ(value_of(*dspark, "block"), "7 rows, 7 drafts a cycle (shifted: a row guesses the next position)");
  EXPECT_EQ(value_of(*dspark, "markov head"), "vanilla, rank 64");
  EXPECT_EQ(value_of(*dspark, "confidence head"), "of hidden state and token before");

  const auto no_heads = inspect_folder(BLOCKDRAFT_SOURCE_DIR "/tests/golden/dspark_no_markov");
  ASSERT_TRUE(no_heads) << no_heads.error().message;
  EXPECT_EQ(value_of(*no_heads, "markov head"), "none");
  EXPECT_EQ(value_of(*no_heads, "confidence head"), "none");
  EXPECT_EQ(value_of(*no_heads, "taps"), "outputs of target layers -1, 2, 4 (-1: the embeddings)");
}

TEST(Inspect, SumsUpTheWeightsOfEachPart) {
  const auto report = inspect_folder(kDemo + "pycode-14m-dspark");
  ASSERT_TRUE(report) << report.error().message;
  std::vector<std::string> names;
  int64_t parameters = 0, bytes = 0;
  for (const WeightGroup& group : report->groups) {
    names.push_back(group.name);
    parameters += group.parameters;
    bytes += group.size_bytes;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"fc", "norms", "attention", "mlp", "markov head", "confidence head"}));
  EXPECT_EQ(parameters, report->parameters);
  EXPECT_EQ(bytes, report->weight_bytes);
  EXPECT_EQ(value_of(*report, "weights"), "44 tensors, 1 file (BF16; F8_E4M3, a scale a row)");
  // Tables of a reduced vocabulary are no weights.
  const auto reduced = inspect_folder(BLOCKDRAFT_SOURCE_DIR "/tests/golden/dflash_reduced_vocab_d2t");
  ASSERT_TRUE(reduced) << reduced.error().message;
  EXPECT_EQ(reduced->groups.back().name, "output head");
  bytes = 0;
  for (const WeightGroup& group : reduced->groups) bytes += group.size_bytes;
  EXPECT_LT(bytes, reduced->weight_bytes);
}

// What the configs say twice or leave out reaches whoever inspects, and whoever opens.
TEST(Inspect, WarningsReachTheCaller) {
  const TempDir folder;
  auto config = nlohmann::json::parse(read_file(kDemo + "pycode-14m-dflash/config.json"));
  config["dspark_config"] = {{"mask_token_id", 4000}};
  write_file(folder / "config.json", config.dump());
  std::filesystem::create_symlink(kDemo + "pycode-14m-dflash/model.safetensors", folder / "model.safetensors");
  const std::string warning = (folder / "config.json").string() +
                              ": key 'dflash_config.mask_token_id' is 4100 but 'dspark_config.mask_token_id' is 4000; "
                              "the first is used";
  const auto report = inspect_folder(folder.path());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->warnings, std::vector<std::string>{warning});
  const auto engine = Engine::open({.target = kDemo + "pycode-14m", .drafter = folder.path()});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->info().config_warnings, std::vector<std::string>{warning});
}

TEST(Inspect, NamesWhatItCannotRead) {
  const TempDir folder;
  write_file(folder.path() / "config.json", R"({"architectures": ["DominoDraftModel"]})");
  const auto report = inspect_folder(folder.path());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("a Domino drafter"));
}

}  // namespace
}  // namespace blockdraft
