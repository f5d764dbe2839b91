// What a cycle costs on this machine, by its numbers of rows: cycles at given widths, on the beginning of a prompt.

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/timer.h"
#include "engine/token_engine.h"

namespace blockdraft {
namespace {

constexpr int64_t kTrialPrompt = TapBacklog::kRows;
constexpr int64_t kTrialTokens = 256;
constexpr int32_t kTrialSequences = 8;  // larger batches: straight on from there
constexpr size_t kTrialRounds = 9;

struct Step {
  int32_t sequences = 1;
  int32_t width = 0;
};

// The ends first, then the middles of what is left, so that a profile which is cut short has the most of it.
void add_middles(std::vector<Step>& steps, int32_t max_width) {
  for (size_t parts = 2; steps.size() <= static_cast<size_t>(max_width); parts *= 2) {
    for (size_t part = 1; part < parts; part += 2) {
      const auto width = static_cast<int32_t>(static_cast<size_t>(max_width) * part / parts);
      const bool is_new = std::ranges::none_of(steps, [&](const Step& step) { return step.width == width; });
      if (is_new) steps.push_back({1, width});
    }
  }
}

std::vector<Step> steps_of(int32_t max_sequences, int32_t max_width) {
  std::vector<Step> steps = {{1, 0}, {1, max_width}};
  add_middles(steps, max_width);
  const int32_t sequences = std::min(max_sequences, kTrialSequences);
  if (sequences > 1) {
    for (const int32_t width : {0, max_width, max_width / 2}) steps.push_back({sequences, width});
  }
  return steps;
}

// The shortest time of a part for each number of rows: what other programs do only makes times longer.
class Samples {
 public:
  void add(int32_t rows, double us) {
    if (rows <= 0 || us <= 0) return;
    const auto [place, is_new] = least_us_.try_emplace(rows, us);
    if (!is_new) place->second = std::min(place->second, us);
  }
  // From the most rows down. Fewer rows take no longer than more, so a number of rows that was never timed in peace
  // gets the time of the next that was.
  template <class Use>
  void for_each(Use use) const {
    double most_us = std::numeric_limits<double>::infinity();
    for (auto place = least_us_.rbegin(); place != least_us_.rend(); ++place) {
      most_us = std::min(most_us, place->second);
      use(place->first, most_us);
    }
  }

 private:
  std::map<int32_t, double> least_us_;
};

struct Profile {
  Samples context, propose, verify;

  void add(const CycleWork& work, const RunTimes& times) {
    context.add(work.context_rows, static_cast<double>(times.context_us.back()));
    propose.add(work.drafts, static_cast<double>(times.propose_us.back()));
    verify.add(work.verify_rows, static_cast<double>(times.verify_us.back()));
  }
  void write_to(CycleCosts& costs) const {
    context.for_each([&](int32_t rows, double us) { costs.set({.context_rows = rows}, {.context_us = us}); });
    propose.for_each([&](int32_t rows, double us) { costs.set({.drafts = rows}, {.propose_us = us}); });
    verify.for_each([&](int32_t rows, double us) { costs.set({.verify_rows = rows}, {.verify_us = us}); });
  }
};

}  // namespace

// Sequences that are decoded for their times. No slot may be in use while it exists.
class TokenEngine::CostTrial {
 public:
  CostTrial(TokenEngine& engine, const TokenRequest& like)
      : engine_(engine), like_(like), recorder_(std::exchange(engine.context_.recorder, nullptr)) {}
  ~CostTrial() {
    for (const auto& sequence : sequences_) engine_.release(*sequence);
    engine_.context_.recorder = recorder_;
  }
  CostTrial(const CostTrial&) = delete;
  CostTrial& operator=(const CostTrial&) = delete;

