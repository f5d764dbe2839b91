// Targets and drafters that the engine's cases decode with on the card, and what they are asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/models.h"
#include "support/temp_dir.h"
#include "support/tiny_models.h"

namespace blockdraft::test {

// "Dflash", "Dflash2", ...: of every family and head, with random weights, whose drafts are seldom right. "Demo...":
// the demo pair with each of its drafters, whose drafts often are.
const std::vector<std::string>& pair_names();
bool is_demo(const std::string& pair);

// Opened on the card, with the folders and the ids of the pair. Plain: without the drafter.
Models open_pair(const std::string& pair, ModelOptions options);
Models open_plain(const std::string& pair, ModelOptions options);

// A target and a drafter of other shapes, written into a folder of their own.
class OwnPair {
 public:
  OwnPair(const TinyTarget& target, const TinyDrafter& drafter);
  Result<Models> open(ModelOptions options) const;

 private:
  TempDir folder_;
  int64_t vocab_;
};

// What the card's attention takes, and its fast products.
inline constexpr TinyStack kCardStack{
    .layers = 3, .hidden = 256, .heads = 4, .kv_heads = 2, .head_dim = 64, .inner = 384};
TinyTarget card_target();
TinyDrafter card_drafter(TinyFamily family);

// Ids that every pair has.
std::vector<int32_t> card_prompt(uint32_t seed, int64_t length);

// Greedy, drawn under all filters, and drawn from laws so flat that the noise decides: drafts are often right then.
SamplingParams greedy_or_drawn(size_t kind);

// Prompts of 1 to 300 ids and texts of 0 to 40, greedy and drawn ones side by side.
std::vector<TokenRequest> mixed_requests();
inline constexpr int64_t kMixedPositions = 352;

std::vector<TokenResult> run(Models& models, const std::vector<TokenRequest>& requests);
std::vector<TokenRequest> with_width(std::vector<TokenRequest> requests, int32_t width);
// The texts of plain decoding, one at a time.
std::vector<TokenResult> plain_texts(const std::string& pair, const std::vector<TokenRequest>& requests);

void expect_same_texts(const std::vector<TokenResult>& found, const std::vector<TokenResult>& expected);
int64_t drafts_accepted(const std::vector<TokenResult>& results);

}  // namespace blockdraft::test
