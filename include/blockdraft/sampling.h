// How tokens are drawn: words that the engine (engine.h), the drafter alone (drafter.h) and the rules of acceptance
// (accept.h) share.
#pragma once

#include <cstdint>
#include <span>

namespace blockdraft {

// How drafts are accepted where tokens are drawn. With both, texts have exactly the law of the target.
enum class Acceptance {
  coupled,  // the text of a seed is that of plain decoding with the seed
  ratio,    // drafts are kept with probability min(1, p / q): texts that depend on drafter and width
};

inline constexpr float kGreedyTemperature = 1e-5f;

// The next token is drawn from the softmax of logits / temperature, after top_k, top_p and min_p in this order. Every
// random number is a function of seed, choice, position and purpose: nothing is kept between calls.
struct Sampling {
  float temperature = 0.0f;  // 0 to 100; below kGreedyTemperature the most likely token is taken, nothing is drawn
  int32_t top_k = 0;         // only the so many most likely ids; 0: all
  float top_p = 1.0f;        // above 0: only the most likely ids, before which there is less than this probability
  float min_p = 0.0f;        // 0 to 1: only ids with this part of the most likely one's probability
  uint64_t seed = 0;
  uint32_t choice = 0;  // tells texts of the same seed apart
  Acceptance acceptance = Acceptance::coupled;
};

// A law over token ids: probabilities[i] is that of ids[i], or of id i if `ids` is empty; all other ids have 0. No id
// comes twice. Without probabilities it says that nothing was drawn.
struct TokenLaw {
  std::span<const int32_t> ids;
  std::span<const float> probabilities;
};

}  // namespace blockdraft
