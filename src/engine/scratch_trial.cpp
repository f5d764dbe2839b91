// How much scratch an engine on a card needs, found by going through all that it may be asked for without queueing it.
// What its ops take depends on the card and on how they split their work, which formulas would have to repeat.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/has_cuda.h"
#include "engine/token_engine.h"

namespace blockdraft {

// Sequences that are decoded while the card skips all work. Their tokens mean nothing.
class TokenEngine::ScratchTrial {
 public:
  explicit ScratchTrial(TokenEngine& engine) : engine_(engine), arena_(Arena::measuring()) {
    engine_.context_.arena = &arena_;
    if constexpr (kHasCuda) engine_.options_.device->set_skips(true);
  }
  ~ScratchTrial() {
    release();
    engine_.context_.arena = nullptr;
    if constexpr (kHasCuda) engine_.options_.device->set_skips(false);
  }
  ScratchTrial(const ScratchTrial&) = delete;
  ScratchTrial& operator=(const ScratchTrial&) = delete;

  // The longest pass over a prompt, the cycle with most rows, and the longest pass over taps that waited.
  Status run(const SamplingParams& sampling) {
    const int64_t positions = engine_.options_.max_positions;
    BLOCKDRAFT_TRY(admit(0, std::min<int64_t>(kPrefillRows, positions - 1), sampling));
    release();
    for (int32_t slot = 0; slot < engine_.options_.max_sequences; ++slot) BLOCKDRAFT_TRY(admit(slot, 1, sampling));
    std::vector<Sequence*> batch;
    for (const auto& sequence : sequences_) {
      if (!sequence->ended) batch.push_back(sequence.get());
    }
    RunTimes times;
    if (!batch.empty()) BLOCKDRAFT_TRY(engine_.cycle_->run(engine_.context_, batch, times));
    release();
    extend_contexts();
    return {};
  }
  size_t peak_bytes() const { return arena_.peak_bytes(); }

 private:
  Status admit(int32_t slot, int64_t prompt_length, const SamplingParams& sampling) {
    sequences_.push_back(std::make_unique<Sequence>());
    Sequence& sequence = *sequences_.back();
    sequence.is_trial = true;
    sequence.slot = slot;
    sequence.input = {.prompt_ids = std::vector<int32_t>(static_cast<size_t>(std::max<int64_t>(prompt_length, 1)), 0),
                      .max_tokens = engine_.options_.max_positions,
                      .width = engine_.options_.max_width,
                      .sampling = sampling};
    return engine_.admit(sequence);
  }

  void extend_contexts() {
    if (engine_.drafter_ == nullptr) return;
    std::vector<TapRows> parts;
    int64_t rest = kPrefillRows;
    for (int32_t slot = 0; slot < engine_.options_.max_sequences && rest > 0; ++slot) {
      parts.push_back(
          {.slot = slot, .num_rows = static_cast<int32_t>(std::min<int64_t>(rest, engine_.options_.max_positions))});
      rest -= parts.back().num_rows;
    }
    const ConstTensorView taps =
        view_f32(engine_.prefill_taps_.f32(), Shape{kPrefillRows, engine_.cycle_->tap_columns()});
    engine_.drafter_->extend_context(engine_.context_, taps, parts);
    for (const TapRows& part : parts) engine_.drafter_->reset(part.slot);
  }

  void release() {
    for (const auto& sequence : sequences_) engine_.release(*sequence);
    sequences_.clear();
  }

  TokenEngine& engine_;
  Arena arena_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

Status TokenEngine::measure_scratch() {
  ScratchTrial trial(*this);
  BLOCKDRAFT_TRY(trial.run({}));
  BLOCKDRAFT_TRY(trial.run({.temperature = 1.0f, .top_p = 0.9f}));
  plan_.scratch = trial.peak_bytes();
  return {};
}

}  // namespace blockdraft
