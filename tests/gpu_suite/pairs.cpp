#include "gpu_suite/pairs.h"

#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "support/take.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTinyIds = 160;
constexpr int64_t kDemoIds = 4096;  // of its 4160 rows

std::filesystem::path demo_folder() { return std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "demo"; }

// Written once.
class TinyFolders {
 public:
  static const TinyFolders& get() {
    static const TinyFolders folders;
    return folders;
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  TinyFolders() {
    tiny_target(card_target(), 1).write(folder_ / "target");
    const TinyDrafter dspark = card_drafter(TinyFamily::dspark);
    const auto with_head = [&](const char* head) {
      TinyDrafter drafter = dspark;
      drafter.markov_head = head;
      return drafter;
    };
    TinyDrafter windowed = card_drafter(TinyFamily::dflash);
    windowed.window = 20;
    TinyDrafter confident = dspark;
    confident.confidence = true;
    tiny_drafter(card_drafter(TinyFamily::dflash), 2).write(folder_ / "Dflash");
    tiny_drafter(windowed, 3).write(folder_ / "DflashWindowed");
    tiny_drafter(card_drafter(TinyFamily::dflash2), 4).write(folder_ / "Dflash2");
    tiny_drafter(dspark, 5).write(folder_ / "Dspark");
    tiny_drafter(with_head("gated"), 6).write(folder_ / "DsparkGated");
    tiny_drafter(with_head("rnn"), 7).write(folder_ / "DsparkRnn");
    tiny_drafter(confident, 8).write(folder_ / "DsparkConfidence");
  }
  TempDir folder_;
};

Models open(const std::string& pair, ModelOptions options, bool drafts) {
  options.device = &Card::device();
  options.threads = 2;
  options.num_real_ids = is_demo(pair) ? kDemoIds : kTinyIds;
  options.target = is_demo(pair) ? demo_folder() / "pycode-14m" : TinyFolders::get() / "target";
  if (drafts && !is_demo(pair)) options.drafter = TinyFolders::get() / pair;
  if (drafts && pair == "DemoDflash") options.drafter = demo_folder() / "pycode-14m-dflash";
  if (drafts && pair == "DemoDflash2") options.drafter = demo_folder() / "pycode-14m-dflash2";
  if (drafts && pair == "DemoDspark") options.drafter = demo_folder() / "pycode-14m-dspark";
  return take(open_models(take(read_target_config(options.target)), options));
}

}  // namespace

const std::vector<std::string>& pair_names() {
  static const std::vector<std::string> names{"Dflash",    "DflashWindowed", "Dflash2",     "Dspark",    "DsparkGated",
                                              "DsparkRnn", "DemoDflash",     "DemoDflash2", "DemoDspark"};
  return names;
}

bool is_demo(const std::string& pair) { return pair.starts_with("Demo"); }

Models open_pair(const std::string& pair, ModelOptions options) { return open(pair, std::move(options), true); }
Models open_plain(const std::string& pair, ModelOptions options) { return open(pair, std::move(options), false); }

OwnPair::OwnPair(const TinyTarget& target, const TinyDrafter& drafter) : vocab_(target.vocab) {
  tiny_target(target, 1).write(folder_ / "target");
  tiny_drafter(drafter, 2).write(folder_ / "drafter");
}

Result<Models> OwnPair::open(ModelOptions options) const {
  options.device = &Card::device();
  options.threads = 2;
  options.num_real_ids = vocab_;
  options.target = folder_ / "target";
  options.drafter = folder_ / "drafter";
  return open_models(take(read_target_config(options.target)), options);
}

TinyTarget card_target() { return {.stack = kCardStack, .vocab = kTinyIds}; }

TinyDrafter card_drafter(TinyFamily family) {
  TinyDrafter drafter{.family = family, .stack = kCardStack, .vocab = kTinyIds, .target_layers = kCardStack.layers};
  drafter.stack.layers = 2;
  drafter.taps = {2, 0, 1};
  drafter.selector_top_k = 40;
  return drafter;
}

std::vector<int32_t> card_prompt(uint32_t seed, int64_t length) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int32_t> id(0, static_cast<int32_t>(kTinyIds) - 1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(id(generator));
  return ids;
}

SamplingParams greedy_or_drawn(size_t kind) {
  switch (kind % 3) {
    case 0:
      return {};
    case 1:
      return {.temperature = 0.9f, .top_k = 60, .top_p = 0.95f, .min_p = 0.01f, .seed = 7 + kind};
    default:
      return {.temperature = 4.0f, .seed = 70 + kind};
  }
}

std::vector<TokenRequest> mixed_requests() {
  constexpr std::pair<int64_t, int64_t> kLengths[] = {{3, 24}, {17, 7}, {1, 40},  {33, 1}, {64, 13}, {300, 30},
                                                      {5, 0},  {2, 2},  {257, 9}, {16, 3}, {31, 34}};
  std::vector<TokenRequest> requests;
  for (const auto& [prompt, text] : kLengths) {
    const size_t index = requests.size();
    requests.push_back({.prompt_ids = card_prompt(static_cast<uint32_t>(index) + 11, prompt),
                        .max_tokens = text,
                        .sampling = greedy_or_drawn(index)});
  }
  return requests;
}

std::vector<TokenResult> run(Models& models, const std::vector<TokenRequest>& requests) {
  return take(models.engine->run(requests));
}

std::vector<TokenRequest> with_width(std::vector<TokenRequest> requests, int32_t width) {
  for (TokenRequest& request : requests) request.width = width;
  return requests;
}

std::vector<TokenResult> plain_texts(const std::string& pair, const std::vector<TokenRequest>& requests) {
  Models plain = open_plain(pair, {.max_positions = kMixedPositions});
  return run(plain, with_width(requests, 0));
}

void expect_same_texts(const std::vector<TokenResult>& found, const std::vector<TokenResult>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << "request " << i;
}

int64_t drafts_accepted(const std::vector<TokenResult>& results) {
  int64_t accepted = 0;
  for (const TokenResult& result : results) {
    for (const SequenceCycle& cycle : result.cycles) accepted += cycle.accepted;
  }
  return accepted;
}

}  // namespace blockdraft::test
