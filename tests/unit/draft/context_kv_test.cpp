#include "draft/context_kv.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "nn/rope_config.h"
#include "support/op_context.h"
#include "support/take.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTapColumns = 3 * 64;

// The context part of a drafter, with its pages.
class ContextRunner {
 public:
  explicit ContextRunner(int64_t window = 0, int64_t max_positions = 600, int32_t max_sequences = 2) {
    tiny_drafter({.window = window}, 9).write(folder_.path());
    config_ = take(read_drafter_config(folder_.path()));
    store_ =
        std::make_unique<WeightStore>(std::make_shared<const Checkpoint>(take(Checkpoint::open(folder_.path()))), "");
    weights_ = take(load_drafter_weights(*store_, config_));
    inv_freq_ = inverse_frequencies(config_.transformer.rope, config_.transformer.head_dim);
    shape_ = ContextKv::shape(config_, max_sequences, max_positions);
    context_kv_ = std::make_unique<ContextKv>(config_, shape_, take(KvCache::create(shape_, "test pages")));
  }

  void extend(ConstTensorView taps, const std::vector<TapRows>& rows) {
    OpContext context(1, ContextKv::scratch_bytes(config_));  // exactly: running out ends the test
    context_kv_->extend(context, weights_, view_f32(inv_freq_.data(), Shape{std::ssize(inv_freq_)}), taps, rows);
  }
  // The taps' rows from the sequence's end up to `end`.
  void extend_to(int32_t slot, const Matrix& taps, int32_t end) {
    const int32_t length = context_kv_->length(slot);
    extend(taps.view(), {{slot, length, length, end - length}});
  }

  // K and V of one position in all layers and heads.
  std::vector<float> values(int32_t slot, int32_t position) {
    std::vector<float> all;
    const int32_t page = context_kv_->cache().page_table(slot)[position / kPageSize];
    EXPECT_NE(page, kNoPage) << "position " << position;
    for (int32_t layer = 0; layer < shape_.num_layers; ++layer) {
      const PagedKvView kv = context_kv_->cache().layer(layer);
      for (int32_t head = 0; head < kv.num_kv_heads; ++head) {
        const int64_t offset = kv.offset(page, head, position % kPageSize);
        all.insert(all.end(), kv.k_f32() + offset, kv.k_f32() + offset + kv.head_dim);
        all.insert(all.end(), kv.v_f32() + offset, kv.v_f32() + offset + kv.head_dim);
      }
    }
    return all;
  }

  ContextKv& operator*() { return *context_kv_; }
  ContextKv* operator->() { return context_kv_.get(); }
  const KvCacheShape& shape() const { return shape_; }

 private:
  TempDir folder_;
  DrafterConfig config_;
  std::unique_ptr<WeightStore> store_;
  DrafterWeights weights_;
  std::vector<float> inv_freq_;
  KvCacheShape shape_;
  std::unique_ptr<ContextKv> context_kv_;
};

Matrix random_taps(uint32_t seed, int64_t rows) {
  std::mt19937 generator(seed);
  return Matrix::random(generator, rows, kTapColumns);
}

// However the rows arrive, one by one or 600 at once, past several passes of kContextRows.
TEST(ContextKv, DoesNotDependOnThePieces) {
  const Matrix taps = random_taps(1, 600);
  ContextRunner whole;
  whole.extend_to(0, taps, 600);
  EXPECT_EQ(whole->length(0), 600);
  for (const int32_t piece : {1, 7, 255, 256, 257}) {
    ContextRunner pieces;
    for (int32_t end = std::min(piece, 600); pieces->length(0) < 600; end = std::min(end + piece, 600)) {
      pieces.extend_to(0, taps, end);
    }
    for (int32_t position = 0; position < 600; ++position) {
      ASSERT_EQ(pieces.values(0, position), whole.values(0, position)) << "pieces of " << piece << ", " << position;
    }
  }
}

