#include "target/dense_target.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/naive_target.h"
#include "support/op_context.h"
#include "support/take.h"
#include "support/tiny_models.h"
#include "target/target.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kHidden = 64;

struct Part {
  int32_t slot;
  std::vector<int32_t> ids;
};

std::vector<int32_t> some_ids(int32_t first, int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((first + 37 * i) % 160);
  return ids;
}

// A target of a folder of its own.
class Runner {
 public:
  explicit Runner(const TinyTarget& shape = {}, int32_t max_sequences = 3, CpuIsa isa = isa_under_test()) : isa_(isa) {
    tiny_target(shape, 4).write(folder_.path());
    target_ = take(load_target({folder_.path()}, take(read_target_config(folder_.path())),
                               {.max_sequences = max_sequences, .max_positions = 80, .max_rows = 64}));
  }

  // Final-normed hidden states of all rows, and the taps.
  struct Output {
    Matrix hidden, taps;
  };
  Output forward(const std::vector<Part>& parts, const std::vector<int32_t>& tap_layer_ids = {}) {
    std::vector<SequenceRows> sequences;
    int32_t rows = 0;
    for (const Part& part : parts) {
      const auto count = static_cast<int32_t>(part.ids.size());
      target_->reserve(part.slot, count);
      sequences.push_back({part.slot, static_cast<int32_t>(target_->committed_length(part.slot)), part.ids});
      rows += count;
    }
    std::vector<int32_t> all_rows(static_cast<size_t>(rows));
    std::iota(all_rows.begin(), all_rows.end(), 0);
    Output output{Matrix(rows, kHidden), Matrix(rows, std::max<int64_t>(1, std::ssize(tap_layer_ids) * kHidden))};
    OpContext context(2, target_->scratch_bytes(2), isa_);  // exactly: running out ends the test
    target_->forward(context, {.sequences = sequences,
                               .hidden_rows = all_rows,
                               .hidden = output.hidden.view(),
                               .tap_layer_ids = tap_layer_ids,
                               .taps = output.taps.view()});
    return output;
  }
  Target& operator*() { return *target_; }
  Target* operator->() { return target_.get(); }
  const TempDir& folder() const { return folder_; }

 private:
  CpuIsa isa_;
  TempDir folder_;
  std::unique_ptr<Target> target_;
};

TEST(Qwen3, FieldFault1_TapsAreTheOutputsOfLayersInTheOrderAsked) {
  Runner runner({}, 1, float32_isa());
  const std::vector<int32_t> ids = some_ids(5, 20);
  const std::vector<Rows> stream = NaiveTarget(runner.folder().path()).residual_stream(ids);
  const std::vector<int32_t> layer_ids = {2, -1, 3, 0, 2};
  const Runner::Output output = runner.forward({{0, ids}}, layer_ids);
  for (size_t tap = 0; tap < layer_ids.size(); ++tap) {
    const Rows& expected = stream[static_cast<size_t>(layer_ids[tap] + 1)];
    for (size_t row = 0; row < ids.size(); ++row) {
      const float* found = output.taps.row(static_cast<int64_t>(row)) + static_cast<int64_t>(tap) * kHidden;
      for (size_t i = 0; i < kHidden; ++i) {
        ASSERT_NEAR(static_cast<double>(found[i]), expected[row][i], 3e-4) << "tap " << tap << ", row " << row;
      }
    }
  }
}

TEST(Qwen3, GivesOnlyTheHiddenRowsAskedFor) {
  Runner runner;
  const std::vector<int32_t> ids = some_ids(5, 20);
  const Runner::Output all = runner.forward({{0, ids}});
  runner->reset(0);
  runner->reserve(0, 20);
  const SequenceRows sequence{0, 0, ids};
  const std::vector<int32_t> rows = {0, 7, 19};
  Matrix hidden(3, kHidden);
  OpContext context;
  runner->forward(context, {.sequences = {&sequence, 1}, .hidden_rows = rows, .hidden = hidden.view()});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(hidden.row(i), all.hidden.row(rows[static_cast<size_t>(i)]), kHidden));
  }
}

