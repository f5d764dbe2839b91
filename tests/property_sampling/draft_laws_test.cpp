// What the three families draw, and the laws that they hand out. The head is the identity: hidden rows are logits.

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "draft/argmax_selection.h"
#include "draft/candidate_selection.h"
#include "draft/markov_selection.h"
#include "property_sampling/identity_head.h"
#include "property_sampling/laws.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kCount = 8;
constexpr int32_t kWidth = 2;
constexpr int64_t kRank = 3;
constexpr int32_t kCandidates = 4;

std::vector<float> random_values(uint32_t seed, int64_t count) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

struct Drawn {
  std::vector<int32_t> ids;
  std::vector<std::vector<double>> laws;  // [drafts][kCount]; empty if none was handed out
};

class DraftLaws : public testing::TestWithParam<int> {
 protected:
  Drawn select(const std::vector<DraftRequest>& requests, const std::vector<float>& hidden) {
    int64_t drafts = 0;
    for (const DraftRequest& request : requests) drafts += request.width;
    Drawn drawn{std::vector<int32_t>(static_cast<size_t>(drafts)), {}};
    std::vector<int32_t> widths(requests.size());
    std::vector<ProbabilityRow> laws(static_cast<size_t>(drafts));
    Arena law_memory(Buffer::allocate(selection().law_bytes(head_.head(), drafts), "laws").value());
    selection().select(context_,
                       {.hidden = view_f32(hidden.data(), Shape{drafts, kCount}),
                        .requests = requests,
                        .head = head_.head(),
                        .draft_to_target = {}},
                       {.ids = drawn.ids, .widths = widths, .laws = laws, .law_memory = &law_memory});
    for (const ProbabilityRow& law : laws) {
      drawn.laws.emplace_back();
      if (law.count == 0) continue;
      drawn.laws.back().resize(kCount);
      for (int64_t i = 0; i < law.count; ++i) {
        const int64_t id = law.ids == nullptr ? i : law.ids[i];
        drawn.laws.back()[static_cast<size_t>(id)] = static_cast<double>(law.values[i]);
      }
    }
    return drawn;
  }

  TokenSelection& selection() {
    if (GetParam() == 0) return argmax_;
    if (GetParam() == 1) return candidates_;
    return markov_;
  }

  static DraftRequest request(uint64_t seed, float temperature, NoisePurpose purpose) {
    return {.anchor_id = 1,
            .position = 30,
            .width = kWidth,
            .sampling = {.row = {.temperature = temperature, .noise = {.seed = seed, .purpose = purpose}},
                         .wants_law = purpose == NoisePurpose::draft}};
  }

  OpContext context_;
  IdentityHead head_{kCount};
  std::vector<float> predecessor_ = random_values(1, kCount* kRank);
  std::vector<float> successor_ = random_values(2, kCount* kRank);
  std::vector<float> projection_ = random_values(3, kRank* kCount);
  ArgmaxSelection argmax_;
  CandidateSelection candidates_{{.selector_rank = kRank, .selector_top_k = kCandidates},
                                 {.predecessor_codebook = weight_f32(predecessor_, kCount, kRank),
                                  .successor_codebook = weight_f32(successor_, kCount, kRank),
                                  .hidden_projection = weight_f32(projection_, kRank, kCount)}};
  MarkovSelection markov_{
      {.markov_rank = kRank},
      {.markov_w1 = weight_f32(predecessor_, kCount, kRank), .markov_w2 = weight_f32(successor_, kCount, kRank)},
      kCount,
      kWidth};
  const std::vector<float> hidden_ = random_values(4, kWidth* kCount);
};

// The law handed out for a draft is the one that drafts with the same predecessors have.
TEST_P(DraftLaws, FieldFault15_DraftsAreDrawnFromTheLawsHandedOut) {
  for (const float temperature : {0.3f, 1.0f, 2.0f}) {
    std::vector<int64_t> first(kCount);
    std::vector<std::vector<int64_t>> second(kCount, std::vector<int64_t>(kCount));
    std::vector<double> first_law;
    std::vector<std::vector<double>> second_laws(kCount);
    for (uint64_t seed = 0; seed < 12000; ++seed) {
      const Drawn drawn = select({request(seed, temperature, NoisePurpose::draft)}, hidden_);
      const auto one = static_cast<size_t>(drawn.ids[0]);
      ++first[one];
      ++second[one][static_cast<size_t>(drawn.ids[1])];
      if (first_law.empty()) first_law = drawn.laws[0];
      EXPECT_EQ(drawn.laws[0], first_law);
      if (second_laws[one].empty()) second_laws[one] = drawn.laws[1];
      EXPECT_EQ(drawn.laws[1], second_laws[one]);
    }
    expect_law(first, first_law);
    int checked = 0;
    for (size_t one = 0; one < kCount; ++one) {
      if (first[one] < 1000) continue;
      expect_law(second[one], second_laws[one]);
      ++checked;
    }
    EXPECT_GE(checked, 1);
  }
}

// Drawn, greedy and again drawn sequences in one call: each as alone; no law where none is wanted.
TEST_P(DraftLaws, CompanyChangesNothing) {
  const std::vector<DraftRequest> requests = {request(5, 0.8f, NoisePurpose::coupled),
                                              request(6, 0.0f, NoisePurpose::coupled),
                                              request(7, 1.5f, NoisePurpose::draft)};
  const std::vector<float> hidden = random_values(9, 3 * kWidth * kCount);
  const Drawn together = select(requests, hidden);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto begin = hidden.begin() + static_cast<int64_t>(i) * kWidth * kCount;
    const Drawn alone = select({requests[i]}, {begin, begin + kWidth * kCount});
    for (size_t d = 0; d < kWidth; ++d) {
      EXPECT_EQ(together.ids[i * kWidth + d], alone.ids[d]);
      EXPECT_EQ(together.laws[i * kWidth + d], alone.laws[d]);
      EXPECT_EQ(alone.laws[d].empty(), i != 2);
    }
  }
}

TEST_P(DraftLaws, FieldFault15_TheTemperatureReachesTheDrafter) {
  int cold = 0;
  int hot = 0;
  const Drawn best = select({request(0, 0.0f, NoisePurpose::coupled)}, hidden_);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    cold += select({request(seed, 0.02f, NoisePurpose::coupled)}, hidden_).ids == best.ids;
    hot += select({request(seed, 3.0f, NoisePurpose::coupled)}, hidden_).ids == best.ids;
  }
  EXPECT_GT(cold, 250);
  EXPECT_LT(hot, 100);
}
const char* family_name(const testing::TestParamInfo<int>& suite) {
  constexpr const char* kNames[] = {"DFlash", "DFlash2", "DSpark"};
  return kNames[suite.param];
}
INSTANTIATE_TEST_SUITE_P(, DraftLaws, testing::Values(0, 1, 2), family_name);

}  // namespace
}  // namespace blockdraft::test
