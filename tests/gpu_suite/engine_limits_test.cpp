// The ends of what an engine on a card is opened for: its scratch is enough (an arena that is not ends the program),
// and what it cannot have is named.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu_suite/pairs.h"
#include "support/take.h"

namespace blockdraft::test {
namespace {

class LimitsOnCard : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, LimitsOnCard, testing::ValuesIn(pair_names()),
                         [](const auto& suite) { return suite.param; });

// Texts as long as there is room: of prompts of one id, of half of the room and of all of it.
std::vector<TokenRequest> filling_requests(int64_t max_positions, int32_t width) {
  std::vector<TokenRequest> requests;
  for (uint32_t i = 0; i < 11; ++i) {
    const int64_t prompts[] = {1, max_positions - 2, max_positions / 2, max_positions, max_positions - 1};
    requests.push_back({.prompt_ids = card_prompt(20 + i, std::max<int64_t>(1, prompts[i % 5])),
                        .max_tokens = 45,
                        .width = i < 8 ? width : static_cast<int32_t>(i) % (width + 1),
                        .sampling = greedy_or_drawn(i)});
  }
  return requests;
}

class Filled {
 public:
  Filled(const std::string& pair, int32_t max_sequences, int64_t max_positions)
      : models_(open_pair(pair, {.max_sequences = max_sequences, .max_positions = max_positions})),
        requests_(filling_requests(max_positions, models_.trained_width())),
        max_positions_(max_positions) {
    std::vector<TokenRequest> plain = requests_;
    for (TokenRequest& request : plain) request.max_tokens = room(request);
    Models roomy = open_plain(pair, {.max_positions = 2500});
    expected_ = run(roomy, with_width(plain, 0));
  }
  void expect_texts(bool adapts) {
    for (TokenRequest& request : requests_) request.adapts_width = adapts;
    expect_same_texts(run(models_, requests_), expected_);
  }

 private:
  int64_t room(const TokenRequest& request) const {
    return std::min<int64_t>(request.max_tokens, max_positions_ - std::ssize(request.prompt_ids));
  }

  Models models_;
  std::vector<TokenRequest> requests_;
  int64_t max_positions_;
  std::vector<TokenResult> expected_;
};

TEST_P(LimitsOnCard, TextsFillWhatThereIs) {
  for (const int32_t max_sequences : {1, 8}) {
    for (const int64_t max_positions : {1, 2, 3, 4, 17, 280, 2100}) {
      SCOPED_TRACE(testing::Message() << max_sequences << " sequences, " << max_positions << " positions");
      Filled filled(GetParam(), max_sequences, max_positions);
      filled.expect_texts(false);
      filled.expect_texts(true);
    }
  }
}

// Ratio acceptance and penalties need room of the CPU's, too.
TEST_P(LimitsOnCard, RowsOfTheCpuHaveRoom) {
  Models models = open_pair(GetParam(), {.max_sequences = 8, .max_positions = 64});
  std::vector<TokenRequest> requests;
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back({.prompt_ids = card_prompt(30 + i, 4),
                        .max_tokens = 30,
                        .width = models.trained_width(),
                        .sampling = greedy_or_drawn(1 + i % 2)});
    requests.back().sampling.acceptance = AcceptanceRule::ratio;
    requests.back().sampling.repetition_penalty = 1.1f;
  }
  for (const TokenResult& result : run(models, requests)) EXPECT_EQ(result.ids.size(), 30u);
}

// Widths that fall into groups of 64 rows of logits, where full widths make groups of 60: four rows of a large
// vocabulary are more than all that the full widths have more of.
TEST(LimitsOfMarkovHeads, GroupsOfEveryWidthHaveRoom) {
  TinyTarget target = card_target();
  TinyDrafter drafter = card_drafter(TinyFamily::dspark);
  target.vocab = drafter.vocab = 30000;
  target.stack.layers = 1;
  drafter.target_layers = 1;
  drafter.taps = {0};
  drafter.block_size = 15;
  const OwnPair pair(target, drafter);
  Models models = take(pair.open({.max_sequences = 8, .max_positions = 64}));
  const int32_t width = models.trained_width();
  ASSERT_EQ(width, 15);
  for (const size_t kind : {0u, 2u}) {
    std::vector<TokenRequest> requests;
    for (uint32_t i = 0; i < 5; ++i) {
      requests.push_back({.prompt_ids = card_prompt(40 + i, 4),
                          .max_tokens = 30,
                          .width = i < 4 ? 15 : 4,
                          .sampling = greedy_or_drawn(kind)});
    }
    for (const TokenResult& result : run(models, requests)) EXPECT_EQ(result.ids.size(), 30u);
  }
}

// A head_dim that the card's attention does not take, of the target and of the drafter.
TEST(RefusedOnCard, ShapesAreNamed) {
  for (const bool of_target : {true, false}) {
    TinyTarget target = card_target();
    TinyDrafter drafter = card_drafter(TinyFamily::dflash);
    (of_target ? target.stack : drafter.stack).head_dim = 16;
    const auto models = OwnPair(target, drafter).open({.max_positions = 64});
    ASSERT_FALSE(models.ok());
    EXPECT_EQ(models.error().code, Code::unsupported);
    EXPECT_NE(models.error().message.find("head_dim is 16, expected 64, 128 or 256"), std::string::npos)
        << models.error().message;
  }
}

// More positions than any card has memory for; behind the error the card works.
TEST(RefusedOnCard, PagesThatDoNotFitAreNamed) {
  const OwnPair pair(card_target(), card_drafter(TinyFamily::dflash));
  const auto refused = pair.open({.max_positions = int64_t{1} << 32});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  for (const char* part : {"target pages", "do not fit on card", "free are"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
  Models models = take(pair.open({.max_positions = 64}));
  EXPECT_EQ(run(models, {{.prompt_ids = card_prompt(1, 4), .max_tokens = 10, .width = 15}})[0].ids.size(), 10u);
}

}  // namespace
}  // namespace blockdraft::test
