// A cycle of block drafting (docs/architecture.md shows the same five parts). Plain decoding is the cycle with width 0.

#include "engine/cycle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/timer.h"
#include "verify/accept.h"

namespace blockdraft {
namespace {

int64_t columns_of_taps(const DraftSource* drafter, int64_t hidden_size) {
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
  const ArenaScope laws(law_memory_);
  choose_widths(batch);
  timed(times.context_us, [&] { extend_context(context, batch); });
  BLOCKDRAFT_TRY(timed(times.propose_us, [&] { return propose(context, batch); }));
  BLOCKDRAFT_TRY(timed(times.verify_us, [&] { return verify(context, batch); }));
  if (accept_pattern_) BLOCKDRAFT_TRY(follow_pattern(batch));
  timed(times.accept_us, [&] { accept(batch); });  // and forgets the rejected rows
  learn(batch, times);
  return {};
}

Cycle::Cycle(Target& target, DraftSource* drafter, const OutputHead& head, const CycleLimits& limits, Buffer taps)
    : target_(target),
      drafter_(drafter),
      head_(head),
      limits_(limits),
      taps_memory_(std::move(taps)),
      hidden_size_(target.config().transformer.hidden_size),
      chooser_(head, limits.max_rows()) {
  const auto rows = static_cast<size_t>(limits.max_rows());
  const auto sequences = static_cast<size_t>(limits.max_sequences);
  taps_ = view_f32(taps_memory_.f32(), Shape{limits.max_rows(), columns_of_taps(drafter, hidden_size_)});
  if (drafter != nullptr) tap_layer_ids_ = drafter->target_layer_ids();
  seats_.reserve(sequences);
  asked_widths_.reserve(sequences);
  widths_.reserve(sequences);
  kept_widths_.reserve(sequences);
  requests_.reserve(sequences);
  tap_rows_.reserve(sequences);
  waiting_rows_.reserve(sequences);
  verify_rows_.reserve(sequences);
  blocks_.reserve(sequences);
  accepted_.reserve(sequences);
  drafts_.reserve(rows);
  laws_.reserve(rows);
  chances_.reserve(rows);
  verify_ids_.reserve(rows);
  choices_.reserve(rows);
  row_numbers_.resize(rows);
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0);
}

size_t Cycle::scratch_bytes(const OutputHead& head, int64_t hidden_size, const CycleLimits& limits) {
  return arena_bytes_f32(limits.max_rows() * hidden_size) + TokenChooser::scratch_bytes(head, limits.max_rows());
}

Status Cycle::reserve_laws() {
  if (drafter_ == nullptr || law_memory_.size_bytes() > 0) return {};
  const int64_t most_drafts = static_cast<int64_t>(limits_.max_sequences) * limits_.max_width;
  const size_t bytes = drafter_->law_bytes(most_drafts);
  if (bytes == 0) return {};
  BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(bytes, "laws of drafts"));
  law_memory_ = Arena(std::move(memory));
  return {};
}

Status Cycle::reserve_backlog() {
  if (drafter_ == nullptr || backlog_.is_open()) return {};
  BLOCKDRAFT_ASSIGN(backlog_, TapBacklog::create(limits_.max_sequences, limits_.max_width + 1, taps_.dim(1)));
  return {};
}

int32_t Cycle::max_context_rows() const { return limits_.max_rows() + limits_.max_sequences * TapBacklog::kRows; }

WidthPolicy* Cycle::policy(CostKind kind) {
  std::optional<WidthPolicy>& policy = policies_[static_cast<size_t>(kind)];
  return policy ? &*policy : nullptr;
}

void Cycle::set_policy(CostKind kind, WidthPolicy policy) { policies_[static_cast<size_t>(kind)] = std::move(policy); }

// Null if no width adapts.
WidthPolicy* Cycle::policy_of(std::span<Sequence* const> batch) {
  auto kind = CostKind::greedy;
  bool adapts = false;
  for (const Sequence* sequence : batch) {
    kind = std::max(kind, cost_kind(sequence->input));
    adapts = adapts || sequence->adaptive;
  }
  if (!adapts) return nullptr;
  // Only requests of adaptive width have seen to it that their kind has a policy.
  while (policy(kind) == nullptr) {
    CHECK(kind != CostKind::greedy);
    kind = static_cast<CostKind>(static_cast<int>(kind) - 1);
  }
  return policy(kind);
}

