// A drafter that is right by construction, and only if every position, tap, row and mask is where it belongs.
//
// The target's layers add nothing, so its next token is a function of the last one: n(v) = v + 1 on a cycle of 15 ids.
// The drafter's queries and keys are constants, and the rotation turns them so that a block row attends to the context
// position 16 before it and to nothing else. What it finds there is the tap of the token that stands, a period and one
// position earlier, before its own: the target's head makes the row's own token of it. Row 15 reads the newest context
// row and row 1 the oldest of the last period. A slip by one anywhere makes drafts wrong.
//
// In a shifted block each row guesses the token after its own, so there the distance is the period itself.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "property/pairs.h"
#include "support/take.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kPeriod = 15;
constexpr int64_t kHidden = 16;  // one-hot ids 0 .. 14, and the mask token 15
constexpr int64_t kHeadDim = 32;
constexpr double kTheta = 10.0;
constexpr float kSharpness = 12.0f;

std::vector<float> zeros(int64_t count) { return std::vector<float>(static_cast<size_t>(count)); }

std::vector<float> diagonal(int64_t rows, int64_t columns, float value) {
  std::vector<float> values = zeros(rows * columns);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) values[static_cast<size_t>(i * columns + i)] = value;
  return values;
}

void set(ModelFiles& files, const std::string& name, const std::vector<float>& values) {
  TensorToWrite& tensor = files.tensor(name);
  tensor = f32_tensor(name, tensor.shape, values);
}

void set_norm(ModelFiles& files, const std::string& name, float value) {
  const int64_t dim = files.tensor(name).shape[0];
  set(files, name, std::vector<float>(static_cast<size_t>(dim), value));
}

constexpr TinyStack kTargetStack{.layers = 2, .hidden = kHidden, .heads = 2, .kv_heads = 1, .head_dim = 8, .inner = 8};

// `padding`: rows of its tables beyond the ids.
ModelFiles cyclic_target(const TinyStack& stack = kTargetStack, int64_t padding = 0) {
  const int64_t rows = kPeriod + 1 + padding;
  ModelFiles files = tiny_target({.stack = stack, .vocab = rows}, 1);
  set(files, "model.embed_tokens.weight", diagonal(rows, kHidden, 1.0f));
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    set(files, layer + "self_attn.o_proj.weight", zeros(kHidden * stack.heads * stack.head_dim));
    set(files, layer + "mlp.down_proj.weight", zeros(kHidden * 8));
  }
  set_norm(files, "model.norm.weight", 1.0f);
  std::vector<float> head = zeros(rows * kHidden);
  for (int64_t id = 0; id < kPeriod; ++id) head[static_cast<size_t>((id + 1) % kPeriod * kHidden + id)] = 1.0f;
  set(files, "lm_head.weight", head);
  return files;
}

// The constant key, turned by `distance` positions, so that a query of the constant (1, 0, 1, 0, ...) finds it there.
std::vector<float> turned_key(int64_t distance) {
  std::vector<float> key = zeros(kHeadDim);
  for (int64_t i = 0; i < kHeadDim / 2; ++i) {
    const double angle = static_cast<double>(distance) * std::pow(kTheta, -2.0 * static_cast<double>(i) / kHeadDim);
    key[static_cast<size_t>(i)] = static_cast<float>(std::cos(angle));
    key[static_cast<size_t>(i + kHeadDim / 2)] = static_cast<float>(std::sin(angle));
  }
  return key;
}

struct OracleShape {
  TinyFamily family = TinyFamily::dflash;  // or DSpark without heads, whose block is shifted
  int64_t reach = 0;                       // of a window beyond the rows that drafts are made of; negative: too short
  bool has_window = false;

  bool shifted() const { return family == TinyFamily::dspark; }
  int64_t distance() const { return shifted() ? kPeriod : kPeriod + 1; }
  int64_t window() const { return has_window ? distance() + 1 + reach : 0; }
};

ModelFiles oracle_drafter(const OracleShape& shape) {
  const TinyStack stack{
      .layers = 1, .hidden = kHidden, .heads = 1, .kv_heads = 1, .head_dim = kHeadDim, .inner = 8, .bias = true};
  ModelFiles files = tiny_drafter({.family = shape.family,
                                   .stack = stack,
                                   .vocab = kPeriod + 1,
                                   .target_layers = 2,
                                   .taps = {1},
                                   .block_size = shape.shifted() ? kPeriod : kPeriod + 1,
                                   .mask_id = kPeriod,
                                   .window = shape.window(),
                                   .rank = 0},
                                  2);
  files.config["rope_theta"] = kTheta;
  set(files, "fc.weight", diagonal(kHidden, kHidden, 1.0f));
  set_norm(files, "hidden_norm.weight", 1.0f);
  set_norm(files, "norm.weight", 1.0f);
  const std::string layer = "layers.0.";
  set(files, layer + "self_attn.q_proj.weight", zeros(kHeadDim * kHidden));
  set(files, layer + "self_attn.k_proj.weight", zeros(kHeadDim * kHidden));
  set(files, layer + "self_attn.v_proj.weight", diagonal(kHeadDim, kHidden, 1.0f));
  set(files, layer + "self_attn.o_proj.weight", diagonal(kHidden, kHeadDim, 100.0f));
  std::vector<float> query = zeros(kHeadDim);
  std::fill(query.begin(), query.begin() + kHeadDim / 2, 1.0f);
  set(files, layer + "self_attn.q_proj.bias", query);
  set(files, layer + "self_attn.k_proj.bias", turned_key(shape.distance()));
  set(files, layer + "self_attn.v_proj.bias", zeros(kHeadDim));
  set(files, layer + "self_attn.o_proj.bias", zeros(kHidden));
  set_norm(files, layer + "self_attn.q_norm.weight", kSharpness);
  set_norm(files, layer + "self_attn.k_norm.weight", 1.0f);
  set(files, layer + "mlp.down_proj.weight", zeros(kHidden * 8));
  return files;
}

