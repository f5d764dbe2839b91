// What a request says about how its tokens are chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "blockdraft/result.h"
#include "ops/sample.h"

namespace blockdraft {

// How drafts are accepted when tokens are drawn. Both give texts with exactly the target's law.
enum class AcceptanceRule {
  coupled,  // a draft is kept if it is the token that plain decoding with the same seed draws: the text is the same
  ratio,    // a draft is kept with probability min(1, p / q) (verify/accept_ratio.h): another text, the same law
};

struct IdBias {
  int32_t id = 0;
  float bias = 0.0f;
};

// Steps from logits to a choice, in this order: logit_bias, repetition_penalty, frequency_penalty and presence_penalty
// (verify/penalties.h), temperature, top_k, top_p, min_p (ops/sample.h), the draw.
struct SamplingParams {
  float temperature = 0.0f;  // below kGreedyTemperature: the largest logit, nothing is drawn
  int32_t top_k = 0;         // 0: off
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
  uint32_t choice = 0;  // tells texts of the same seed apart
  AcceptanceRule acceptance = AcceptanceRule::coupled;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<IdBias> logit_bias;

  static constexpr float kGreedyTemperature = 1e-5f;

  bool draws() const { return temperature >= kGreedyTemperature; }
  bool uses_ratio() const { return draws() && acceptance == AcceptanceRule::ratio; }
  bool penalizes() const { return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f; }
  // The choice is the largest of the target's own logits.
  bool is_plain() const { return !draws() && !penalizes() && logit_bias.empty(); }
};

// Errors: invalid_argument, naming the field. num_choices: ids at and above are never chosen.
Status check_sampling(const SamplingParams& params, int64_t num_choices);

// How the token of a position is drawn. Temperature 0 if it is not.
RowSampling sampling_of_row(const SamplingParams& params, int32_t position);

// How drafts are drawn. With coupled acceptance the noise is the target's own, so that the drafter often draws the same
// token; with ratio acceptance drafts have their own. The position is that of each draft.
RowSampling sampling_of_drafts(const SamplingParams& params);

}  // namespace blockdraft
