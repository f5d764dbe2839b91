#include "ops/candidate_walk.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "ops/argmax.h"
#include "support/op_context.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Format;
using test::Matrix;
using test::OpContext;
using test::same_bits;
using test::StoredWeight;

constexpr int32_t kUntouched = -7;

WeightView table_of(const Matrix& matrix) {
  return {.data = reinterpret_cast<const std::byte*>(matrix.row(0)),
          .dtype = DType::f32,
          .out_features = matrix.rows(),
          .in_features = matrix.columns()};
}

struct Codebooks {
  StoredWeight predecessor;
  StoredWeight successor;

  Codebooks(std::mt19937& generator, Format format, int64_t vocabulary, int64_t rank)
      : predecessor(generator, format, vocabulary, rank), successor(generator, format, vocabulary, rank) {}
};

// What a walk reads, of several sequences one after the other.
struct Problem {
  std::vector<int32_t> first_row{0};
  std::vector<int32_t> anchors;
  std::vector<int32_t> candidates;
  Matrix unary;
  Matrix edge;
  std::vector<float> noise;

  int64_t k() const { return unary.columns(); }
  int32_t* candidates_of(int64_t row) { return candidates.data() + row * k(); }
};

Problem random_problem(std::mt19937& generator, const std::vector<int32_t>& widths, int64_t k, int64_t rank,
                       int32_t vocabulary) {
  std::vector<int32_t> first_row{0};
  for (const int32_t width : widths) first_row.push_back(first_row.back() + width);
  const int64_t rows = first_row.back();
  Problem problem{.first_row = first_row,
                  .anchors = {},
                  .candidates = {},
                  .unary = Matrix::random(generator, rows, k, k + 1),
                  .edge = Matrix::random(generator, rows, rank, rank + 3),
                  .noise = {}};
  std::uniform_int_distribution<int32_t> id(0, vocabulary - 1);
  for (size_t i = 0; i < widths.size(); ++i) problem.anchors.push_back(id(generator));
  for (int64_t i = 0; i < rows * k; ++i) problem.candidates.push_back(id(generator));
  return problem;
}

void add_noise(std::mt19937& generator, Problem& problem) {
  std::normal_distribution<float> normal;
  problem.noise.resize(problem.candidates.size());
  for (float& value : problem.noise) value = 3.0f * normal(generator);
}

struct Walk {
  std::vector<int32_t> drafts;
  Matrix scores;
};

Walk run(Context& context, const Problem& problem, const WeightView& predecessor, const WeightView& successor) {
  const int64_t rows = problem.unary.rows();
  Walk walk{std::vector<int32_t>(static_cast<size_t>(rows), kUntouched), Matrix(rows, problem.k(), problem.k() + 2)};
  candidate_walk(context, {.drafts = walk.drafts.data(),
                           .scores = walk.scores.view(),
                           .candidates = problem.candidates.data(),
                           .unary = problem.unary.view(),
                           .noise = problem.noise.empty() ? nullptr : problem.noise.data(),
                           .edge = problem.edge.view(),
                           .predecessor = predecessor,
                           .successor = successor,
                           .anchors = problem.anchors.data(),
                           .first_row = problem.first_row.data(),
                           .num_sequences = static_cast<int32_t>(problem.anchors.size())});
  EXPECT_TRUE(walk.scores.gaps_untouched());
  return walk;
}

Walk run(Context& context, const Problem& problem, const Codebooks& codebooks) {
  return run(context, problem, codebooks.predecessor.view(), codebooks.successor.view());
}