// A cycle commits one token more than it accepts drafts, so the last free place needs no draft (spec 6.5).
void Cycle::choose_widths(std::span<Sequence* const> batch) {
  CHECK(batch.size() <= static_cast<size_t>(limits_.max_sequences));
  widths_.clear();
  seats_.clear();
  for (const Sequence* sequence : batch) {
    CHECK(sequence->remaining() >= 1 && sequence->input.width <= limits_.max_width);
    widths_.push_back(static_cast<int32_t>(std::min<int64_t>(sequence->input.width, sequence->remaining() - 1)));
    seats_.push_back({.adaptive = sequence->adaptive ? &*sequence->adaptive : nullptr,
                      .most = widths_.back(),
                      .backlog = backlog_.rows(sequence->slot)});
  }
  if (WidthPolicy* policy = policy_of(batch)) policy->choose(seats_, widths_);
  asked_widths_ = widths_;
  work_ = {.drafts = std::accumulate(widths_.begin(), widths_.end(), 0)};
}

void Cycle::extend_context(Context& context, std::span<Sequence* const> batch) {
  if (drafter_ == nullptr) return;
  tap_rows_.clear();
  waiting_rows_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    Sequence& sequence = *batch[i];
    const int32_t rows = std::exchange(sequence.num_tap_rows, 0);
    if (sequence.adaptive && (widths_[i] == 0 || backlog_.rows(sequence.slot) > 0)) {
      backlog_.add(sequence.slot, taps_, sequence.first_tap_row, rows);
      if (widths_[i] == 0 && !backlog_.is_full(sequence.slot)) continue;
      waiting_rows_.push_back(backlog_.take(sequence.slot, sequence.position()));
      work_.context_rows += waiting_rows_.back().num_rows;
    } else if (rows > 0) {
      tap_rows_.push_back({.slot = sequence.slot,
                           .first_position = sequence.position() - rows,
                           .first_row = sequence.first_tap_row,
                           .num_rows = rows});
      work_.context_rows += rows;
    }
  }
  if (!waiting_rows_.empty()) drafter_->extend_context(context, backlog_.taps(), waiting_rows_);
  if (!tap_rows_.empty()) drafter_->extend_context(context, taps_, tap_rows_);
}

Status Cycle::propose(Context& context, std::span<Sequence* const> batch) {
  requests_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    if (widths_[i] == 0) continue;
    const TokenRequest& input = batch[i]->input;
    requests_.push_back({.slot = batch[i]->slot,
                         .anchor_id = batch[i]->tokens.back(),
                         .position = batch[i]->position(),
                         .width = widths_[i],
                         .sampling = {.row = sampling_of_drafts(input.sampling), .wants_law = wants_laws(input)}});
  }
  drafts_.resize(static_cast<size_t>(work_.drafts));
  laws_.assign(drafts_.size(), {});
  kept_widths_.resize(requests_.size());
  if (requests_.empty()) return {};
  CHECK(drafter_ != nullptr);
  BLOCKDRAFT_TRY(drafter_->propose(
      context, requests_, {.ids = drafts_, .widths = kept_widths_, .laws = laws_, .law_memory = &law_memory_}));
  BLOCKDRAFT_TRY(require_laws());
  drop_doubtful();
  return {};
}

// A draft without a law would be tested as one that was certain to be drawn: the text would keep its law, but fewer
// drafts would be kept than min(1, p / q) promises, and nobody would be told.
Status Cycle::require_laws() const {
  size_t draft = 0;
  for (const DraftRequest& request : requests_) {
    for (int32_t i = 0; i < request.width; ++i, ++draft) {
      if (!request.sampling.wants_law || laws_[draft].count > 0) continue;
      return make_error(Code::mismatch, "draft {} of {} at position {} came without its law", i, request.width,
                        request.position);
    }
  }
  return {};
}

// A drafter may find some of its drafts not worth verifying: they never reach the target (spec 5.5).
void Cycle::drop_doubtful() {
  size_t asked = 0;
  size_t kept = 0;
  auto kept_width = kept_widths_.begin();
  for (int32_t& width : widths_) {
    if (width == 0) continue;
    for (int32_t i = 0; i < *kept_width; ++i, ++kept) {
      drafts_[kept] = drafts_[asked + static_cast<size_t>(i)];
      laws_[kept] = laws_[asked + static_cast<size_t>(i)];
    }
    asked += static_cast<size_t>(width);
    width = *kept_width++;
  }
  drafts_.resize(kept);
  laws_.resize(kept);
}

