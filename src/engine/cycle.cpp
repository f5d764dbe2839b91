// A cycle of block drafting (docs/architecture.md shows the same five parts). Plain decoding is the cycle with width 0.

#include "engine/cycle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/timer.h"
#include "ops/argmax.h"
#include "verify/accept.h"

namespace blockdraft {
namespace {

int64_t tap_columns(const DraftSource* drafter, int64_t hidden_size) {
  return drafter == nullptr ? 0 : static_cast<int64_t>(drafter->target_layer_ids().size()) * hidden_size;
}

// Runs a part of the cycle and notes its time.
template <class Part>
auto timed(std::vector<float>& times_us, Part part) {
  const Timer timer;
  struct Note {
    std::vector<float>& times_us;
    const Timer& timer;
    ~Note() { times_us.push_back(static_cast<float>(timer.elapsed_us())); }
  } const note{times_us, timer};
  return part();
}

}  // namespace

Status Cycle::run(Context& context, std::span<Sequence* const> batch, RunTimes& times) {
  choose_widths(batch);
  timed(times.context_us, [&] { extend_context(context, batch); });
  BLOCKDRAFT_TRY(timed(times.propose_us, [&] { return propose(context, batch); }));
  BLOCKDRAFT_TRY(timed(times.verify_us, [&] { return verify(context, batch); }));
  timed(times.accept_us, [&] { accept(batch); });  // and forgets the rejected rows
  return {};
}

Cycle::Cycle(Target& target, DraftSource* drafter, const OutputHead& head, const CycleLimits& limits, Buffer taps)
    : target_(target),
      drafter_(drafter),
      head_(head),
      limits_(limits),
      taps_memory_(std::move(taps)),
      hidden_size_(target.config().transformer.hidden_size) {
  const auto rows = static_cast<size_t>(limits.max_rows());
  const auto sequences = static_cast<size_t>(limits.max_sequences);
  taps_ = view_f32(taps_memory_.f32(), Shape{limits.max_rows(), tap_columns(drafter, hidden_size_)});
  if (drafter != nullptr) tap_layer_ids_ = drafter->target_layer_ids();
  widths_.reserve(sequences);
  requests_.reserve(sequences);
  tap_rows_.reserve(sequences);
  verify_rows_.reserve(sequences);
  drafts_.reserve(rows);
  verify_ids_.reserve(rows);
  choices_.reserve(rows);
  row_numbers_.resize(rows);
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
}

size_t Cycle::taps_bytes(const DraftSource* drafter, int64_t hidden_size, int64_t rows) {
  return static_cast<size_t>(rows * tap_columns(drafter, hidden_size)) * sizeof(float);
}

size_t Cycle::scratch_bytes() const {
  return arena_bytes_f32(limits_.max_rows() * hidden_size_) +
         head_argmax_scratch_bytes(head_.weight, limits_.max_rows());
}

// A cycle commits one token more than it accepts drafts, so the last free place needs no draft (spec 6.5).
void Cycle::choose_widths(std::span<Sequence* const> batch) {
  CHECK(batch.size() <= static_cast<size_t>(limits_.max_sequences));
  widths_.clear();
  for (const Sequence* sequence : batch) {
    CHECK(sequence->remaining() >= 1 && sequence->input.width <= limits_.max_width);
    widths_.push_back(static_cast<int32_t>(std::min<int64_t>(sequence->input.width, sequence->remaining() - 1)));
  }
}

void Cycle::extend_context(Context& context, std::span<Sequence* const> batch) {
  if (drafter_ == nullptr) return;
  tap_rows_.clear();
  for (Sequence* sequence : batch) {
    if (sequence->num_tap_rows == 0) continue;
    tap_rows_.push_back({.slot = sequence->slot,
                         .first_position = sequence->position() - sequence->num_tap_rows,
                         .first_row = sequence->first_tap_row,
                         .num_rows = sequence->num_tap_rows});
    sequence->num_tap_rows = 0;
  }
  if (!tap_rows_.empty()) drafter_->extend_context(context, taps_, tap_rows_);
}

Status Cycle::propose(Context& context, std::span<Sequence* const> batch) {
  requests_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    if (widths_[i] == 0) continue;
    requests_.push_back({.slot = batch[i]->slot,
                         .anchor_id = batch[i]->tokens.back(),
                         .position = batch[i]->position(),
                         .width = widths_[i]});
  }
  drafts_.resize(static_cast<size_t>(std::accumulate(widths_.begin(), widths_.end(), 0)));
  if (requests_.empty()) return {};
  CHECK(drafter_ != nullptr);
  return drafter_->propose(context, requests_, drafts_);
}