// Follows the walk's own drafts, so that a near tie does not part the two: scores must agree with the formula in double
// precision, and each draft must be the first of the row's largest (score + noise).
void expect_near_reference(const Walk& walk, const Problem& problem, const Codebooks& codebooks) {
  const int64_t k = problem.k();
  for (size_t sequence = 0; sequence < problem.anchors.size(); ++sequence) {
    int32_t prev = problem.anchors[sequence];
    for (int64_t j = problem.first_row[sequence]; j < problem.first_row[sequence + 1]; ++j) {
      const std::vector<double> from = codebooks.predecessor.row(prev);
      std::vector<float> totals;
      for (int64_t c = 0; c < k; ++c) {
        const std::vector<double> to = codebooks.successor.row(problem.candidates[static_cast<size_t>(j * k + c)]);
        auto expected = static_cast<double>(problem.unary.row(j)[c]);
        double magnitude = std::abs(expected);
        for (size_t m = 0; m < to.size(); ++m) {
          const double term = from[m] * static_cast<double>(problem.edge.row(j)[m]) * to[m];
          expected += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(static_cast<double>(walk.scores.row(j)[c]), expected, 2e-6 * magnitude) << "row " << j;
        const size_t at = static_cast<size_t>(j * k + c);
        totals.push_back(walk.scores.row(j)[c] + (problem.noise.empty() ? 0.0f : problem.noise[at]));
      }
      const int64_t best = std::max_element(totals.begin(), totals.end()) - totals.begin();
      prev = walk.drafts[static_cast<size_t>(j)];
      ASSERT_EQ(prev, problem.candidates[static_cast<size_t>(j * k + best)]) << "row " << j;
    }
  }
}

// The worked example: rank 1, two candidates a row, anchor 7.
class WorkedExample : public ::testing::Test {
 protected:
  WorkedExample() {
    const float from[] = {0, 0, 0, 2, -1, 0, 0, 1};
    const float to[] = {0, 0, 0, 1, 1, 1, -1, 0};
    std::copy_n(from, 8, predecessor.row(0));
    std::copy_n(to, 8, successor.row(0));
    const float unary[][2] = {{1.0f, 1.2f}, {0.0f, 0.5f}};
    for (int64_t j = 0; j < 2; ++j) std::copy_n(unary[j], 2, problem.unary.row(j));
    problem.edge.row(0)[0] = 0.5f;
    problem.edge.row(1)[0] = 1.0f;
  }
  Walk walk() { return run(context, problem, table_of(predecessor), table_of(successor)); }

  OpContext context;
  Matrix predecessor{8, 1};
  Matrix successor{8, 1};
  Problem problem{.first_row = {0, 2},
                  .anchors = {7},
                  .candidates = {3, 4, 5, 6},
                  .unary = Matrix(2, 2),
                  .edge = Matrix(2, 1),
                  .noise = {}};
};

TEST_F(WorkedExample, GreedyPath) {
  const Walk result = walk();
  EXPECT_EQ(result.drafts, (std::vector<int32_t>{4, 6}));
  EXPECT_FLOAT_EQ(result.scores.row(0)[0], 1.5f);
  EXPECT_FLOAT_EQ(result.scores.row(0)[1], 1.7f);
  EXPECT_FLOAT_EQ(result.scores.row(1)[0], -1.0f);
  EXPECT_FLOAT_EQ(result.scores.row(1)[1], 1.5f);
}

TEST_F(WorkedExample, NoiseTurnsTheChoiceAndTheNextRowsPredecessorButNotTheScores) {
  problem.noise = {0.3f, 0.0f, 0.0f, 0.0f};
  const Walk result = walk();
  EXPECT_EQ(result.drafts, (std::vector<int32_t>{3, 5}));
  EXPECT_FLOAT_EQ(result.scores.row(0)[0], 1.5f);
  EXPECT_FLOAT_EQ(result.scores.row(0)[1], 1.7f);
  EXPECT_FLOAT_EQ(result.scores.row(1)[0], 2.0f);
  EXPECT_FLOAT_EQ(result.scores.row(1)[1], -1.5f);
}

TEST_F(WorkedExample, TheFirstOfEqualScoresWins) {
  std::fill_n(successor.row(0), 8, 0.0f);
  for (int64_t j = 0; j < 2; ++j) std::fill_n(problem.unary.row(j), 2, 1.0f);
  problem.candidates = {4, 3, 6, 5};
  EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, 6}));
  problem.noise.assign(4, 0.25f);
  EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, 6}));
  problem.unary.row(0)[1] = 2.0f;
  problem.noise[0] = 1.25f;  // both sum to 2.25
  EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, 6}));
}

