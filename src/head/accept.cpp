#include "blockdraft/accept.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/thread_pool.h"
#include "head/host_sampling.h"
#include "ops/argmax.h"
#include "ops/sample.h"
#include "tensor/context.h"
#include "verify/accept.h"
#include "verify/accept_ratio.h"

namespace blockdraft {
namespace {

AcceptedDrafts accepted_of(const Committed& committed) {
  return {committed.accepted, committed.produced, committed.at_stop, committed.at_length};
}

Status check_remaining(int64_t remaining) {
  if (remaining >= 1) return {};
  return make_error(Code::invalid_argument, "remaining is {}, expected at least 1", remaining);
}

Status check_row(std::span<const float> logits) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (!logits.empty() && std::ssize(logits) <= kMost) return {};
  return make_error(Code::invalid_argument, "{} logits, expected 1 to {}", logits.size(), kMost);
}

// One row on the calling thread, without scratch memory.
class RowOps {
 public:
  explicit RowOps(std::span<float> row)
      : row_(view_f32(row.data(), Shape{1, std::ssize(row)})), count_(std::ssize(row)) {}

  int32_t largest() {
    int32_t id = kNotANumber;
    argmax(context_, &id, row_, count_);
    return id;
  }
  void to_scores(const RowSampling& sampling) { blockdraft::to_scores(context_, row_, count_, &sampling); }
  int32_t draw(const RowSampling& sampling) {
    int32_t id = kNotANumber;
    sample(context_, &id, row_, count_, &sampling, nullptr);
    return id;
  }

 private:
  ThreadPool threads_{1};
  Context context_{.threads = &threads_};
  TensorView row_;
  int64_t count_;
};

Error not_a_number() { return make_error(Code::numeric, "the logits are not numbers to choose by"); }

// Finite, not negative, and 1 in sum: as good as float32 rows of any length can be.
Status check_law(const char* what, size_t index, std::span<const float> probabilities) {
  constexpr double kTolerance = 1e-3;
  double sum = 0;
  for (const float value : probabilities) {
    if (!(value >= 0.0f && std::isfinite(value))) {
      return make_error(Code::invalid_argument, "{} {} has the probability {}, expected 0 to 1", what, index, value);
    }
    sum += static_cast<double>(value);
  }
  if (std::abs(sum - 1.0) <= kTolerance) return {};
  return make_error(Code::invalid_argument, "{} {} has probabilities that sum to {}, expected 1", what, index, sum);
}

// Ids inside of the target's rows, none twice.
Status check_ids(size_t index, std::span<const int32_t> ids, size_t num_ids) {
  std::vector<bool> seen(num_ids);
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= num_ids) {
      return make_error(Code::invalid_argument, "law {} has the id {}, expected 0 to {}", index, id, num_ids - 1);
    }
    if (seen[static_cast<size_t>(id)]) {
      return make_error(Code::invalid_argument, "law {} has the id {} twice, expected once", index, id);
    }
    seen[static_cast<size_t>(id)] = true;
  }
  return {};
}

float probability_in(const TokenLaw& law, int32_t id) {
  if (law.ids.empty()) return static_cast<size_t>(id) < law.probabilities.size() ? law.probabilities[id] : 0.0f;
  const auto place = std::ranges::find(law.ids, id);
  return place == law.ids.end() ? 0.0f : law.probabilities[static_cast<size_t>(place - law.ids.begin())];
}

Status check_draft(size_t index, int32_t draft, const TokenLaw& law, size_t num_ids) {
  if (draft < 0 || static_cast<size_t>(draft) >= num_ids) {
    return make_error(Code::invalid_argument, "draft {} is {}, expected 0 to {}", index, draft, num_ids - 1);
  }
  if (law.probabilities.empty() && law.ids.empty()) return {};
  if (!law.ids.empty() && law.ids.size() != law.probabilities.size()) {
    return make_error(Code::invalid_argument, "law {} has {} ids and {} probabilities, expected as many", index,
                      law.ids.size(), law.probabilities.size());
  }
  if (law.probabilities.size() > num_ids) {
    return make_error(Code::invalid_argument, "law {} has {} probabilities, the rows have {}", index,
                      law.probabilities.size(), num_ids);
  }
  BLOCKDRAFT_TRY(check_ids(index, law.ids, num_ids));
  BLOCKDRAFT_TRY(check_law("law", index, law.probabilities));
  if (probability_in(law, draft) > 0.0f) return {};
  return make_error(Code::invalid_argument, "draft {} is {}, which its law does not give", index, draft);
}

// So that the last token's position is one too.
Status check_position(const RatioTrial& trial) {
  const int64_t most = std::numeric_limits<int32_t>::max() - std::ssize(trial.drafts) - 1;
  if (trial.position >= 0 && trial.position <= most) return {};
  return make_error(Code::invalid_argument, "position is {}, expected 0 to {}", trial.position, most);
}

