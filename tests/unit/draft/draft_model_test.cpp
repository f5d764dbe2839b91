#include "draft/draft_model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/op_context.h"
#include "support/stored_weight.h"
#include "support/take.h"
#include "support/tiny_models.h"
#include "tensor/recorder.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kVocab = 160;
constexpr int64_t kHidden = 64;
constexpr int64_t kTapColumns = 3 * kHidden;
constexpr int32_t kWidth = 15;

std::mt19937 seeded(uint32_t seed) { return std::mt19937(seed); }

// What a target would lend.
struct Tables {
  std::mt19937 generator = seeded(21);
  StoredWeight embed_tokens{generator, Format::bf16, kVocab, kHidden};
  StoredWeight lm_head{generator, Format::bf16, kVocab, kHidden};

  TargetWeights tensors(int64_t num_choices = kVocab) const {
    return {.embed_tokens = embed_tokens.view(),
            .lm_head = lm_head.view(),
            .num_hidden_layers = 4,
            .num_choices = num_choices};
  }
};

class Runner {
 public:
  explicit Runner(const ModelFiles& files, int64_t num_choices = kVocab, int32_t max_sequences = 5) {
    files.write(folder_.path());
    model_ = take(load(max_sequences, num_choices));
  }
  explicit Runner(int64_t window = 0) : Runner(tiny_drafter({.window = window}, 9)) {}

  Result<std::unique_ptr<DraftModel>> load(int32_t max_sequences, int64_t num_choices) {
    return DraftModel::load({folder_.path()}, take(read_drafter_config(folder_.path())), tables_.tensors(num_choices),
                            {.max_sequences = max_sequences, .max_positions = 400});
  }

  // Gives the slot rows [from, to) of the taps.
  void extend(int32_t slot, const Matrix& taps, int32_t from, int32_t to) {
    OpContext context(2, model_->scratch_bytes(2));
    const TapRows rows{slot, from, from, to - from};
    model_->extend_context(context, taps.view(), {&rows, 1});
  }
  Status try_propose(const std::vector<DraftRequest>& requests, std::vector<int32_t>& drafts) {
    int32_t total = 0;
    for (const DraftRequest& request : requests) total += request.width;
    drafts.assign(static_cast<size_t>(total), -7);
    OpContext context(2, model_->scratch_bytes(2));  // exactly: running out ends the test
    std::vector<int32_t> widths(requests.size(), -7);
    const Status status = model_->propose(context, requests, {.ids = drafts, .widths = widths});
    if (status) {
      for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(widths[i], requests[i].width);
    }
    return status;
  }
  std::vector<int32_t> propose(const std::vector<DraftRequest>& requests) {
    std::vector<int32_t> drafts;
    take(try_propose_value(requests, drafts));
    return drafts;
  }
  // Final-normed rows of the whole block: the bits, where ids could agree by chance.
  Matrix hidden(const std::vector<DraftRequest>& requests) {
    Matrix rows(model_->block_rows(requests), kHidden);
    OpContext context(2, model_->scratch_bytes(2));
    model_->block_hidden(context, requests, rows.view());
    return rows;
  }
  DraftModel& operator*() { return *model_; }
  DraftModel* operator->() { return model_.get(); }
  Tables& tables() { return tables_; }

 private:
  Result<bool> try_propose_value(const std::vector<DraftRequest>& requests, std::vector<int32_t>& drafts) {
    if (const Status status = try_propose(requests, drafts); !status) return status.error();
    return true;
  }

  TempDir folder_;
  Tables tables_;
  std::unique_ptr<DraftModel> model_;
};

Matrix random_taps(uint32_t seed, int64_t rows) {
  std::mt19937 generator(seed);
  return Matrix::random(generator, rows, kTapColumns);
}

TEST(DraftModel, IsAsItsConfigSays) {
  Runner runner;
  EXPECT_EQ(runner->trained_width(), kWidth);
  const std::span<const int32_t> ids = runner->target_layer_ids();
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.end()), (std::vector<int32_t>{2, 0, 3}));
  const int64_t layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64;
  EXPECT_EQ(runner->propose_weight_bytes(), 2 * (2 * layer + kVocab * kHidden));
  EXPECT_EQ(runner->propose_flops_per_row(), 2 * (2 * layer + kVocab * kHidden));
  EXPECT_EQ(runner->context_weight_bytes(), 2 * (kTapColumns * kHidden + 4 * 32 * 64));
  EXPECT_EQ(runner->context_flops_per_row(), 2 * (kTapColumns * kHidden + 4 * 32 * 64));
  EXPECT_EQ(runner->kv_bytes_per_position(), 2 * 2 * 32 * 4);
}