TEST_F(WorkedExample, ScoresWithoutALawAreReported) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float unary[2] = {problem.unary.row(1)[0], problem.unary.row(1)[1]};
  problem.unary.row(1)[0] = infinity;
  EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, kNotANumber}));
  problem.unary.row(1)[0] = -infinity;
  problem.unary.row(1)[1] = -infinity;
  EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, kNotANumber}));
  problem.unary.row(1)[1] = unary[1];  // one is possible
  EXPECT_NE(walk().drafts[1], kNotANumber);
  problem.unary.row(1)[0] = unary[0];
}

TEST_F(WorkedExample, AScoreThatIsNanIsReportedAndNotTurnedIntoTheFirstCandidate) {
  const float nan = std::nanf("");
  for (const bool noise : {false, true}) {
    problem.noise.assign(noise ? 4 : 0, 0.5f);
    for (const int32_t broken : {3, 4}) {
      const float code = std::exchange(successor.row(broken)[0], nan);
      EXPECT_EQ(walk().drafts, (std::vector<int32_t>{kNotANumber, kNotANumber})) << broken;
      successor.row(broken)[0] = code;
    }
    const float edge = std::exchange(problem.edge.row(1)[0], nan);
    EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, kNotANumber}));
    problem.edge.row(1)[0] = edge;
    EXPECT_EQ(walk().drafts, (std::vector<int32_t>{4, 6}));
  }
}

TEST(CandidateWalk, MatchesTheReferenceForEveryCodebookType) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const Format format : test::kFormats) {
    for (const int64_t rank_wanted : {1, 7, 256}) {
      const int64_t rank = test::columns_for(format, rank_wanted);
      const Codebooks codebooks(generator, format, 50, rank);
      for (const int64_t k : {1, 2, 16}) {
        for (const bool noise : {false, true}) {
          Problem problem = random_problem(generator, {3, 7, 1, 15}, k, rank, 50);
          if (noise) add_noise(generator, problem);
          expect_near_reference(run(context, problem, codebooks), problem, codebooks);
        }
      }
    }
  }
}

TEST(CandidateWalk, WithoutEdgesEachRowTakesItsBestUnaryCandidate) {
  std::mt19937 generator(2);
  OpContext context;
  const Codebooks codebooks(generator, Format::bf16, 40, 16);
  Problem problem = random_problem(generator, {9}, 8, 16, 40);
  for (int64_t j = 0; j < 9; ++j) std::fill_n(problem.edge.row(j), 16, 0.0f);
  const Walk walk = run(context, problem, codebooks);
  for (int64_t j = 0; j < 9; ++j) {
    const float* unary = problem.unary.row(j);
    const int64_t best = std::max_element(unary, unary + 8) - unary;
    EXPECT_EQ(walk.drafts[static_cast<size_t>(j)], problem.candidates_of(j)[best]);
    EXPECT_TRUE(same_bits(walk.scores.row(j), unary, 8));
  }
}

TEST(CandidateWalk, ARowOfNansEndsItsOwnSequenceOnly) {
  std::mt19937 generator(3);
  OpContext context(2);
  const Codebooks codebooks(generator, Format::f32, 40, 16);
  Problem problem = random_problem(generator, {4, 5, 3}, 6, 16, 40);
  const Walk whole = run(context, problem, codebooks);
  for (int32_t bad = 0; bad < 12; ++bad) {
    Problem broken = problem;
    std::fill_n(broken.candidates_of(bad), 6, kNotANumber);
    const int32_t end = bad < 4 ? 4 : bad < 9 ? 9 : 12;
    std::vector<int32_t> expected = whole.drafts;
    std::fill(expected.begin() + bad, expected.begin() + end, kNotANumber);
    EXPECT_EQ(run(context, broken, codebooks).drafts, expected) << bad;
  }
}