  // Until the time is over.
  Status run(const Timer& timer) {
    const std::vector<Step> steps = steps_of(engine_.options_.max_sequences, like_.width);
    for (const Step& step : std::span(steps).first(2)) BLOCKDRAFT_TRY(cycle(step));  // reads weights from the disk
    profile_ = {};
    for (size_t i = 0; i < kTrialRounds * steps.size(); ++i) {
      if (i >= 2 && timer.elapsed_s() > kProfileTime_s) break;
      BLOCKDRAFT_TRY(cycle(steps[i % steps.size()]));
    }
    return time_backlog();
  }
  void write_to(CycleCosts& costs) const { profile_.write_to(costs); }

 private:
  Status cycle(const Step& step) {
    std::vector<Sequence*> batch;
    for (int32_t slot = 0; slot < step.sequences; ++slot) {
      BLOCKDRAFT_TRY(make_room(slot, step.width));
      batch.push_back(sequences_[static_cast<size_t>(slot)].get());
      batch.back()->input.width = step.width;
    }
    RunTimes times;
    BLOCKDRAFT_TRY(engine_.cycle_->run(engine_.context_, batch, times));
    profile_.add(engine_.cycle_->work(), times);
    return {};
  }

  // Sees to a sequence that has room for the cycle, if any text has.
  Status make_room(int32_t slot, int32_t width) {
    const auto index = static_cast<size_t>(slot);
    if (index < sequences_.size() && sequences_[index]->remaining() > width) return {};
    if (index == sequences_.size()) {
      sequences_.push_back(std::make_unique<Sequence>());
    } else {
      engine_.release(*sequences_[index]);
      *sequences_[index] = {};
    }
    Sequence& sequence = *sequences_[index];
    sequence.is_trial = true;
    sequence.slot = slot;
    sequence.input = request();
    return engine_.admit(sequence);
  }

  TokenRequest request() const {
    TokenRequest request = like_;
    const int64_t room = engine_.options_.max_positions - 2 - like_.width;
    const int64_t most = std::clamp<int64_t>(room, 1, kTrialPrompt);
    if (std::ssize(request.prompt_ids) > most) request.prompt_ids.resize(static_cast<size_t>(most));
    request.max_tokens = kTrialTokens;
    request.adapts_width = false;
    request.stop_ids.clear();
    request.on_token = nullptr;
    return request;
  }

  // Many positions in one pass: the taps of the prompt once more.
  Status time_backlog() {
    const auto rows = static_cast<int32_t>(request().prompt_ids.size());
    const ConstTensorView taps =
        view_f32(engine_.prefill_taps_.f32(), Shape{kPrefillRows, engine_.cycle_->tap_columns()});
    const TapRows part{.num_rows = rows};
    for (int i = 0; i < 3; ++i) {
      engine_.drafter_->reset(0);
      const Timer timer;
      BLOCKDRAFT_TRY(engine_.begin_pass());
      engine_.drafter_->extend_context(engine_.context_, taps, {&part, 1});
      BLOCKDRAFT_TRY(synchronize(engine_.context_));
      profile_.context.add(rows, timer.elapsed_us());
    }
    return {};
  }

  TokenEngine& engine_;
  const TokenRequest& like_;
  Recorder* recorder_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  Profile profile_;
};

Status TokenEngine::prepare_widths(std::span<const TokenRequest> requests) {
  for (const TokenRequest& request : requests) {
    if (!request.adapts_width || request.width == 0) continue;
    BLOCKDRAFT_TRY(reserve_backlog());
    if (cycle_->policy(cost_kind(request)) == nullptr) BLOCKDRAFT_TRY(measure_costs(request));
  }
  return {};
}

Status TokenEngine::measure_costs(const TokenRequest& like) {
  const Timer timer;
  CycleCosts costs(cycle_->max_context_rows(), options_.max_sequences * options_.max_width,
                   options_.cycle_limits().max_rows());
  // The prompt, its first token and one more: below that no text has a cycle.
  constexpr int64_t kLeastPositions = 3;
  if (options_.max_positions >= kLeastPositions) {
    CostTrial trial(*this, like);
    BLOCKDRAFT_TRY(trial.run(timer));
    trial.write_to(costs);
  }
  cycle_->set_policy(cost_kind(like), WidthPolicy(options_.max_sequences, options_.max_width, std::move(costs)));
  return {};
}

}  // namespace blockdraft