// Rows of a block see each other, so a draft depends on the width: every width is a block of its own, and the same
// whether it is asked for first or last, alone or after others.
TEST(DraftModel, ProposesEveryWidth) {
  const Matrix taps = random_taps(1, 50);
  Runner used;
  used.extend(0, taps, 0, 50);
  for (int32_t width = kWidth; width >= 1; --width) {
    const DraftRequest request{.slot = 0, .anchor_id = 17, .position = 50, .width = width};
    Runner fresh;
    fresh.extend(0, taps, 0, 50);
    EXPECT_TRUE(same_bits(used.hidden({request}), fresh.hidden({request}))) << "width " << width;
    const std::vector<int32_t> drafts = used.propose({request});
    EXPECT_EQ(drafts, fresh.propose({request}));
    for (const int32_t id : drafts) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, kVocab);
    }
  }
}

TEST(DraftModel, ProposesWithoutAnyContext) {
  Runner runner;
  const DraftRequest request{.slot = 0, .anchor_id = 17, .position = 0, .width = kWidth};
  EXPECT_EQ(runner.propose({request}).size(), size_t{kWidth});
}

// A block that was rejected leaves nothing behind: the next one is as if it had never been.
TEST(DraftModel, ForgetsARejectedBlock) {
  for (const int64_t window : {0, 20}) {
    const Matrix taps = random_taps(1, 80);
    for (const int32_t kept : {1, 2, 7, 16}) {
      Runner used(window);
      used.extend(0, taps, 0, 50);
      (void)used.propose({{.slot = 0, .anchor_id = 17, .position = 50, .width = kWidth}});
      used.extend(0, taps, 50, 50 + kept);
      Runner fresh(window);
      fresh.extend(0, taps, 0, 50 + kept);
      for (const int32_t width : {kWidth, 4}) {
        const DraftRequest next{.slot = 0, .anchor_id = 99, .position = 50 + kept, .width = width};
        EXPECT_TRUE(same_bits(used.hidden({next}), fresh.hidden({next}))) << kept << " kept, width " << width;
        EXPECT_EQ(used.propose({next}), fresh.propose({next}));
      }
    }
  }
}

// With a sliding window only what is still held can be recorded: the newest positions, in their order.
TEST(DraftModel, RecordsTheContextThatItsPagesHold) {
  constexpr int32_t kWindow = 20;
  const auto recorded_keys = [](int64_t window) {
    Runner runner(window);
    const Matrix taps = random_taps(1, 80);
    for (int32_t from = 0; from < 80; from += 16) runner.extend(0, taps, from, from + 16);
    OpContext context(2, runner->scratch_bytes(2));
    Recorder recorder;
    context->recorder = &recorder;
    const DraftRequest request{.slot = 0, .anchor_id = 17, .position = 80, .width = kWidth};
    std::vector<int32_t> drafts(kWidth);
    int32_t width = 0;
    EXPECT_TRUE(runner->propose(context, {&request, 1}, {.ids = drafts, .widths = {&width, 1}}));
    EXPECT_EQ(recorder.find("drafts")->integers, drafts);
    return *recorder.find("context_k.0");
  };
  const RecordedTensor all = recorded_keys(0);
  const RecordedTensor held = recorded_keys(kWindow);
  EXPECT_EQ(all.rows(), 80);
  EXPECT_GE(held.rows(), kWindow - 1);
  EXPECT_LT(held.rows(), 80);
  EXPECT_EQ(held.row_shape, all.row_shape);
  // Keys of layer 0 depend on their own taps only, whatever the window.
  EXPECT_TRUE(std::equal(held.floats.rbegin(), held.floats.rend(), all.floats.rbegin()));
}