TEST(ContextKv, SequencesDoNotTouchOneAnother) {
  const Matrix first = random_taps(1, 300);
  const Matrix second = random_taps(2, 300);
  Matrix both(600, kTapColumns);
  for (int64_t row = 0; row < 300; ++row) {
    std::copy_n(first.row(row), kTapColumns, both.row(row));
    std::copy_n(second.row(row), kTapColumns, both.row(300 + row));
  }
  ContextRunner alone;
  alone.extend_to(0, first, 300);
  alone.extend_to(1, second, 300);
  ContextRunner together;
  // Of different lengths, in both orders, and so that the border between them falls inside a pass.
  together.extend(both.view(), {{0, 0, 0, 100}, {1, 0, 300, 1}});
  together.extend(both.view(), {{1, 1, 301, 230}, {0, 100, 100, 200}});
  together.extend(both.view(), {{1, 231, 531, 69}});
  for (const int32_t slot : {0, 1}) {
    EXPECT_EQ(together->length(slot), 300);
    for (int32_t position = 0; position < 300; ++position) {
      ASSERT_EQ(together.values(slot, position), alone.values(slot, position)) << "slot " << slot << ", " << position;
    }
  }
}

TEST(ContextKv, ResetForgets) {
  const Matrix taps = random_taps(1, 40);
  const Matrix others = random_taps(2, 60);
  ContextRunner used;
  used.extend_to(0, others, 60);
  used->reset(0);
  EXPECT_EQ(used->length(0), 0);
  EXPECT_EQ(used->cache().num_free_pages(), used->cache().num_pages());
  used.extend_to(0, taps, 40);
  ContextRunner fresh;
  fresh.extend_to(0, taps, 40);
  for (int32_t position = 0; position < 40; ++position) {
    EXPECT_EQ(used.values(0, position), fresh.values(0, position));
  }
}

// Memory is a function of the window: however long the text, the pool never needs more than positions_held, with the
// rows of a block behind the context; and what the window still sees is there.
TEST(ContextKv, FieldFault4_PagesBelowTheWindowAreGivenBack) {
  constexpr int32_t kBlock = 16;
  for (const int64_t window : {1, 15, 16, 17, 20, 100}) {
    ContextRunner windowed(window, 1 << 14);
    EXPECT_EQ(windowed.shape().positions_held, window + kContextRows + kBlock);
    const Matrix taps = random_taps(3, kContextRows);
    ContextRunner whole(0, 1 << 14);
    std::mt19937 generator(7);
    int32_t fewest_free = windowed->cache().num_pages();
    int32_t longest = 0;
    while (windowed->length(1) < 3000) {
      for (const int32_t slot : {0, 1}) {
        const auto rows = static_cast<int32_t>(1 + generator() % (generator() % 4 == 0 ? 256u : 16u));
        const int32_t length = windowed->length(slot);
        windowed.extend(taps.view(), {{slot, length, 0, rows}});
        whole.extend(taps.view(), {{slot, length, 0, rows}});
        const int32_t grown = windowed->length(slot);
        windowed->cache().reserve(slot, grown + kBlock);  // as a block does: it must not fail
        fewest_free = std::min(fewest_free, windowed->cache().num_free_pages());
        for (int32_t position = std::max<int32_t>(0, grown - static_cast<int32_t>(window) + 1); position < grown;
             ++position) {
          ASSERT_EQ(windowed.values(slot, position), whole.values(slot, position)) << "position " << position;
        }
        longest = std::max(longest, grown);
      }
    }
    EXPECT_GE(fewest_free, 0);
    EXPECT_LT(windowed->cache().num_pages() * kPageSize, longest) << "or the test shows nothing";
    for (const int32_t slot : {0, 1}) windowed->reset(slot);
    EXPECT_EQ(windowed->cache().num_free_pages(), windowed->cache().num_pages());
  }
}

TEST(ContextKv, AShortTextNeedsNoMoreThanItsPositions) {
  ContextRunner windowed(100, 64);
  EXPECT_EQ(windowed.shape().positions_held, 64);
}

TEST(ContextKvDeathTest, RowsBeginAtTheEnd) {
  const Matrix taps = random_taps(1, 4);
  ContextRunner runner;
  EXPECT_DEATH(runner.extend(taps.view(), {{0, 1, 0, 2}}), "first_position");
}

}  // namespace
}  // namespace blockdraft::test
