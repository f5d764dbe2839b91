// Drafting changes no token, whoever drafts, at every width, in every company.

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "property/pairs.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTextLength = 72;  // 40 generated ids are the most that is asked; scripts look a block further
constexpr int64_t kMaxPositions = 160;

const PlainTexts& texts() {
  static const PlainTexts all = plain_texts(
      TinyPair::get().target(),
      {random_prompt(11, 3), random_prompt(12, 17), random_prompt(13, 1), random_prompt(14, 33), random_prompt(15, 64)},
      kTextLength);
  return all;
}

TokenRequest request_for(size_t text, int64_t max_tokens, int32_t width) {
  const std::vector<int32_t>& ids = texts()[text];
  return {.prompt_ids = {ids.begin(), ids.end() - kTextLength}, .max_tokens = max_tokens, .width = width};
}

struct Drafts {
  std::string name;
  MakeDrafts make;
  std::vector<int32_t> accepts;  // of scripts: drafts that each cycle accepts, if its width allows
};

MakeDrafts model(const std::filesystem::path& folder) {
  return [folder](const Target& target) -> std::unique_ptr<DraftSource> {
    return open_drafter(folder, target,
                        {.max_sequences = 5, .max_positions = kMaxPositions, .num_choices = kTinyVocab});
  };
}

Drafts script(const std::string& name, const std::vector<int32_t>& accepts) {
  return {name,
          [accepts](const Target& target) -> std::unique_ptr<DraftSource> {
            return std::make_unique<ScriptedDrafts>(target, kTinyWidth, texts(), accepts);
          },
          accepts};
}

std::vector<int32_t> random_accepts(uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<int32_t> accepts;
  for (int i = 0; i < 50; ++i) accepts.push_back(static_cast<int32_t>(generator() % (kTinyWidth + 1)));
  return accepts;
}

const std::vector<Drafts>& all_drafts() {
  static const std::vector<Drafts> all = {
      {"Model", model(TinyPair::get().drafter()), {}},
      {"WindowedModel", model(TinyPair::get().windowed()), {}},
      {"Random",
       [](const Target& target) -> std::unique_ptr<DraftSource> {
         return std::make_unique<RandomDrafts>(target, kTinyWidth, 5);
       },
       {}},
      {"AlwaysWrong",
       [](const Target& target) -> std::unique_ptr<DraftSource> {
         return std::make_unique<AlwaysWrongDrafts>(target, kTinyWidth, texts(), 6);
       },
       {0}},
      script("Script0371", {0, 3, 7, 1}),
      script("ScriptFull", {kTinyWidth}),
      script("ScriptOnceFullOnceNone", {kTinyWidth, 0}),
      script("ScriptRandom", random_accepts(7)),
  };
  return all;
}

void expect_script(const std::vector<int32_t>& accepts, const TokenResult& result) {
  size_t round = 0;
  for (const SequenceCycle& cycle : result.cycles) {
    if (cycle.width == 0) continue;
    EXPECT_EQ(cycle.accepted, std::min(accepts[round++ % accepts.size()], cycle.width));
    EXPECT_LE(cycle.produced, cycle.accepted + 1);
  }
}

TEST(TinyPairTexts, AreRichEnoughToTellPositionsApart) {
  for (const auto& text : texts()) {
    const std::set<int32_t> distinct(text.end() - kTextLength, text.end());
    EXPECT_GE(distinct.size(), 20u);
  }
}

class EveryWidth : public testing::TestWithParam<size_t> {};