TEST(DraftModel, SequencesOfABatchAreAsAlone) {
  for (const int64_t window : {0, 20}) {
    const std::vector<int32_t> lengths = {50, 3, 0, 120, 17};
    const std::vector<int32_t> widths = {15, 1, 7, 4, 14};
    std::vector<DraftRequest> requests;
    Runner together(window);
    for (const int32_t slot : {3, 0, 4, 2, 1}) {
      const auto i = static_cast<size_t>(slot);
      if (lengths[i] > 0) together.extend(slot, random_taps(30 + static_cast<uint32_t>(slot), 120), 0, lengths[i]);
      requests.push_back({.slot = slot, .anchor_id = 10 * slot, .position = lengths[i], .width = widths[i]});
    }
    const Matrix rows = together.hidden(requests);
    const std::vector<int32_t> drafts = together.propose(requests);
    int64_t first_row = 0;
    size_t first_draft = 0;
    for (DraftRequest request : requests) {
      Runner alone(window);
      if (request.position > 0) {
        alone.extend(0, random_taps(30 + static_cast<uint32_t>(request.slot), 120), 0, request.position);
      }
      request.slot = 0;
      const Matrix expected = alone.hidden({request});
      for (int64_t row = 0; row < expected.rows(); ++row) {
        ASSERT_TRUE(same_bits(rows.row(first_row + row), expected.row(row), kHidden)) << "row " << row;
      }
      const std::vector<int32_t> expected_drafts = alone.propose({request});
      EXPECT_TRUE(std::equal(expected_drafts.begin(), expected_drafts.end(),
                             drafts.begin() + static_cast<int64_t>(first_draft)));
      first_row += expected.rows();
      first_draft += expected_drafts.size();
    }
    EXPECT_EQ(first_row, rows.rows());
    EXPECT_EQ(first_draft, drafts.size());
  }
}

// Draft j is the choice of row j + 1: the anchor's own row gives none.
TEST(DraftModel, FieldFault2_DraftsAreTheChoicesOfTheRowsBehindTheAnchor) {
  Runner runner;
  runner.extend(0, random_taps(1, 30), 0, 30);
  const DraftRequest request{.slot = 0, .anchor_id = 5, .position = 30, .width = 9};
  const Matrix rows = runner.hidden({request});
  ASSERT_EQ(rows.rows(), 10);
  OpContext context;
  std::vector<int32_t> choices(10);
  head_argmax(context, choices.data(), rows.view(), runner->head());
  EXPECT_EQ(runner.propose({request}), std::vector<int32_t>(choices.begin() + 1, choices.end()));
}

// Layers that add nothing: a row of the block is then its own input, normed.
TEST(DraftModel, FieldFault2_TheBlockIsTheAnchorAndThenMasks) {
  ModelFiles files = tiny_drafter({}, 9);
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const char* name : {"self_attn.o_proj.weight", "mlp.down_proj.weight"}) {
      TensorToWrite& tensor = files.tensor(layer + name);
      tensor = bf16_tensor(tensor.name, tensor.shape,
                           std::vector<float>(static_cast<size_t>(tensor.shape[0] * tensor.shape[1])));
    }
  }
  Runner runner(files);
  runner.extend(0, random_taps(1, 30), 0, 30);
  const int32_t mask_id = runner->config().mask_token_id;
  const auto rows_of_anchor = [&](int32_t anchor_id) {
    return runner.hidden({{.slot = 0, .anchor_id = anchor_id, .position = 30, .width = 9}});
  };
  const Matrix masks = rows_of_anchor(mask_id);
  const Matrix fives = rows_of_anchor(5);
  EXPECT_FALSE(same_bits(fives.row(0), masks.row(0), kHidden));
  for (int64_t row = 1; row < masks.rows(); ++row) {
    EXPECT_TRUE(same_bits(masks.row(row), masks.row(0), kHidden)) << "row " << row;
    EXPECT_TRUE(same_bits(fives.row(row), masks.row(0), kHidden)) << "row " << row;
  }
  const std::vector<float> norm = values_of_bf16(files.tensor("norm.weight"));
  const auto expect_normed = [&](const float* found, int32_t id) {
    const std::vector<double> row = runner.tables().embed_tokens.row(id);
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double factor = 1 / std::sqrt(squares / kHidden + 1e-6);
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(found[i]), row[i] * factor * static_cast<double>(norm[i]), 1e-5);
    }
  };
  expect_normed(fives.row(0), 5);
  expect_normed(masks.row(0), mask_id);
}

