// Ratio acceptance on the demo pairs: the law of the target, whatever the drafter.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "property_sampling/demo_pairs.h"

namespace blockdraft::test {
namespace {

class RatioText : public testing::TestWithParam<std::string> {};

// The second and third tokens of many texts: the first is the prompt's own, these pass through the test. Both samples
// are drawn, so counts are compared by the two-sample form of Pearson's test.
TEST_P(RatioText, HasTheLawOfPlainDecoding) {
  constexpr uint64_t kTexts = 1500;
  Engine plain = open_engine({.max_sequences = 16});
  Engine drafted = open_engine({.drafter = drafter_folder(GetParam()), .draft_tokens = 3, .max_sequences = 16});
  std::vector<Request> list;
  for (uint64_t seed = 0; seed < kTexts; ++seed) {
    list.push_back(
        {.prompt = "for i in ", .max_tokens = 3, .ignore_eos = true, .temperature = 0.7f, .top_p = 0.8f, .seed = seed});
  }
  const std::vector<Generation> expected = generate(plain, list);
  for (Request& request : list) {
    request.acceptance = Acceptance::ratio;
    request.seed += kTexts;
  }
  const std::vector<Generation> found = generate(drafted, list);
  int64_t accepted = 0;
  for (const Generation& text : found) {
    for (const CycleRecord& cycle : text.cycles) accepted += cycle.accepted;
  }
  EXPECT_GT(accepted, 100) << "the drafter took part";
  for (const size_t place : {1u, 2u}) {
    std::map<int32_t, std::pair<double, double>> counts;
    for (const Generation& text : expected) counts[text.ids[place]].first += 1;
    for (const Generation& text : found) counts[text.ids[place]].second += 1;
    std::pair<double, double> rare;
    double chi_square = 0;
    int cells = 0;
    const auto add = [&](const std::pair<double, double>& cell) {
      chi_square += (cell.first - cell.second) * (cell.first - cell.second) / (cell.first + cell.second);
      ++cells;
    };
    for (const auto& [id, cell] : counts) {
      if (cell.first + cell.second >= 20) {
        add(cell);
      } else {
        rare.first += cell.first;
        rare.second += cell.second;
      }
    }
    if (rare.first + rare.second >= 20) add(rare);
    ASSERT_GE(cells, 3);
    const double freedom = cells - 1;
    const double part = 2 / (9 * freedom);
    EXPECT_LT(chi_square, freedom * std::pow(1 - part + 4.75 * std::sqrt(part), 3)) << "token " << place;
  }
}

TEST_P(RatioText, IsReproducibleAndTheSameInABatch) {
  std::vector<Request> list;
  for (const std::string& prompt : prompts()) {
    list.push_back(
        {.prompt = prompt, .max_tokens = 20, .temperature = 0.9f, .seed = 5, .acceptance = Acceptance::ratio});
  }
  list[1].acceptance = Acceptance::coupled;
  list[2].repetition_penalty = 1.2f;
  list[3].temperature = 0.0f;
  Engine alone = open_engine({.drafter = drafter_folder(GetParam())});
  Engine together = open_engine({.drafter = drafter_folder(GetParam()), .max_sequences = 3});
  const std::vector<Generation> expected = generate(alone, list);
  const std::vector<Generation> found = generate(together, list);
  for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << "request " << i;
}

TEST_P(RatioText, IsGreedyWithoutTemperature) {
  Engine drafted = open_engine({.drafter = drafter_folder(GetParam())});
  const Request greedy{.prompt = prompts()[1], .max_tokens = 24};
  Request ratio = greedy;
  ratio.acceptance = Acceptance::ratio;
  EXPECT_EQ(generate(drafted, {ratio})[0].ids, generate(drafted, {greedy})[0].ids);
}
INSTANTIATE_TEST_SUITE_P(, RatioText, testing::ValuesIn(kDrafters), [](const auto& suite) { return suite.param; });

}  // namespace
}  // namespace blockdraft::test