Result<size_t> row_length(const RatioTrial& trial) {
  const size_t rows = trial.drafts.size() + 1;
  if (trial.laws.size() != trial.drafts.size()) {
    return make_error(Code::invalid_argument, "{} laws for {} drafts, expected as many", trial.laws.size(),
                      trial.drafts.size());
  }
  const size_t length = trial.probabilities.size() / rows;
  if (length == 0 || trial.probabilities.size() % rows != 0) {
    return make_error(Code::invalid_argument, "{} probabilities for {} drafts, expected {} rows of equal length",
                      trial.probabilities.size(), trial.drafts.size(), rows);
  }
  return length;
}

ProbabilityRow row_of(const TokenLaw& law) {
  return {.ids = law.ids.empty() ? nullptr : law.ids.data(),
          .values = law.probabilities.data(),
          .count = std::ssize(law.probabilities)};
}

// The accepted drafts and the token after them.
Result<std::vector<int32_t>> tested(const RatioTrial& trial, size_t num_ids) {
  std::vector<int32_t> tokens;
  for (size_t j = 0; j <= trial.drafts.size(); ++j) {
    const std::span<float> p = trial.probabilities.subspan(j * num_ids, num_ids);
    const NoiseKey key{
        .seed = trial.seed, .choice = trial.choice, .position = trial.position + 1 + static_cast<int32_t>(j)};
    BLOCKDRAFT_TRY(check_law("row", j, p));
    if (j == trial.drafts.size()) {
      tokens.push_back(draw_bonus(p, key));
      break;
    }
    const RatioTest test = accept_ratio(p, row_of(trial.laws[j]), trial.drafts[j], key);
    tokens.push_back(test.token);
    if (!test.kept) break;
  }
  return tokens;
}

}  // namespace

Result<AcceptedDrafts> accept_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices,
                                     int64_t remaining, std::span<const int32_t> stop_ids) {
  if (choices.size() != drafts.size() + 1) {
    return make_error(Code::invalid_argument, "{} choices for {} drafts, expected {}", choices.size(), drafts.size(),
                      drafts.size() + 1);
  }
  BLOCKDRAFT_TRY(check_remaining(remaining));
  return accepted_of(commit_greedy(drafts, choices, remaining, stop_ids));
}

Result<int32_t> choose_token(std::span<const float> logits, const Sampling& sampling, int32_t position) {
  BLOCKDRAFT_TRY(check_row(logits));
  BLOCKDRAFT_ASSIGN(const SamplingParams params, sampling_params(sampling));
  std::vector<float> scores(logits.begin(), logits.end());
  RowOps row(scores);
  int32_t id = row.largest();
  if (id == kNotANumber) return not_a_number();
  if (!params.draws()) return id;
  const RowSampling how = sampling_of_row(params, position);
  row.to_scores(how);
  id = row.draw(how);
  if (id == kNotANumber) return not_a_number();
  return id;
}

Status to_probabilities(std::span<float> logits, const Sampling& sampling) {
  BLOCKDRAFT_TRY(check_row(logits));
  BLOCKDRAFT_ASSIGN(const SamplingParams params, sampling_params(sampling));
  RowOps row(logits);
  const int32_t largest = row.largest();
  if (largest == kNotANumber) return not_a_number();
  if (!params.draws()) {
    std::ranges::fill(logits, 0.0f);
    logits[static_cast<size_t>(largest)] = 1.0f;
    return {};
  }
  row.to_scores(sampling_of_row(params, 0));
  if (!std::isfinite(logits[static_cast<size_t>(largest)])) return not_a_number();
  softmax_row(logits.data(), logits.data(), std::ssize(logits));
  return {};
}

Result<AcceptedDrafts> accept_ratio(const RatioTrial& trial, std::vector<int32_t>& tokens) {
  BLOCKDRAFT_TRY(check_remaining(trial.remaining));
  BLOCKDRAFT_TRY(check_position(trial));
  BLOCKDRAFT_ASSIGN(const size_t num_ids, row_length(trial));
  for (size_t j = 0; j < trial.drafts.size(); ++j) {
    BLOCKDRAFT_TRY(check_draft(j, trial.drafts[j], trial.laws[j], num_ids));
  }
  BLOCKDRAFT_ASSIGN(tokens, tested(trial, num_ids));
  const auto accepted = static_cast<int32_t>(tokens.size()) - 1;
  const Committed committed = commit(accepted, tokens, trial.remaining, trial.stop_ids);
  tokens.resize(static_cast<size_t>(committed.produced));
  return accepted_of(committed);
}

}  // namespace blockdraft