// Whether the newest block sees what is 90 positions back: a layer with full attention does, whatever the others do.
TEST(DraftModel, FieldFault4_EveryLayerHasAWindowOfItsOwn) {
  const Matrix taps = random_taps(1, 100);
  Matrix other = random_taps(1, 100);
  for (int64_t row = 0; row < 10; ++row) std::copy_n(random_taps(2, 10).row(row), kTapColumns, other.row(row));
  const DraftRequest request{.slot = 0, .anchor_id = 5, .position = 100, .width = 9};
  const auto rows = [&](const std::vector<std::string>& types, const Matrix& of_taps) {
    ModelFiles files = tiny_drafter({.window = 20}, 9);
    files.config["layer_types"] = types;
    Runner runner(files);
    runner.extend(0, of_taps, 0, 100);
    return runner.hidden({request});
  };
  const std::string slides = "sliding_attention";
  const std::string full = "full_attention";
  std::vector<Matrix> distinct;
  for (const std::vector<std::string>& types :
       std::vector<std::vector<std::string>>{{slides, slides}, {slides, full}, {full, slides}, {full, full}}) {
    distinct.push_back(rows(types, taps));
    const bool sees_all = std::ranges::find(types, full) != types.end();
    EXPECT_NE(bool{same_bits(distinct.back(), rows(types, other))}, sees_all);
    for (size_t i = 0; i + 1 < distinct.size(); ++i) EXPECT_FALSE(same_bits(distinct[i], distinct.back()));
  }
}

// The heads of DFlash2 and DSpark in another type of the same values.
TEST(DraftModel, FieldFault6_SmallHeadsMayHaveEveryFloatType) {
  const Matrix taps = random_taps(1, 30);
  const DraftRequest request{.slot = 0, .anchor_id = 5, .position = 30, .width = 9};
  for (const TinyFamily family : {TinyFamily::dflash2, TinyFamily::dspark}) {
    const auto drafts = [&](const char* dtype) {
      ModelFiles files = tiny_drafter({.family = family}, 9);
      for (TensorToWrite& tensor : files.tensors) {
        if (!tensor.name.starts_with("candidate_selector.") && !tensor.name.starts_with("markov_head.")) continue;
        const std::vector<float> values = values_of_bf16(tensor);
        if (std::string_view(dtype) == "F32") tensor = f32_tensor(tensor.name, tensor.shape, values);
        if (std::string_view(dtype) == "F16") tensor = f16_tensor(tensor.name, tensor.shape, values);
      }
      Runner runner(files);
      runner.extend(0, taps, 0, 30);
      return runner.propose({request});
    };
    EXPECT_EQ(drafts("F32"), drafts("BF16"));
    EXPECT_EQ(drafts("F16"), drafts("BF16"));
  }
}

TEST(DraftModel, FieldFault5_NeverProposesPadding) {
  constexpr int64_t kNumChoices = 5;
  Runner runner(tiny_drafter({}, 9), kNumChoices);
  runner.extend(0, random_taps(1, 30), 0, 30);
  for (int32_t anchor = 0; anchor < 20; ++anchor) {
    for (const int32_t id : runner.propose({{.slot = 0, .anchor_id = anchor, .position = 30, .width = kWidth}})) {
      EXPECT_LT(id, kNumChoices);
    }
  }
}

// Draft ids are rows of a smaller head; what is proposed are target ids, of those that are real.
TEST(DraftModel, MapsAReducedVocabulary) {
  ModelFiles files = tiny_drafter({}, 9);
  std::mt19937 generator(3);
  const std::vector<int64_t> ids = {4, 9, 77, 120, 158};
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < ids.size(); ++i) offsets.push_back(ids[i] - static_cast<int64_t>(i));
  files.config["draft_vocab_size"] = ids.size();
  files.tensors.push_back(random_tensor(generator, "lm_head.weight", {5, kHidden}, 1.0));
  files.tensors.push_back(raw_tensor("d2t", "I64", {5}, offsets));
  for (const auto& [num_choices, num_draft_ids] : {std::pair{160, 5}, {121, 4}, {120, 3}, {78, 3}, {77, 2}}) {
    Runner runner(files, num_choices);
    EXPECT_EQ(runner->head().num_choices, num_draft_ids);
    std::set<int32_t> distinct;
    for (uint32_t seed = 0; seed < 8; ++seed) {
      runner->reset(0);
      runner.extend(0, random_taps(seed, 20), 0, 20);
      const DraftRequest request{.slot = 0, .anchor_id = 50, .position = 20, .width = kWidth};
      const Matrix rows = runner.hidden({request});
      std::vector<int32_t> expected(kWidth + 1);
      OpContext context;
      head_argmax(context, expected.data(), rows.view(),
                  {.weight = runner->head().weight, .num_choices = num_draft_ids});
      expected.erase(expected.begin());
      for (int32_t& id : expected) id = static_cast<int32_t>(ids[static_cast<size_t>(id)]);
      EXPECT_EQ(runner.propose({request}), expected);
      distinct.insert(expected.begin(), expected.end());
    }
    EXPECT_GE(distinct.size(), 2u);
  }
}

