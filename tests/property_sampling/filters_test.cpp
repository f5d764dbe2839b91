// The filters against the vectors of spec section 10 and against sorting.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/argmax.h"
#include "ops/sample.h"
#include "property_sampling/laws.h"
#include "property_sampling/reference_filters.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

std::vector<float> scores_of(std::vector<float> logits, const RowSampling& sampling) {
  OpContext context;
  const auto count = static_cast<int64_t>(logits.size());
  to_scores(context, view_f32(logits.data(), Shape{1, count}), count, &sampling);
  return logits;
}

std::vector<int32_t> kept_ids(const std::vector<float>& scores) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > -INFINITY) ids.push_back(static_cast<int32_t>(i));
  }
  return ids;
}

std::vector<float> logs(std::vector<float> values) {
  for (float& value : values) value = std::log(value);
  return values;
}

TEST(TopP, GivesTheVectorOfTheSpecification) {
  const std::vector<float> logits = logs({0.5f, 0.3f, 0.15f, 0.05f});
  // 0.8 itself lies on the boundary.
  std::vector<float> scores = scores_of(logits, {.temperature = 1.0f, .top_p = 0.7999f});
  EXPECT_EQ(kept_ids(scores), (std::vector<int32_t>{0, 1}));
  softmax_row(scores.data(), scores.data(), 4);
  EXPECT_NEAR(scores[0], 0.625f, 1e-6f);
  EXPECT_NEAR(scores[1], 0.375f, 1e-6f);
  EXPECT_EQ(scores[2], 0.0f);
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_p = 0.8001f})), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_p = 1e-6f})), (std::vector<int32_t>{0}));
}

TEST(TopK, KeepsTheLowerIdsOfEqualScores) {
  const std::vector<float> logits = {1, 3, 2, 3, 2, 2, -0.0f, 0.0f};
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_k = 1})), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_k = 4})), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_k = 7})),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_k = 8})).size(), 8u);
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .top_k = 0})).size(), 8u);
}

TEST(MinP, GoesByTheMostLikelyId) {
  const std::vector<float> logits = logs({0.5f, 0.3f, 0.15f, 0.05f});
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .min_p = 0.31f})), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .min_p = 0.29f})), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 1.0f, .min_p = 1.0f})), (std::vector<int32_t>{0}));
  // At T = 2 the ratios are square roots.
  EXPECT_EQ(kept_ids(scores_of(logits, {.temperature = 2.0f, .min_p = 0.31f})), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(Filters, AgreeWithSorting) {
  std::mt19937 generator(5);
  int compared = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const size_t count = 1 + generator() % 40;
    std::vector<float> logits;
    const bool ties = trial % 3 == 0;
    std::normal_distribution<float> normal(0.0f, 3.0f);
    for (size_t i = 0; i < count; ++i) logits.push_back(ties ? std::round(normal(generator)) : normal(generator));
    const float temperatures[] = {0.3f, 1.0f, 2.0f};
    RowSampling sampling{.temperature = temperatures[generator() % 3]};
    if (generator() % 2 == 0) sampling.top_k = static_cast<int32_t>(generator() % 45);
    if (generator() % 2 == 0) sampling.top_p = 0.05f + 0.9f * static_cast<float>(generator() % 1000) / 1000.0f;
    if (generator() % 3 == 0) sampling.min_p = static_cast<float>(generator() % 500) / 1000.0f;
    std::vector<int32_t> expected;
    if (!keep_by_sorting(logits, sampling, expected)) continue;
    ++compared;
    EXPECT_EQ(kept_ids(scores_of(logits, sampling)), expected)
        << "trial " << trial << ": " << count << " ids, T " << sampling.temperature << ", top_k " << sampling.top_k
        << ", top_p " << sampling.top_p << ", min_p " << sampling.min_p;
  }
  EXPECT_GT(compared, 2000);
}

TEST(Filters, LeaveRowsWithoutTemperatureAndColumnsBeyondTheChoicesAlone) {
  OpContext context;
  std::vector<float> logits = {1, 2, 3, 9, 1, 2, 3, 9};
  const std::vector<RowSampling> rows = {{}, {.temperature = 0.5f, .top_k = 1}};
  to_scores(context, view_f32(logits.data(), Shape{2, 4}), 3, rows.data());
  EXPECT_EQ(logits, (std::vector<float>{1, 2, 3, 9, -INFINITY, -INFINITY, 6, 9}));
}

TEST(Sample, DoesNotDependOnOtherRowsOrThreads) {
  constexpr int64_t kRows = 9;
  constexpr int64_t kCount = 3000;
  std::mt19937 generator(6);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits;
  for (int64_t i = 0; i < kRows * kCount; ++i) logits.push_back(normal(generator));
  std::vector<RowSampling> rows;
  for (int32_t r = 0; r < kRows; ++r) {
    rows.push_back({.temperature = 0.7f, .top_k = 10 * r, .top_p = 0.9f, .noise = {.seed = 4, .position = r}});
  }
  OpContext together(3);
  std::vector<float> scores = logits;
  std::vector<int32_t> ids(kRows, 77);
  to_scores(together, view_f32(scores.data(), Shape{kRows, kCount}), kCount, rows.data());
  sample(together, ids.data(), view_f32(scores.data(), Shape{kRows, kCount}), kCount, rows.data(), nullptr);
  for (int64_t r = 0; r < kRows; ++r) {
    OpContext alone;
    std::vector<float> row(logits.begin() + r * kCount, logits.begin() + (r + 1) * kCount);
    const TensorView view = view_f32(row.data(), Shape{1, kCount});
    int32_t id = 0;
    to_scores(alone, view, kCount, &rows[static_cast<size_t>(r)]);
    sample(alone, &id, view, kCount, &rows[static_cast<size_t>(r)], nullptr);
    EXPECT_EQ(id, ids[static_cast<size_t>(r)]);
    EXPECT_EQ(row, std::vector<float>(scores.begin() + r * kCount, scores.begin() + (r + 1) * kCount));
  }
}

