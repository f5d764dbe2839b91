// What a text so far does to the logits of its next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "verify/sampling_params.h"

namespace blockdraft {

// Which ids a text holds and how often it has generated each. A row that verifies a draft is penalized by the drafts
// before it too: they are added for as long as their rows last, and taken back. A default one is empty, costs nothing
// and may not be added to.
class TokenHistory {
 public:
  TokenHistory() = default;
  // vocab_size: no id is as large.  max_generated: tokens that are in it at once beside the prompt.
  TokenHistory(std::span<const int32_t> prompt_ids, int64_t vocab_size, int64_t max_generated);

  bool is_kept() const { return !generated_.empty(); }
  void add(int32_t id);        // allocates nothing
  void take_back(int32_t id);  // the newest of those that were added

  std::span<const int32_t> distinct_ids() const { return distinct_; }  // of prompt and generated text
  int32_t generated(int32_t id) const { return generated_[static_cast<size_t>(id)]; }

 private:
  std::vector<int32_t> generated_;  // [vocab_size] how often
  std::vector<bool> in_prompt_;     // [vocab_size]
  std::vector<int32_t> distinct_;   // the prompt's, then in the order of their first appearance
};

// In place, for each id in this order:
//   logit += bias
//   logit = logit > 0 ? logit / repetition_penalty : logit * repetition_penalty    if the id is in prompt or text
//   logit -= frequency_penalty * (times generated)
//   logit -= presence_penalty                                                      if generated
// Definitions and order are vLLM's (v1 sampler: logit processors, then penalties): repetition counts the prompt, the
// other two only what was generated. Its place among the others matters to the repetition penalty alone; bias,
// frequency and presence penalty, OpenAI's three, are sums.
void adjust_logits(float* logits, const SamplingParams& params, const TokenHistory& history);

}  // namespace blockdraft
