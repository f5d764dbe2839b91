#include "verify/sampling_params.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace blockdraft {
namespace {

// Comparisons with NaN are false, so NaN is out of every range.
Status check_range(const char* field, float value, float min, float max) {
  if (value >= min && value <= max) return {};
  return make_error(Code::invalid_argument, "{} is {}, expected {} to {}", field, value, min, max);
}

Status check_positive(const char* field, float value, float max) {
  if (value > 0.0f && value <= max) return {};
  return make_error(Code::invalid_argument, "{} is {}, expected more than 0 and at most {}", field, value, max);
}

Status check_bias(const std::vector<IdBias>& biases, int64_t num_choices) {
  constexpr float kMaxBias = 100.0f;
  std::vector<int32_t> ids;
  for (const IdBias& entry : biases) {
    if (entry.id < 0 || entry.id >= num_choices) {
      return make_error(Code::invalid_argument, "logit_bias: id is {}, expected 0 to {}", entry.id, num_choices - 1);
    }
    if (!(std::abs(entry.bias) <= kMaxBias)) {
      return make_error(Code::invalid_argument, "logit_bias of id {} is {}, expected {} to {}", entry.id, entry.bias,
                        -kMaxBias, kMaxBias);
    }
    ids.push_back(entry.id);
  }
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end()) {
    return make_error(Code::invalid_argument, "logit_bias: id {} is given twice, expected once", *twice);
  }
  return {};
}

}  // namespace

Status check_sampling(const SamplingParams& params, int64_t num_choices) {
  constexpr float kMaxTemperature = 100.0f;
  constexpr float kMaxPenalty = 2.0f;
  constexpr float kMaxRepetitionPenalty = 100.0f;
  BLOCKDRAFT_TRY(check_range("temperature", params.temperature, 0.0f, kMaxTemperature));
  if (params.top_k < 0) {
    return make_error(Code::invalid_argument, "top_k is {}, expected 0 (off) or more", params.top_k);
  }
  BLOCKDRAFT_TRY(check_positive("top_p", params.top_p, 1.0f));
  BLOCKDRAFT_TRY(check_range("min_p", params.min_p, 0.0f, 1.0f));
  BLOCKDRAFT_TRY(check_positive("repetition_penalty", params.repetition_penalty, kMaxRepetitionPenalty));
  BLOCKDRAFT_TRY(check_range("presence_penalty", params.presence_penalty, -kMaxPenalty, kMaxPenalty));
  BLOCKDRAFT_TRY(check_range("frequency_penalty", params.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  return check_bias(params.logit_bias, num_choices);
}

RowSampling sampling_of_row(const SamplingParams& params, int32_t position) {
  if (!params.draws()) return {};
  return {
      .temperature = params.temperature,
      .top_k = params.top_k,
      .top_p = params.top_p,
      .min_p = params.min_p,
      .noise = {.seed = params.seed, .choice = params.choice, .position = position, .purpose = NoisePurpose::coupled}};
}

RowSampling sampling_of_drafts(const SamplingParams& params) {
  RowSampling sampling = sampling_of_row(params, 0);
  if (params.uses_ratio()) sampling.noise.purpose = NoisePurpose::draft;
  return sampling;
}

}  // namespace blockdraft
