#include "verify/penalties.h"

#include "base/check.h"

namespace blockdraft {

TokenHistory::TokenHistory(std::span<const int32_t> prompt_ids, int64_t vocab_size, int64_t max_generated)
    : generated_(static_cast<size_t>(vocab_size)), in_prompt_(static_cast<size_t>(vocab_size)) {
  distinct_.reserve(prompt_ids.size() + static_cast<size_t>(max_generated));
  for (const int32_t id : prompt_ids) {
    if (in_prompt_[static_cast<size_t>(id)]) continue;
    in_prompt_[static_cast<size_t>(id)] = true;
    distinct_.push_back(id);
  }
}

void TokenHistory::add(int32_t id) {
  const auto index = static_cast<size_t>(id);
  CHECK(index < generated_.size());
  if (generated_[index]++ == 0 && !in_prompt_[index]) distinct_.push_back(id);
}

void TokenHistory::take_back(int32_t id) {
  const auto index = static_cast<size_t>(id);
  CHECK(index < generated_.size() && generated_[index] > 0);
  if (--generated_[index] > 0 || in_prompt_[index]) return;
  CHECK(distinct_.back() == id);
  distinct_.pop_back();
}

void adjust_logits(float* logits, const SamplingParams& params, const TokenHistory& history) {
  for (const IdBias& entry : params.logit_bias) logits[entry.id] += entry.bias;
  if (!params.penalizes()) return;
  for (const int32_t id : history.distinct_ids()) {
    float& logit = logits[id];
    logit = logit > 0.0f ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    const int32_t times = history.generated(id);
    logit -= params.frequency_penalty * static_cast<float>(times);
    if (times > 0) logit -= params.presence_penalty;
  }
}

}  // namespace blockdraft