// The part of a problem that is one sequence.
Problem alone(const Problem& all, size_t sequence) {
  const int64_t first = all.first_row[sequence];
  const int64_t width = all.first_row[sequence + 1] - first;
  Problem one{
      .first_row = {0, static_cast<int32_t>(width)},
      .anchors = {all.anchors[sequence]},
      .candidates = {all.candidates.begin() + first * all.k(), all.candidates.begin() + (first + width) * all.k()},
      .unary = Matrix(width, all.k()),
      .edge = Matrix(width, all.edge.columns()),
      .noise = {all.noise.begin() + first * all.k(), all.noise.begin() + (first + width) * all.k()}};
  for (int64_t j = 0; j < width; ++j) {
    std::copy_n(all.unary.row(first + j), all.k(), one.unary.row(j));
    std::copy_n(all.edge.row(first + j), all.edge.columns(), one.edge.row(j));
  }
  return one;
}

TEST(CandidateWalk, FieldFault6_UnequalWidthsInOneBatchGiveTheBitsOfSingleRunsOnEveryThreadCount) {
  std::mt19937 generator(4);
  OpContext one(1);
  const Codebooks codebooks(generator, Format::bf16, 1001, 70);
  for (const auto& widths : {std::vector<int32_t>{3, 7}, {1, 15, 0, 4, 4, 2, 9, 1}}) {
    Problem problem = random_problem(generator, widths, 16, 70, 1001);
    add_noise(generator, problem);
    for (int num_threads = 1; num_threads <= 4; ++num_threads) {
      OpContext context(num_threads);
      const Walk together = run(context, problem, codebooks);
      for (size_t i = 0; i < widths.size(); ++i) {
        const Walk single = run(one, alone(problem, i), codebooks);
        for (int64_t j = 0; j < widths[i]; ++j) {
          const int64_t row = problem.first_row[i] + j;
          ASSERT_EQ(together.drafts[static_cast<size_t>(row)], single.drafts[static_cast<size_t>(j)]);
          ASSERT_TRUE(same_bits(together.scores.row(row), single.scores.row(j), 16));
        }
      }
    }
  }
}

TEST(CandidateWalk, FieldFault6_BatchesOfOneToEightSequencesThatJoinAndLeave) {
  std::mt19937 generator(5);
  OpContext context(3);
  const Codebooks codebooks(generator, Format::bf16, 1001, 32);
  for (const size_t sequences : {1u, 8u, 3u, 5u, 0u, 2u, 7u, 1u}) {
    std::vector<int32_t> widths(sequences);
    for (int32_t& width : widths) width = static_cast<int32_t>(generator() % 16);
    const Problem problem = random_problem(generator, widths, 16, 32, 1001);
    expect_near_reference(run(context, problem, codebooks), problem, codebooks);
  }
}

TEST(CandidateWalk, ScratchIsWhatTheWalkSaysItNeeds) {
  std::mt19937 generator(6);
  const Codebooks codebooks(generator, Format::bf16, 40, 100);
  const Problem problem = random_problem(generator, {2, 5, 1}, 4, 100, 40);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads, candidate_walk_scratch_bytes(num_threads, 100));
    expect_near_reference(run(context, problem, codebooks), problem, codebooks);
  }
}

TEST(CandidateWalkDeathTest, IdsBeyondTheCodebooks) {
  std::mt19937 generator(7);
  OpContext context;
  const Codebooks codebooks(generator, Format::f32, 40, 16);
  Problem problem = random_problem(generator, {2}, 4, 16, 40);
  for (const int32_t id : {40, -2}) {
    Problem wrong = problem;
    wrong.candidates[1] = id;
    EXPECT_DEATH(run(context, wrong, codebooks), "id >= 0 && id < table.out_features");
    wrong = problem;
    wrong.anchors[0] = id;
    EXPECT_DEATH(run(context, wrong, codebooks), "id >= 0 && id < table.out_features");
  }
}

}  // namespace
}  // namespace blockdraft