TEST(DraftModel, FieldFault5_ScalesEmbeddingsAsItsConfigOrTheTargetSays) {
  const Matrix taps = random_taps(1, 30);
  const DraftRequest request{.slot = 0, .anchor_id = 5, .position = 30, .width = 9};
  Runner plain;
  plain.extend(0, taps, 0, 30);
  ModelFiles files = tiny_drafter({}, 9);
  files.config["input_embedding_scale"] = 1.0;
  Runner same(files);
  same.extend(0, taps, 0, 30);
  EXPECT_TRUE(same_bits(plain.hidden({request}), same.hidden({request})));
  files.config["input_embedding_scale"] = 8.0;
  Runner scaled(files);
  scaled.extend(0, taps, 0, 30);
  EXPECT_FALSE(same_bits(plain.hidden({request}), scaled.hidden({request})));
}

TEST(DraftModel, OwnTablesReplaceTheTargets) {
  const Matrix taps = random_taps(1, 30);
  const DraftRequest request{.slot = 0, .anchor_id = 5, .position = 30, .width = 9};
  ModelFiles files = tiny_drafter({}, 9);
  std::mt19937 generator(3);
  files.tensors.push_back(random_tensor(generator, "embed_tokens.weight", {kVocab, kHidden}, 1.0));
  files.tensors.push_back(random_tensor(generator, "lm_head.weight", {kVocab, kHidden}, 1.0));
  Runner own(files);
  own.extend(0, taps, 0, 30);
  EXPECT_NE(own->head().weight.data, own.tables().lm_head.view().data);
  Runner borrowed;
  borrowed.extend(0, taps, 0, 30);
  EXPECT_EQ(borrowed->head().weight.data, borrowed.tables().lm_head.view().data);
  EXPECT_FALSE(same_bits(own.hidden({request}), borrowed.hidden({request})));
}

TEST(DraftModel, FieldFault8_LogitsThatAreNotNumbersAreAnError) {
  Runner runner;
  Matrix taps = random_taps(1, 30);
  taps.row(12)[5] = std::nanf("");
  runner.extend(0, taps, 0, 30);
  runner.extend(1, random_taps(2, 30), 0, 30);
  const DraftRequest spoiled{.slot = 0, .anchor_id = 5, .position = 30, .width = 9};
  const DraftRequest sound{.slot = 1, .anchor_id = 5, .position = 30, .width = 9};
  std::vector<int32_t> drafts;
  expect_error(runner.try_propose({sound, spoiled}, drafts), Code::numeric, {"config.json", "not numbers"});
  const std::vector<int32_t> alone = runner.propose({sound});
  // The slot is usable again after a reset: no NaN of the pages is ever read.
  runner->reset(0);
  runner.extend(0, random_taps(2, 30), 0, 30);
  EXPECT_EQ(runner.propose({spoiled}), alone);
}

TEST(DraftModel, RefusesATargetThatItDoesNotFit) {
  const TempDir folder;
  tiny_drafter({}, 9).write(folder.path());
  const DrafterConfig config = take(read_drafter_config(folder.path()));
  const Tables tables;
  TargetWeights target = tables.tensors();
  target.num_hidden_layers = 5;
  expect_error(DraftModel::load({folder.path()}, config, target, {.max_positions = 64}), Code::mismatch,
               {"config.json", "decoder layers", "4", "5"});
}

TEST(DraftModelDeathTest, WidthAndPositionAreTheCallersToKeep) {
  Runner runner;
  runner.extend(0, random_taps(1, 30), 0, 30);
  EXPECT_DEATH((void)runner.propose({{.slot = 0, .position = 30, .width = kWidth + 1}}), "width");
  EXPECT_DEATH((void)runner.propose({{.slot = 0, .position = 30, .width = 0}}), "width");
  EXPECT_DEATH((void)runner.propose({{.slot = 0, .position = 29, .width = 4}}), "position");
}

}  // namespace
}  // namespace blockdraft::test