// Ids that noise cannot lift are skipped: the choice must be the one without skipping.
TEST(Sample, IsTheLargestOfScoresAndNoise) {
  OpContext context;
  constexpr int64_t kCount = 500;
  std::mt19937 generator(8);
  for (int32_t trial = 0; trial < 300; ++trial) {
    std::normal_distribution<float> normal(0.0f, trial % 2 == 0 ? 1.0f : 15.0f);
    std::vector<float> scores;
    for (int64_t i = 0; i < kCount; ++i)
      scores.push_back(trial % 5 == 0 ? std::round(normal(generator)) : normal(generator));
    const RowSampling sampling{.temperature = 1.0f, .noise = {.seed = 9, .position = trial}};
    GumbelNoise noise(sampling.noise);
    int32_t expected = 0;
    double best = -INFINITY;
    for (int32_t i = 0; i < kCount; ++i) {
      const double value = static_cast<double>(scores[static_cast<size_t>(i)]) + noise(i);
      if (value > best) expected = i;
      best = std::max(best, value);
    }
    int32_t id = 0;
    sample(context, &id, view_f32(scores.data(), Shape{1, kCount}), kCount, &sampling, nullptr);
    EXPECT_EQ(id, expected);
  }
}

TEST(Sample, SaysWhatIsNoNumberAndSkipsRowsWithoutTemperature) {
  OpContext context;
  std::vector<float> logits = {0, NAN, 1, 0, INFINITY, 1, 0, 1, 2};
  const RowSampling on{.temperature = 1.0f, .top_k = 2, .top_p = 0.5f};
  const std::vector<RowSampling> rows = {on, on, {}};
  std::vector<int32_t> ids = {5, 5, 5};
  const TensorView view = view_f32(logits.data(), Shape{3, 3});
  to_scores(context, view, 3, rows.data());
  sample(context, ids.data(), view, 3, rows.data(), nullptr);
  EXPECT_EQ(ids, (std::vector<int32_t>{kNotANumber, kNotANumber, 5}));
}

TEST(Sample, HasTheLawOfTheFilteredSoftmax) {
  OpContext context;
  const std::vector<float> logits = {0.3f, -1.0f, 2.0f, 1.1f, 0.0f, -3.0f, 1.7f, 0.9f, 1.1f};
  const auto count = static_cast<int64_t>(logits.size());
  for (const float temperature : {0.3f, 1.0f, 2.0f}) {
    for (const int32_t top_k : {0, 4}) {
      for (const float top_p : {1.0f, 0.7f}) {
        RowSampling sampling{.temperature = temperature, .top_k = top_k, .top_p = top_p, .noise = {.seed = 12}};
        std::vector<int32_t> kept;
        ASSERT_TRUE(keep_by_sorting(logits, sampling, kept));
        if (kept.size() < 2) continue;
        Law law = softmax(logits, static_cast<double>(temperature));
        double total = 0;
        for (const int32_t id : kept) total += law[static_cast<size_t>(id)];
        for (int32_t id = 0; id < count; ++id) {
          double& p = law[static_cast<size_t>(id)];
          p = std::ranges::find(kept, id) == kept.end() ? 0 : p / total;
        }
        std::vector<int64_t> counts(logits.size());
        std::vector<float> scores = scores_of(logits, sampling);
        for (sampling.noise.position = 0; sampling.noise.position < 20000; ++sampling.noise.position) {
          int32_t id = 0;
          sample(context, &id, view_f32(scores.data(), Shape{1, count}), count, &sampling, nullptr);
          ++counts[static_cast<size_t>(id)];
        }
        expect_law(counts, law);
      }
    }
  }
}

// Where columns stand for other ids, the noise is that of the ids: target and drafter agree.
TEST(Sample, TakesTheNoiseOfTheTargetIds) {
  OpContext context;
  const std::vector<int32_t> target_ids = {3, 8, 20, 21};
  int differ = 0;
  for (int32_t position = 0; position < 200; ++position) {
    const RowSampling sampling{.temperature = 1.0f, .noise = {.seed = 1, .position = position}};
    std::vector<float> few = {0.1f, 0.5f, 0.2f, 0.4f};
    std::vector<float> all(30, -INFINITY);
    for (size_t i = 0; i < few.size(); ++i) all[static_cast<size_t>(target_ids[i])] = few[i];
    int32_t column = 0;
    int32_t id = 0;
    int32_t unmapped = 0;
    sample(context, &column, view_f32(few.data(), Shape{1, 4}), 4, &sampling, target_ids.data());
    sample(context, &unmapped, view_f32(few.data(), Shape{1, 4}), 4, &sampling, nullptr);
    sample(context, &id, view_f32(all.data(), Shape{1, 30}), 30, &sampling, nullptr);
    EXPECT_EQ(target_ids[static_cast<size_t>(column)], id);
    differ += unmapped != column;
  }
  EXPECT_GT(differ, 50);
}

}  // namespace
}  // namespace blockdraft::test