// Three at a time, so that the fourth and fifth join as others leave; texts end at different times.
TEST_P(EveryWidth, FieldFault12_GivesThePlainText) {
  const Drafts& drafts = all_drafts()[GetParam()];
  for (int32_t width = 1; width <= kTinyWidth; ++width) {
    SCOPED_TRACE(drafts.name + ", width " + std::to_string(width));
    Decoder decoder(TinyPair::get().target(),
                    {.threads = 1, .max_sequences = 3, .max_positions = kMaxPositions, .max_width = width},
                    drafts.make);
    const std::vector<TokenRequest> requests = {request_for(0, 24, width), request_for(1, 7, width),
                                                request_for(2, 30, width), request_for(3, 1, width),
                                                request_for(4, 13, width)};
    const std::vector<TokenResult> results = decoder.run(requests);
    ASSERT_EQ(results.size(), requests.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].ids, expected_ids(texts()[i], requests[i])) << "request " << i;
      if (!drafts.accepts.empty()) expect_script(drafts.accepts, results[i]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, EveryWidth, testing::Range(size_t{0}, all_drafts().size()),
                         [](const auto& suite) { return all_drafts()[suite.param].name; });

// Any number of requests in any batch size, each with a width, a length and stop ids of its own.
TEST(RandomCalls, GiveThePlainTexts) {
  std::mt19937 generator(99);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint32_t>(n)); };
  for (int trial = 0; trial < 60; ++trial) {
    const Drafts& drafts = all_drafts()[static_cast<size_t>(below(static_cast<int64_t>(all_drafts().size())))];
    const auto max_sequences = static_cast<int32_t>(1 + below(5));
    SCOPED_TRACE(testing::Message() << "trial " << trial << ": " << drafts.name << ", batch " << max_sequences);
    Decoder decoder(TinyPair::get().target(),
                    {.threads = static_cast<int32_t>(1 + below(2)),
                     .max_sequences = max_sequences,
                     .max_positions = kMaxPositions,
                     .max_width = kTinyWidth},
                    drafts.make);
    for (int call = 0; call < 2; ++call) {
      const auto num_requests = static_cast<size_t>(1 + below(8));
      std::vector<TokenRequest> requests;
      std::vector<size_t> text_of;
      std::vector<std::vector<int32_t>> streamed(num_requests);
      for (size_t i = 0; i < num_requests; ++i) {
        text_of.push_back(static_cast<size_t>(below(5)));
        TokenRequest request = request_for(text_of[i], below(41), static_cast<int32_t>(below(kTinyWidth + 1)));
        if (below(3) == 0) {
          request.stop_ids = {static_cast<int32_t>(below(kTinyVocab)),
                              *(texts()[text_of[i]].end() - kTextLength + below(40))};
        }
        request.on_token = [&streamed, i](int32_t id) {
          streamed[i].push_back(id);
          return true;
        };
        requests.push_back(std::move(request));
      }
      const std::vector<TokenResult> results = decoder.run(requests);
      for (size_t i = 0; i < num_requests; ++i) {
        const std::vector<int32_t> expected = expected_ids(texts()[text_of[i]], requests[i]);
        EXPECT_EQ(results[i].ids, expected) << "request " << i;
        EXPECT_EQ(streamed[i], expected) << "request " << i;
        const bool at_stop =
            !expected.empty() && std::ranges::find(requests[i].stop_ids, expected.back()) != requests[i].stop_ids.end();
        EXPECT_EQ(results[i].end, at_stop ? EndReason::at_stop : EndReason::at_length) << "request " << i;
      }
    }
  }
}

std::vector<int32_t> accepted(const TokenResult& result) {
  std::vector<int32_t> counts;
  for (const SequenceCycle& cycle : result.cycles) {
    counts.insert(counts.end(), {cycle.width, cycle.accepted, cycle.produced});
  }
  return counts;
}

// What a drafter proposes for a sequence does not depend on who else is in the batch or how many threads there are.
TEST(Company, ChangesNeitherTokensNorAcceptance) {
  for (const size_t drafter : {0u, 1u}) {
    std::vector<TokenRequest> requests;
    for (size_t i = 0; i < 5; ++i) {
      requests.push_back(request_for(i, 20 + 4 * static_cast<int64_t>(i), static_cast<int32_t>(3 + 3 * i)));
    }
    std::vector<TokenResult> alone;
    for (const TokenRequest& request : requests) {
      Decoder decoder(TinyPair::get().target(),
                      {.threads = 1, .max_sequences = 1, .max_positions = kMaxPositions, .max_width = kTinyWidth},
                      all_drafts()[drafter].make);
      alone.push_back(decoder.run(request));
    }
    for (const int32_t threads : {1, 2, 3}) {
      for (const int32_t max_sequences : {2, 5}) {
        Decoder decoder(TinyPair::get().target(),
                        {.threads = threads,
                         .max_sequences = max_sequences,
                         .max_positions = kMaxPositions,
                         .max_width = kTinyWidth},
                        all_drafts()[drafter].make);
        const std::vector<TokenResult> together = decoder.run(requests);
        for (size_t i = 0; i < requests.size(); ++i) {
          EXPECT_EQ(together[i].ids, alone[i].ids) << "request " << i << ", threads " << threads;
          EXPECT_EQ(accepted(together[i]), accepted(alone[i])) << "request " << i << ", threads " << threads;
        }
      }
    }
  }
}

}  // namespace
}  // namespace blockdraft::test
