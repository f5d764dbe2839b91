#include "nn/decoder_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "nn/batch.h"
#include "nn/kv_cache.h"
#include "nn/rope_config.h"
#include "ops/rope.h"
#include "support/naive_target.h"
#include "support/op_context.h"
#include "support/take.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kLength = 37;

// One layer of a target, fed with the rows of a text in passes of `piece` rows; returns what it adds them up to.
class LayerRunner {
 public:
  explicit LayerRunner(const std::filesystem::path& folder, CpuIsa isa = isa_under_test())
      : isa_(isa),
        config_(take(read_target_config(folder)).transformer),
        store_(std::make_shared<const Checkpoint>(take(Checkpoint::open(folder))), ""),
        layer_(take(load_decoder_layer(store_, config_, "model.layers.0."))),
        inv_freq_(inverse_frequencies(config_.rope, config_.head_dim)) {}

  Matrix run(const Rows& embeddings, int64_t piece) {
    const auto length = static_cast<int64_t>(embeddings.size());
    Matrix h(length, config_.hidden_size);
    for (int64_t row = 0; row < length; ++row) {
      for (int64_t i = 0; i < config_.hidden_size; ++i) {
        h.row(row)[i] = static_cast<float>(embeddings[static_cast<size_t>(row)][static_cast<size_t>(i)]);
      }
    }
    KvCache cache = take(KvCache::create({.num_layers = 1,
                                          .num_kv_heads = static_cast<int32_t>(config_.num_key_value_heads),
                                          .head_dim = static_cast<int32_t>(config_.head_dim),
                                          .max_sequences = 1,
                                          .max_positions = length,
                                          .positions_held = length},
                                         "test pages"));
    Batch batch(static_cast<int32_t>(length), 1, cache.page_table_stride());
    for (int64_t first = 0; first < length; first += piece) {
      const int64_t rows = std::min(piece, length - first);
      Matrix rope_rows(rows, config_.head_dim);
      cache.reserve(0, first + rows);
      batch.clear();
      batch.add(static_cast<int32_t>(first), static_cast<int32_t>(rows), nullptr, cache.page_table(0));
      rope_table(rope_context_, rope_rows.view(), batch.view({}).positions,
                 view_f32(inv_freq_.data(), Shape{static_cast<int64_t>(inv_freq_.size())}), 1.0f);
      const LayerInput input{config_, batch.view({}), rope_rows.view()};
      OpContext context(2, decoder_layer_scratch_bytes(config_, 2, rows), isa_);  // exactly: running out ends the test
      decoder_layer(context, layer_, input, {}, cache.layer(0), rows_of(h.view(), first, rows));
      EXPECT_EQ(context->arena->used_bytes(), 0u);
    }
    return h;
  }

  const DecoderLayer& layer() const { return layer_; }
  const TransformerConfig& config() const { return config_; }

 private:
  CpuIsa isa_;
  TransformerConfig config_;
  WeightStore store_;
  DecoderLayer layer_;
  std::vector<float> inv_freq_;
  OpContext rope_context_;
};

TEST(DecoderLayer, EqualsItsDefinition) {
  const TempDir folder;
  tiny_target({.stack = {.layers = 1}}, 8).write(folder / "target");
  std::vector<int32_t> ids(kLength);
  std::iota(ids.begin(), ids.end(), 3);
  const std::vector<Rows> expected = NaiveTarget(folder / "target").residual_stream(ids);
  LayerRunner runner(folder / "target", float32_isa());
  const Matrix whole = runner.run(expected[0], kLength);
  for (int64_t row = 0; row < kLength; ++row) {
    const std::vector<double>& wanted = expected[1][static_cast<size_t>(row)];
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(whole.row(row)[i]), wanted[i], 1e-4) << "row " << row << ", channel " << i;
    }
  }
  for (const int64_t piece : {1, 5, 16}) EXPECT_TRUE(same_bits(runner.run(expected[0], piece), whole)) << piece;
}

TEST(DecoderLayer, CountsItsWeights) {
  const TempDir folder;
  tiny_target({.stack = {.layers = 1}}, 8).write(folder / "target");
  const LayerRunner runner(folder / "target");
  // q and o are 64 x 64, k and v 32 x 64, and the three of the MLP 96 x 64.
  const int64_t elements = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64;
  EXPECT_EQ(decoder_layer_bytes(runner.layer()), 2 * elements);
  EXPECT_EQ(decoder_layer_flops_per_row(runner.layer()), 2 * elements);
}

TEST(DecoderLayer, BiasesAreReadWhereTheConfigHasThem) {
  const TempDir folder;
  ModelFiles files = tiny_drafter({.stack = {.layers = 1, .bias = true}}, 8);
  files.write(folder / "drafter");
  TransformerConfig config = LayerRunner([&] {
                               tiny_target({.stack = {.layers = 1}}, 8).write(folder / "target");
                               return folder / "target";
                             }())
                                 .config();
  config.attention_bias = true;
  WeightStore store(std::make_shared<const Checkpoint>(take(Checkpoint::open(folder / "drafter"))), "");
  const DecoderLayer layer = take(load_decoder_layer(store, config, "layers.0."));
  for (const WeightView& weight : layer.qkv_proj) EXPECT_NE(weight.bias, nullptr);
  EXPECT_NE(layer.o_proj.bias, nullptr);
  EXPECT_EQ(layer.gate_up_proj[0].bias, nullptr);
  EXPECT_EQ(layer.down_proj.bias, nullptr);
}

}  // namespace
}  // namespace blockdraft::test
