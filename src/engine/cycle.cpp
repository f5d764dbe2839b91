// A cycle of block drafting (docs/architecture.md shows the same five parts). Plain decoding is the cycle with width 0.

#include "engine/cycle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/has_cuda.h"
#include "draft/context_kv.h"
#include "engine/cycle_graphs.h"
#include "engine/part_times.h"
#include "ops/ids.h"
#include "tensor/host_link.h"
#include "verify/accept.h"

namespace blockdraft {
namespace {

int64_t columns_of_taps(const DraftSource* drafter, int64_t hidden_size) {
  return drafter == nullptr ? 0 : static_cast<int64_t>(drafter->target_layer_ids().size()) * hidden_size;
}

}  // namespace

Status Cycle::run(Context& context, std::span<Sequence* const> batch, RunTimes& times) {
  const ArenaScope laws(law_memory_);
  choose_widths(batch);
  plan_work(context, batch);
  PartTimes parts(context, times);
  const auto work = [&]() -> Status {
    parts.begin();
    extend_context(context, batch);
    parts.end(Part::context);
    BLOCKDRAFT_TRY(propose(context, batch));
    parts.end(Part::propose);
    verify(context, batch);
    parts.end(Part::verify);
    return {};
  };
  BLOCKDRAFT_TRY(context.cuda == nullptr ? work() : queue(context, batch, work));
  BLOCKDRAFT_TRY(synchronize(context));
  BLOCKDRAFT_TRY(settle(batch));
  accept(batch);  // and forgets the rejected rows
  parts.finish();
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
  draft_of_row_.reserve(rows);
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

Status Cycle::reserve_backlog(CudaDevice* device) {
  if (drafter_ == nullptr || backlog_.is_open()) return {};
  BLOCKDRAFT_ASSIGN(backlog_, TapBacklog::create(limits_.max_sequences, limits_.max_width + 1, taps_.dim(1), device));
  return {};
}

int32_t Cycle::max_context_rows() const { return limits_.max_rows() + limits_.max_sequences * TapBacklog::kRows; }

int64_t Cycle::num_graphs() const { return graphs_ == nullptr ? 0 : graphs_->num_captured(); }

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

// On a card a cycle is waited for once, at its end, unless the CPU has to look at the drafts before they are verified.
void Cycle::plan_work(const Context& context, std::span<Sequence* const> batch) {
  const bool is_looked_at = context.recorder != nullptr || std::ranges::any_of(batch, [](const Sequence* sequence) {
                              return TokenChooser::chooses_on_cpu(sequence->input);
                            });
  // While the card skips there is nothing to look at, and all drafts count: scratch is measured for most rows.
  drafts_stay_ = context.cuda != nullptr && !is_looked_at &&
                 (drafter_ == nullptr || drafter_->proposes_on_device() || is_skipped(context));
}

// On a card a cycle that is like an earlier one is repeated as its graph.
Status Cycle::queue(Context& context, std::span<Sequence* const> batch, const std::function<Status()>& work) {
  if constexpr (kHasCuda) {
    BLOCKDRAFT_TRY(context.link->begin());
    if (graphs_ == nullptr) graphs_ = std::make_shared<CycleGraphs>();
    return graphs_->run(context, shape_of(batch), work);
  }
  return work();
}

// What decides which work is queued; empty where that is waited for, or differs by what waits of the taps.
std::vector<int32_t> Cycle::shape_of(std::span<Sequence* const> batch) const {
  if (!drafts_stay_) return {};
  int32_t context_rows = 0;
  int32_t context_sequences = 0;
  bool draws = false;
  bool drafts_are_drawn = false;
  std::vector<int32_t> shape;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Sequence& sequence = *batch[i];
    // Adaptive ones are queued anew in every cycle, and so are those that find out what such cycles cost.
    if (sequence.adaptive || sequence.is_trial) return {};
    if (drafter_ != nullptr && sequence.num_tap_rows > 0) ++context_sequences;
    if (drafter_ != nullptr) context_rows += sequence.num_tap_rows;
    draws = draws || !sequence.input.sampling.is_plain();
    drafts_are_drawn = drafts_are_drawn || (widths_[i] > 0 && sequence.input.sampling.draws());
    shape.push_back(widths_[i]);
  }
  if (context_rows > kContextRows) return {};
  shape.insert(shape.end(), {(context_rows + kPaddedRows - 1) / kPaddedRows, context_sequences, draws ? 1 : 0,
                             drafts_are_drawn ? 1 : 0});
  return shape;
}

void Cycle::extend_context(Context& context, std::span<Sequence* const> batch) {
  if (drafter_ == nullptr) return;
  tap_rows_.clear();
  waiting_rows_.clear();
  for (size_t i = 0; i < batch.size(); ++i) {
    Sequence& sequence = *batch[i];
    const int32_t rows = std::exchange(sequence.num_tap_rows, 0);
    if (sequence.adaptive && (widths_[i] == 0 || backlog_.rows(sequence.slot) > 0)) {
      backlog_.add(context, sequence.slot, taps_, sequence.first_tap_row, rows);
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
  Drafts drafts{.ids = drafts_, .widths = kept_widths_, .laws = laws_, .law_memory = &law_memory_};
  if (drafts_stay_) drafts.device_ids = for_host(context, drafts.ids);
  draft_places_ = drafts.device_ids;
  BLOCKDRAFT_TRY(drafter_->propose(context, requests_, drafts));
  if (drafts_stay_) return {};
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

void Cycle::verify(Context& context, std::span<Sequence* const> batch) {
  const ArenaScope scope(*context.arena);
  lay_out_blocks(batch);
  const size_t rows = verify_ids_.size();
  work_.verify_rows = static_cast<int32_t>(rows);
  const TensorView hidden = context.arena->take_f32({static_cast<int64_t>(rows), hidden_size_});
  target_.forward(context, {.sequences = verify_rows_,
                            .token_ids = ids_on_device(context),
                            .hidden_rows = std::span(row_numbers_).first(rows),
                            .hidden = hidden,
                            .tap_layer_ids = tap_layer_ids_,
                            .taps = taps_});
  choices_.resize(rows);
  accepted_.resize(batch.size());
  chooser_.choose(context, hidden, blocks_, choices_, accepted_);
}

// The rows of each sequence: its anchor, then its drafts.
void Cycle::lay_out_blocks(std::span<Sequence* const> batch) {
  verify_ids_.clear();
  verify_rows_.clear();
  blocks_.clear();
  draft_of_row_.clear();
  chances_.assign(drafts_.size(), 0.0);
  size_t first = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    Sequence& sequence = *batch[i];
    const auto width = static_cast<size_t>(widths_[i]);
    const std::span<const int32_t> drafts = std::span(drafts_).subspan(first, width);
    blocks_.push_back({.sequence = &sequence,
                       .drafts = drafts,
                       .laws = std::span(laws_).subspan(first, width),
                       .chances = std::span(chances_).subspan(first, sequence.input.expects_acceptance ? width : 0)});
    sequence.first_tap_row = static_cast<int32_t>(verify_ids_.size());
    verify_ids_.push_back(sequence.tokens.back());
    verify_ids_.insert(verify_ids_.end(), drafts.begin(), drafts.end());
    draft_of_row_.push_back(-1);
    for (size_t draft = first; draft < first + width; ++draft) draft_of_row_.push_back(static_cast<int32_t>(draft));
    first += width;
    target_.reserve(sequence.slot, widths_[i] + 1);
    verify_rows_.push_back({.slot = sequence.slot,
                            .first_position = sequence.position(),
                            .token_ids = std::span(verify_ids_).last(width + 1)});
  }
}

// Drafts that the CPU has not seen are put into their rows on the card. Null: all rows are known.
const int32_t* Cycle::ids_on_device(Context& context) {
  if (!drafts_stay_ || drafts_.empty()) return nullptr;
  int32_t* ids = on_device(context, std::span(verify_ids_));
  const int32_t* draft_of_row = on_device(context, std::span<const int32_t>(draft_of_row_));
  gather_ids(context, ids, draft_places_, draft_of_row, std::ssize(draft_of_row_));
  return ids;
}

// With drafts and choices at hand.
Status Cycle::settle(std::span<Sequence* const> batch) {
  if (drafter_ != nullptr && drafts_stay_) BLOCKDRAFT_TRY(drafter_->require_numbers(drafts_));
  BLOCKDRAFT_TRY(chooser_.settle(blocks_, choices_, accepted_));
  return accept_pattern_ ? follow_pattern(batch) : Status{};
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