// Rows that were not kept leave no trace, at every number kept and with wrong ids among those given back.
TEST(Qwen3, FieldFault12_RollsBackWhatIsNotCommitted) {
  Runner runner;
  const std::vector<int32_t> text = some_ids(9, 40);
  const Matrix expected = runner.forward({{0, text}}).hidden;
  for (int32_t kept = 0; kept <= 18; ++kept) {
    runner->reset(0);
    EXPECT_EQ(runner->committed_length(0), 0);
    runner.forward({{0, {text.begin(), text.begin() + 15}}});
    runner->commit(0, 15);
    std::vector<int32_t> tentative(text.begin() + 15, text.begin() + 33);
    for (size_t i = static_cast<size_t>(kept); i < tentative.size(); ++i) tentative[i] = (tentative[i] + 1) % 160;
    const Matrix verified = runner.forward({{0, tentative}}).hidden;
    for (int32_t row = 0; row < kept; ++row) {
      EXPECT_TRUE(same_bits(verified.row(row), expected.row(15 + row), kHidden)) << "row " << row;
    }
    runner->commit(0, kept);
    EXPECT_EQ(runner->committed_length(0), 15 + kept);
    const Matrix rest = runner.forward({{0, {text.begin() + 15 + kept, text.end()}}}).hidden;
    for (int64_t row = 0; row < rest.rows(); ++row) {
      ASSERT_TRUE(same_bits(rest.row(row), expected.row(15 + kept + row), kHidden)) << kept << " kept, row " << row;
    }
  }
}

TEST(Qwen3, RowsHaveTheSameBitsInAnyCompany) {
  Runner runner;
  const std::vector<int32_t> a = some_ids(1, 9);
  const std::vector<int32_t> b = some_ids(2, 17);
  const std::vector<int32_t> c = some_ids(3, 1);
  const Runner::Output together = runner.forward({{2, b}, {0, c}, {1, a}}, {1});
  int64_t first = 0;
  for (const auto& ids : {b, c, a}) {
    Runner alone({}, 1);
    const Runner::Output expected = alone.forward({{0, ids}}, {1});
    for (int64_t row = 0; row < expected.hidden.rows(); ++row) {
      EXPECT_TRUE(same_bits(together.hidden.row(first + row), expected.hidden.row(row), kHidden));
      EXPECT_TRUE(same_bits(together.taps.row(first + row), expected.taps.row(row), kHidden));
    }
    first += expected.hidden.rows();
  }
}

TEST(Qwen3, FieldFault5_ATiedHeadIsTheEmbedding) {
  Runner tied({.tied = true});
  EXPECT_EQ(tied->lm_head().data, tied->embed_tokens().data);
  Runner untied;
  EXPECT_NE(untied->lm_head().data, untied->embed_tokens().data);
  EXPECT_EQ(untied->lm_head().out_features, 160);
}

TEST(Qwen3, CountsWhatAPassReads) {
  Runner runner;
  const int64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64;
  EXPECT_EQ(runner->weight_bytes(), 2 * (4 * layer + 160 * 64));
  EXPECT_EQ(runner->flops_per_row(), 2 * (4 * layer + 160 * 64));
  EXPECT_EQ(runner->state_bytes_per_position(), 4 * 2 * 32 * 4);
  EXPECT_EQ(runner->state_bytes(), size_t{3} * 80 * 4 * 2 * 32 * 4);
  EXPECT_GE(runner->mapped_bytes(), static_cast<size_t>(runner->weight_bytes()));
}

class Qwen3Files : public testing::Test {
 protected:
  Result<std::unique_ptr<Target>> load(const ModelFiles& files) {
    files.write(folder_.path());
    auto config = read_target_config(folder_.path());
    if (!config) return config.error();
    return load_target({folder_.path()}, *config, {.max_positions = 16, .max_rows = 16});
  }
  TempDir folder_;
};

TEST_F(Qwen3Files, ATiedFileMayCarryTheCopy) {
  ModelFiles files = tiny_target({.tied = true}, 4);
  std::mt19937 generator(1);
  files.tensors.push_back(random_tensor(generator, "lm_head.weight", {160, 64}, 1.0));
  auto target = take(load(files));
  EXPECT_EQ(target->lm_head().data, target->embed_tokens().data);
}