Status Cycle::verify(Context& context, std::span<Sequence* const> batch) {
  const ArenaScope scope(*context.arena);
  verify_ids_.clear();
  verify_rows_.clear();
  auto drafts = drafts_.cbegin();
  for (size_t i = 0; i < batch.size(); ++i) {
    Sequence& sequence = *batch[i];
    const int32_t rows = widths_[i] + 1;
    sequence.first_tap_row = static_cast<int32_t>(verify_ids_.size());
    verify_ids_.push_back(sequence.tokens.back());
    verify_ids_.insert(verify_ids_.end(), drafts, drafts + widths_[i]);
    drafts += widths_[i];
    target_.reserve(sequence.slot, rows);
    verify_rows_.push_back({.slot = sequence.slot,
                            .first_position = sequence.position(),
                            .token_ids = std::span(verify_ids_).last(static_cast<size_t>(rows))});
  }
  const size_t rows = verify_ids_.size();
  const TensorView hidden = context.arena->take_f32({static_cast<int64_t>(rows), hidden_size_});
  target_.forward(context, {.sequences = verify_rows_,
                            .hidden_rows = std::span(row_numbers_).first(rows),
                            .hidden = hidden,
                            .tap_layer_ids = tap_layer_ids_,
                            .taps = taps_});
  choices_.resize(rows);
  head_argmax(context, choices_.data(), hidden, head_);
  if (!keeps_only_numbers()) return make_error(Code::numeric, "the target's logits are not numbers");
  return {};
}

// A row behind a rejected draft may hold anything: plain decoding would never have computed it.
bool Cycle::keeps_only_numbers() const {
  std::span<const int32_t> drafts = drafts_;
  std::span<const int32_t> choices = choices_;
  for (const int32_t width : widths_) {
    const auto num_drafts = static_cast<size_t>(width);
    const int32_t accepted = accepted_prefix(drafts.first(num_drafts), choices.first(num_drafts + 1));
    const std::span<const int32_t> kept = choices.first(static_cast<size_t>(accepted) + 1);
    if (std::ranges::find(kept, kNotANumber) != kept.end()) return false;
    drafts = drafts.subspan(num_drafts);
    choices = choices.subspan(num_drafts + 1);
  }
  return true;
}

void Cycle::accept(std::span<Sequence* const> batch) {
  std::span<const int32_t> drafts = drafts_;
  std::span<const int32_t> choices = choices_;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto width = static_cast<size_t>(widths_[i]);
    commit(*batch[i], drafts.first(width), choices.first(width + 1));
    drafts = drafts.subspan(width);
    choices = choices.subspan(width + 1);
  }
}

void Cycle::commit(Sequence& sequence, std::span<const int32_t> drafts, std::span<const int32_t> choices) {
  const Committed committed = commit_greedy(drafts, choices, sequence.remaining(), sequence.input.stop_ids);
  const int32_t produced = sequence.append(choices.first(static_cast<size_t>(committed.produced)), committed);
  target_.commit(sequence.slot, produced);
  sequence.num_tap_rows = produced;
  sequence.result.cycles.push_back(
      {.width = static_cast<int32_t>(drafts.size()), .accepted = committed.accepted, .produced = produced});
}

}  // namespace blockdraft
