// Choices of tokens: the card against the CPU, to the id.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/argmax.h"
#include "ops/candidate_walk.h"
#include "ops/sample.h"
#include "ops/top_k.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OnCard;
using test::same_bits;

// Values of few different numbers, so that ties are everywhere.
Matrix with_ties(std::mt19937& generator, int64_t rows, int64_t columns, int64_t stride) {
  Matrix matrix = Matrix::random(generator, rows, columns, stride);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) matrix.row(r)[c] = std::round(matrix.row(r)[c] * 4.0f) / 4.0f;
  }
  return matrix;
}

TEST(Argmax, TiesNaNAndInfinity) {
  std::mt19937 generator(1);
  OnCard on;
  for (const int64_t choices : {1, 31, 1000, 4096, 151936}) {
    Matrix logits = with_ties(generator, 7, choices, choices + 5);
    logits.row(1)[choices / 2] = std::nanf("");
    std::fill_n(logits.row(2), choices, -HUGE_VALF);
    logits.row(3)[choices - 1] = HUGE_VALF;
    std::fill_n(logits.row(4), choices, 0.0f);
    logits.row(4)[0] = -0.0f;
    for (const int64_t num_choices : {choices, std::max<int64_t>(1, choices - 3)}) {
      std::vector<int32_t> expected(7);
      argmax(on.cpu(), expected.data(), logits.view(), num_choices);
      int32_t* ids = on.poisoned_i32(7);
      argmax(on.card(), ids, on.upload(logits), num_choices);
      EXPECT_EQ(on.download(ids, 7), expected) << num_choices;
    }
  }
}

TEST(TopK, TiesAndNaN) {
  std::mt19937 generator(2);
  OnCard on;
  for (const auto& [choices, k] : {std::pair<int64_t, int64_t>(1, 1),
                                   {70, 70},
                                   {5000, 16},
                                   {4096, 1000},
                                   {4097, 1024},
                                   {151936, 32},
                                   {151936, 3},
                                   {300000, 1024}}) {
    Matrix logits = with_ties(generator, 4, choices + 9, choices + 11);
    logits.row(2)[choices / 2] = std::nanf("");
    std::vector<int32_t> expected(static_cast<size_t>(4 * k));
    Matrix values(4, k);
    top_k(on.cpu(), expected.data(), values.view(), logits.view(), choices);
    int32_t* ids = on.poisoned_i32(4 * k);
    const TensorView values_on_card = on.upload(Matrix(4, k, k + 2));
    top_k(on.card(), ids, values_on_card, on.upload(logits), choices);
    EXPECT_EQ(on.download(ids, 4 * k), expected) << choices << ", " << k;
    const Matrix found = on.download(values_on_card);
    EXPECT_TRUE(found.gaps_untouched());
    for (const int64_t row : {0, 1, 3}) EXPECT_TRUE(same_bits(found.row(row), values.row(row), k));
  }
}

std::vector<RowSampling> samplings() {
  const auto key = [](uint64_t seed, int32_t position) {
    return NoiseKey{.seed = seed, .choice = 1, .position = position};
  };
  return {{.temperature = 1.0f, .noise = key(1, 10)},
          {.temperature = 0.0f, .noise = key(2, 10)},
          {.temperature = 0.7f, .top_k = 20, .noise = key(3, 11)},
          {.temperature = 1.3f, .top_p = 0.8f, .noise = key(4, 12)},
          {.temperature = 0.9f, .min_p = 0.05f, .noise = key(5, 13)},
          {.temperature = 1.0f, .top_k = 50, .top_p = 0.9f, .min_p = 0.01f, .noise = key(6, 14)},
          {.temperature = 1.0f, .top_k = 5, .noise = key(uint64_t{7} << 40, 15)}};
}

TEST(Scores, FiltersKeepWhatTheCpuKeeps) {
  std::mt19937 generator(3);
  const std::vector<RowSampling> rows = samplings();
  OnCard on;
  const RowSampling* rows_on_card = on.upload(rows);
  for (const int64_t choices : {1, 40, 1000, 30001, 151936}) {
    for (const bool ties : {false, true}) {
      Matrix scores =
          ties ? with_ties(generator, 7, choices, choices + 1) : Matrix::random(generator, 7, choices, choices + 1);
      const TensorView scores_on_card = on.upload(scores);
      to_scores(on.card(), scores_on_card, choices, rows_on_card);
      to_scores(on.cpu(), scores.view(), choices, rows.data());
      const Matrix found = on.download(scores_on_card);
      EXPECT_TRUE(found.gaps_untouched());
      EXPECT_TRUE(same_bits(found, scores)) << choices << (ties ? " with ties" : "");
    }
  }
}

TEST(Scores, RowsWithoutALawKeepTheirLogits) {
  std::mt19937 generator(4);
  OnCard on;
  const std::vector<RowSampling> rows(3, {.temperature = 0.5f, .top_k = 3, .top_p = 0.5f});
  Matrix scores = Matrix::random(generator, 3, 5000);
  scores.row(0)[77] = std::nanf("");
  scores.row(1)[4999] = HUGE_VALF;
  const TensorView scores_on_card = on.upload(scores);
  to_scores(on.card(), scores_on_card, 5000, on.upload(rows));
  to_scores(on.cpu(), scores.view(), 5000, rows.data());
  EXPECT_EQ(test::relative_error(on.download(scores_on_card), scores), 0.0);  // a NaN may have other bits
}