// Quantized, too; what of it does not go together does not matter, as none of it is used.
TEST_F(Qwen3Files, ATiedFileMayCarryAQuantizedCopy) {
  const std::vector<uint8_t> zeros(160 * 64);
  const std::vector<uint8_t> packed(160 * 32);
  const std::vector<uint8_t> groups(160 * 4);
  const TensorToWrite scale_of_groups = fp8_tensor("lm_head.weight_scale", {160, 4}, groups);
  const std::vector<std::vector<TensorToWrite>> copies = {
      {fp8_tensor("lm_head.weight", {160, 64}, zeros), f32_tensor("lm_head.weight_scale", {}, {1}),
       f32_tensor("lm_head.input_scale", {}, {1})},
      {fp8_tensor("lm_head.weight", {160, 64}, zeros), f32_tensor("lm_head.weight_scale_inv", {2, 1}, {1, 1})},
      {raw_tensor("lm_head.weight", "U8", {160, 32}, packed), scale_of_groups,
       f32_tensor("lm_head.weight_scale_2", {}, {1})},
      {raw_tensor("lm_head.weight_packed", "U8", {160, 32}, packed), scale_of_groups,
       f32_tensor("lm_head.weight_global_scale", {1}, {1}), f32_tensor("lm_head.input_global_scale", {1}, {1})},
      {raw_tensor("lm_head.weight_packed", "U8", {160, 32}, packed)}};
  for (const std::vector<TensorToWrite>& copy : copies) {
    ModelFiles files = tiny_target({.tied = true}, 4);
    files.tensors.insert(files.tensors.end(), copy.begin(), copy.end());
    auto target = take(load(files));
    EXPECT_EQ(target->lm_head().data, target->embed_tokens().data);
  }
}

TEST_F(Qwen3Files, EveryTensorMustBeThere) {
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "model.layers.3.self_attn.q_norm.weight",
        "model.layers.2.self_attn.v_proj.weight", "model.layers.0.mlp.down_proj.weight"}) {
    ModelFiles files = tiny_target({}, 4);
    files.remove(name);
    expect_error(load(files), Code::not_found, {folder_.path().string(), name});
  }
}

TEST_F(Qwen3Files, OtherTensorsAreRefused) {
  ModelFiles files = tiny_target({}, 4);
  std::mt19937 generator(1);
  files.tensors.push_back(random_tensor(generator, "model.layers.4.input_layernorm.weight", {64}, 1.0));
  files.tensors.push_back(random_tensor(generator, "zz", {64}, 1.0));
  expect_error(load(files), Code::unsupported,
               {"model.safetensors", "'model.layers.4.input_layernorm.weight'", "Qwen3ForCausalLM", "2 such tensors"});
}

TEST_F(Qwen3Files, ShapesMustBeThoseOfTheConfig) {
  ModelFiles files = tiny_target({}, 4);
  std::mt19937 generator(1);
  files.tensor("model.layers.1.mlp.up_proj.weight") =
      random_tensor(generator, "model.layers.1.mlp.up_proj.weight", {64, 96}, 1.0);
  expect_error(load(files), Code::mismatch, {"model.layers.1.mlp.up_proj.weight", "[64, 96]", "[96, 64]"});
}

TEST_F(Qwen3Files, OtherArchitecturesAreRefused) {
  tiny_target({}, 4).write(folder_.path());
  TargetConfig config = take(read_target_config(folder_.path()));
  config.architecture = "GPT2LMHeadModel";
  expect_error(load_target({folder_.path()}, config, {.max_positions = 16, .max_rows = 16}), Code::unsupported,
               {"config.json", "GPT2LMHeadModel", "Qwen3ForCausalLM"});
}

TEST(Qwen3DeathTest, APassBeginsWhereTheLastCommitEnded) {
  Runner runner;
  const std::vector<int32_t> ids = some_ids(1, 4);
  runner->reserve(0, 4);
  const SequenceRows sequence{0, 1, ids};
  OpContext context;
  EXPECT_DEATH(runner->forward(context, {.sequences = {&sequence, 1}}), "committed_length");
}

}  // namespace
}  // namespace blockdraft::test
