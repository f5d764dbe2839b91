#include "property/pairs.h"

#include <algorithm>
#include <random>

#include "support/tiny_models.h"

namespace blockdraft::test {

const TinyPair& TinyPair::get() {
  static const TinyPair pair;
  return pair;
}

TinyPair::TinyPair() {
  tiny_target({}, 1).write(target());
  tiny_drafter({}, 2).write(drafter());
  tiny_drafter({.window = 20}, 3).write(windowed());
}

std::filesystem::path demo_target() { return std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "demo/pycode-14m"; }
std::filesystem::path demo_drafter() { return std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "demo/pycode-14m-dflash"; }

std::vector<int32_t> random_prompt(uint32_t seed, int64_t length) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int32_t> id(0, kTinyVocab - 1);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) ids.push_back(id(generator));
  return ids;
}

PlainTexts plain_texts(const std::filesystem::path& target, const std::vector<std::vector<int32_t>>& prompts,
                       int64_t length, CpuIsa isa) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  Decoder plain(target, {.threads = 2, .isa = isa, .max_positions = static_cast<int64_t>(longest) + length});
  PlainTexts texts;
  for (const auto& prompt : prompts) {
    const TokenResult result = plain.run(TokenRequest{.prompt_ids = prompt, .max_tokens = length});
    texts.push_back(prompt);
    texts.back().insert(texts.back().end(), result.ids.begin(), result.ids.end());
  }
  return texts;
}

std::vector<int32_t> expected_ids(std::span<const int32_t> text, const TokenRequest& request) {
  std::vector<int32_t> ids;
  for (const int32_t id : text.subspan(request.prompt_ids.size())) {
    if (static_cast<int64_t>(ids.size()) == request.max_tokens) break;
    ids.push_back(id);
    if (std::ranges::find(request.stop_ids, id) != request.stop_ids.end()) break;
  }
  return ids;
}

}  // namespace blockdraft::test