Status Cycle::verify(Context& context, std::span<Sequence* const> batch) {
  const ArenaScope scope(*context.arena);
  verify_ids_.clear();
  verify_rows_.clear();
  blocks_.clear();
  std::span<const int32_t> drafts = drafts_;
  std::span<const ProbabilityRow> laws = laws_;
  chances_.assign(drafts_.size(), 0.0);
  std::span<double> chances = chances_;
  for (size_t i = 0; i < batch.size(); ++i) {
    Sequence& sequence = *batch[i];
    const int32_t rows = widths_[i] + 1;
    const auto width = static_cast<size_t>(widths_[i]);
    blocks_.push_back({.sequence = &sequence,
                       .drafts = drafts.first(width),
                       .laws = laws.first(width),
                       .chances = chances.first(sequence.input.expects_acceptance ? width : 0)});
    sequence.first_tap_row = static_cast<int32_t>(verify_ids_.size());
    verify_ids_.push_back(sequence.tokens.back());
    verify_ids_.insert(verify_ids_.end(), drafts.begin(), drafts.begin() + widths_[i]);
    drafts = drafts.subspan(width);
    laws = laws.subspan(width);
    chances = chances.subspan(width);
    target_.reserve(sequence.slot, rows);
    verify_rows_.push_back({.slot = sequence.slot,
                            .first_position = sequence.position(),
                            .token_ids = std::span(verify_ids_).last(static_cast<size_t>(rows))});
  }
  const size_t rows = verify_ids_.size();
  work_.verify_rows = static_cast<int32_t>(rows);
  const TensorView hidden = context.arena->take_f32({static_cast<int64_t>(rows), hidden_size_});
  target_.forward(context, {.sequences = verify_rows_,
                            .hidden_rows = std::span(row_numbers_).first(rows),
                            .hidden = hidden,
                            .tap_layer_ids = tap_layer_ids_,
                            .taps = taps_});
  choices_.resize(rows);
  accepted_.resize(batch.size());
  return chooser_.choose(context, hidden, blocks_, choices_, accepted_);
}

// The drafts that the pattern keeps become the text, so that it goes with the state that the target has of them.
Status Cycle::follow_pattern(std::span<Sequence* const> batch) {
  std::span<int32_t> choices = choices_;
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::span<const int32_t> drafts = blocks_[i].drafts;
    accepted_[i] = accept_pattern_->accepted(batch[i]->request, batch[i]->position() + 1, widths_[i]);
    const auto accepted = static_cast<size_t>(accepted_[i]);
    std::ranges::copy(drafts.first(accepted), choices.begin());
    if (choices[accepted] < 0) return make_error(Code::numeric, "the target's logits are not numbers");
    choices = choices.subspan(drafts.size() + 1);
  }
  return {};
}

void Cycle::accept(std::span<Sequence* const> batch) {
  std::span<const int32_t> choices = choices_;
  for (size_t i = 0; i < batch.size(); ++i) {
    const auto rows = static_cast<size_t>(widths_[i]) + 1;
    if (!batch[i]->is_trial && !accept_pattern_) count(blocks_[i].drafts, accepted_[i]);
    commit(*batch[i], i, choices.first(rows));
    choices = choices.subspan(rows);
  }
}

void Cycle::learn(std::span<Sequence* const> batch, const RunTimes& times) {
  WidthPolicy* policy = policy_of(batch);
  if (policy == nullptr) return;
  policy->observe(work_, {times.context_us.back(), times.propose_us.back(), times.verify_us.back()});
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i]->adaptive) policy->observe(*batch[i]->adaptive, asked_widths_[i], accepted_[i]);
  }
}

// As verified: where the text ends within the accepted drafts says nothing of the drafter.
void Cycle::count(std::span<const int32_t> drafts, int32_t accepted) {
  if (drafts.empty()) return;
  ++draft_counts_.cycles;
  draft_counts_.verified += static_cast<int64_t>(drafts.size());
  draft_counts_.accepted += accepted;
  draft_counts_.masks += std::ranges::count(drafts, drafter_->mask_id());
}

void Cycle::commit(Sequence& sequence, size_t index, std::span<const int32_t> choices) {
  const Committed committed =
      blockdraft::commit(accepted_[index], choices, sequence.remaining(), sequence.input.stop_ids);
  const int32_t produced = sequence.append(choices.first(static_cast<size_t>(committed.produced)), committed);
  target_.commit(sequence.slot, produced);
  sequence.num_tap_rows = produced;
  const std::span<const double> chances = blocks_[index].chances;
  const auto reached = chances.first(std::min(static_cast<size_t>(accepted_[index]) + 1, chances.size()));
  sequence.result.cycles.push_back({.width = widths_[index],
                                    .accepted = committed.accepted,
                                    .produced = produced,
                                    .asked = asked_widths_[index],
                                    .expected = std::accumulate(reached.begin(), reached.end(), 0.0)});
}

}  // namespace blockdraft