std::vector<int32_t> cycle_ids(int64_t first, int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>((first + i) % kPeriod));
  return ids;
}

// Prompts around the passes that they are read in; every draft of every cycle is right.
void expect_oracle(const ModelFiles& target, const ModelFiles& drafter) {
  const TempDir folder;
  target.write(folder / "target");
  drafter.write(folder / "drafter");
  for (const int32_t width : {1, 2, 7, 14, 15}) {
    Decoder decoder(
        folder / "target", folder / "drafter",
        {.threads = 1, .max_sequences = 2, .max_positions = 420, .max_width = width, .num_choices = kPeriod + 1});
    std::vector<TokenRequest> requests;
    for (const int64_t prompt_length : {15, 16, 47, 256, 300}) {
      requests.push_back({.prompt_ids = cycle_ids(prompt_length, prompt_length), .max_tokens = 100, .width = width});
    }
    const std::vector<TokenResult> results = decoder.run(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "width " << width << ", prompt of " << requests[i].prompt_ids.size());
      const auto length = static_cast<int64_t>(requests[i].prompt_ids.size());
      EXPECT_EQ(results[i].ids, cycle_ids(2 * length, 100));
      for (const SequenceCycle& cycle : results[i].cycles) {
        EXPECT_EQ(cycle.accepted, cycle.width);
        EXPECT_EQ(cycle.produced, cycle.width + 1);
      }
    }
  }
}

// The text is right whatever the drafter does; no draft is.
void expect_no_draft_accepted(Decoder& decoder, int32_t width) {
  const TokenRequest request{.prompt_ids = cycle_ids(0, 20), .max_tokens = 60, .width = width};
  const TokenResult result = decoder.run(request);
  EXPECT_EQ(result.ids, cycle_ids(20, 60));
  for (const SequenceCycle& cycle : result.cycles) EXPECT_EQ(cycle.accepted, 0);
}

TokenEngineOptions one_sequence(int32_t max_width) {
  return {.threads = 1, .max_positions = 200, .max_width = max_width, .num_choices = kPeriod + 1};
}

class Oracle : public testing::TestWithParam<OracleShape> {};

TEST_P(Oracle, FieldFault2_EveryBlockIsAcceptedInFull) { expect_oracle(cyclic_target(), oracle_drafter(GetParam())); }

// A window reaches exactly as far as it must, or further; pages below it are given away.
INSTANTIATE_TEST_SUITE_P(, Oracle,
                         testing::Values(OracleShape{}, OracleShape{.has_window = true},
                                         OracleShape{.reach = 23, .has_window = true}, OracleShape{TinyFamily::dspark},
                                         OracleShape{TinyFamily::dspark, 0, true}),
                         [](const auto& suite) {
                           return std::string(suite.param.shifted() ? "Shifted" : "InPlace") + "Window" +
                                  std::to_string(suite.param.window());
                         });

// The tests of the test: one position less, and the window hides what the drafts are made of ...
TEST(OracleDrafts, FieldFault4_AreWrongIfTheWindowIsShortByOne) {
  for (const TinyFamily family : {TinyFamily::dflash, TinyFamily::dspark}) {
    const TempDir folder;
    cyclic_target().write(folder / "target");
    oracle_drafter({family, -1, true}).write(folder / "drafter");
    Decoder decoder(folder / "target", folder / "drafter", one_sequence(15));
    expect_no_draft_accepted(decoder, 15);
  }
}

// ... and rows that are read as those of the other layout are all off by one.
TEST(OracleDrafts, FieldFault2_AreWrongInTheOtherLayout) {
  const TempDir folder;
  cyclic_target().write(folder / "target");
  oracle_drafter({TinyFamily::dspark}).write(folder / "drafter");
  const DrafterConfig misread = take(read_drafter_config(folder / "drafter", BlockLayout::in_place));
  EXPECT_EQ(misread.warnings.size(), 1u);
  Decoder decoder(folder / "target", one_sequence(14), [&](const Target& target) -> std::unique_ptr<DraftSource> {
    return take(DraftModel::load({folder / "drafter"}, misread, tensors_of(target, kPeriod + 1),
                                 {.max_sequences = 1, .max_positions = 200}));
  });
  expect_no_draft_accepted(decoder, 14);
}

// The angles of a drafter go as far as the target's positions, whatever its own config says of its length.
TEST(OracleDrafts, FieldFault3_DoNotEndAtTheDraftersOwnLength) {
  for (const bool has_window : {false, true}) {
    ModelFiles drafter = oracle_drafter({.has_window = has_window});
    drafter.config["max_position_embeddings"] = 64;
    expect_oracle(cyclic_target(), drafter);
  }
}

TEST(OracleDrafts, FieldFault4_HaveHeadCountsOfTheirOwn) {
  expect_oracle(cyclic_target({.layers = 2, .hidden = kHidden, .heads = 8, .kv_heads = 2, .head_dim = 32, .inner = 8}),
                oracle_drafter({}));
}

// The target's tables are padded, the drafter's vocabulary is not: the head is shared all the same.
TEST(OracleDrafts, FieldFault5_AreMadeWithAPaddedHead) {
  expect_oracle(cyclic_target(kTargetStack, 32), oracle_drafter({}));
}

}  // namespace
}  // namespace blockdraft::test