TEST(Sample, DrawsWhatTheCpuDraws) {
  std::mt19937 generator(5);
  OnCard on;
  std::vector<RowSampling> rows = samplings();
  for (uint64_t i = 0; i < 60; ++i) {
    rows.push_back({.temperature = 1.0f, .noise = {.seed = i, .position = static_cast<int32_t>(i)}});
  }
  const auto num_rows = static_cast<int64_t>(rows.size());
  const RowSampling* rows_on_card = on.upload(rows);
  for (const int64_t choices : {1, 7, 1000, 151936}) {
    Matrix scores = Matrix::random(generator, num_rows, choices, choices + 3);
    scores.row(10)[choices / 2] = std::nanf("");
    scores.row(11)[choices / 2] = HUGE_VALF;
    std::fill_n(scores.row(12), choices, -HUGE_VALF);
    std::fill_n(scores.row(13), choices / 2, -HUGE_VALF);
    std::vector<int32_t> target_ids(static_cast<size_t>(choices));
    std::iota(target_ids.begin(), target_ids.end(), 5);
    std::shuffle(target_ids.begin(), target_ids.end(), generator);
    for (const bool mapped : {false, true}) {
      std::vector<int32_t> expected(rows.size(), -7);
      sample(on.cpu(), expected.data(), scores.view(), choices, rows.data(), mapped ? target_ids.data() : nullptr);
      int32_t* ids = on.upload(std::vector<int32_t>(rows.size(), -7));
      sample(on.card(), ids, on.upload(scores), choices, rows_on_card, mapped ? on.upload(target_ids) : nullptr);
      EXPECT_EQ(on.download(ids, num_rows), expected) << choices;
    }
  }
}

TEST(Sample, CandidateNoiseHasTheBitsOfTheCpu) {
  std::mt19937 generator(6);
  OnCard on;
  std::vector<RowSampling> rows;
  for (uint64_t i = 0; i < 200; ++i) {
    rows.push_back({.temperature = i % 7 == 0 ? 0.0f : 0.8f, .noise = {.seed = i * 977, .position = 3}});
  }
  std::vector<int32_t> candidates;
  for (int i = 0; i < 200 * 33; ++i) candidates.push_back(static_cast<int32_t>(generator() % 151936));
  std::fill_n(candidates.begin() + 5 * 33, 33, kNotANumber);
  Matrix expected(200, 33);
  candidate_noise(on.cpu(), expected.view(), candidates.data(), rows.data());
  const TensorView noise = on.upload(Matrix(200, 33, 40));
  candidate_noise(on.card(), noise, on.upload(candidates), on.upload(rows));
  const Matrix found = on.download(noise);
  EXPECT_TRUE(found.gaps_untouched());
  EXPECT_TRUE(same_bits(found, expected));
}

// Candidates far apart, so that the order of sums decides nothing.
TEST(CandidateWalk, WalksAsTheCpuDoes) {
  std::mt19937 generator(7);
  for (const auto& [k, rank] : {std::pair<int64_t, int64_t>(1, 16), {8, 64}, {33, 256}}) {
    for (const test::Format format : {test::Format::f32, test::Format::bf16, test::Format::fp8_row}) {
      for (const bool with_noise : {false, true}) {
        OnCard on;
        const std::vector<int32_t> first_row{0, 5, 5, 12, 13};
        const std::vector<int32_t> anchors{3, 1, 99, 42};
        const test::StoredWeight predecessor(generator, format, 100, rank);
        const test::StoredWeight successor(generator, format, 100, rank);
        Matrix unary = Matrix::random(generator, 13, k);
        const Matrix edge = Matrix::random(generator, 13, rank, rank + 1);
        const Matrix noise = Matrix::random(generator, 13, k);
        std::vector<int32_t> candidates;
        for (int64_t i = 0; i < 13 * k; ++i) candidates.push_back(static_cast<int32_t>(generator() % 100));
        std::fill_n(candidates.begin() + 8 * k, k, kNotANumber);
        unary.row(3)[k - 1] = std::nanf("");
        std::vector<int32_t> expected(13);
        Matrix scores(13, k);
        CandidateWalkArgs args{.drafts = expected.data(),
                               .scores = scores.view(),
                               .candidates = candidates.data(),
                               .unary = unary.view(),
                               .noise = with_noise ? noise.row(0) : nullptr,
                               .edge = edge.view(),
                               .predecessor = predecessor.view(),
                               .successor = successor.view(),
                               .anchors = anchors.data(),
                               .first_row = first_row.data(),
                               .num_sequences = 4};
        candidate_walk(on.cpu(), args);
        int32_t* drafts = on.poisoned_i32(13);
        const TensorView scores_on_card = on.upload(Matrix(13, k));
        args.drafts = drafts;
        args.scores = scores_on_card;
        args.candidates = on.upload(candidates);
        args.unary = on.upload(unary);
        args.noise = with_noise ? on.upload(noise).f32() : nullptr;
        args.edge = on.upload(edge);
        args.predecessor = on.upload(predecessor.view());
        args.successor = on.upload(successor.view());
        args.anchors = on.upload(anchors);
        args.first_row = on.upload(first_row);
        candidate_walk(on.card(), args);
        EXPECT_EQ(on.download(drafts, 13), expected);
        EXPECT_LT(test::relative_error(on.download(scores_on_card), scores), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace blockdraft
