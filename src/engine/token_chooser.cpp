#include "engine/token_chooser.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "ops/argmax.h"
#include "tensor/host_link.h"
#include "tensor/read_back.h"
#include "verify/accept.h"
#include "verify/accept_ratio.h"
#include "verify/expected_acceptance.h"
#include "verify/penalties.h"

namespace blockdraft {
namespace {

bool is_plain(const VerifiedBlock& block) { return block.sequence->input.sampling.is_plain(); }
bool uses_ratio(const VerifiedBlock& block) { return block.sequence->input.sampling.uses_ratio(); }

// Bias and penalties, with the drafts before the row counted as text.
void adjust(const VerifiedBlock& block, size_t index, float* logits) {
  Sequence& sequence = *block.sequence;
  if (index > 0 && sequence.history.is_kept()) sequence.history.add(block.drafts[index - 1]);
  adjust_logits(logits, sequence.input.sampling, sequence.history);
  if (index < block.drafts.size() || !sequence.history.is_kept()) return;
  for (size_t i = block.drafts.size(); i > 0; --i) sequence.history.take_back(block.drafts[i - 1]);
}

RowSampling sampling_of(const VerifiedBlock& block, size_t index) {
  const int32_t position = block.sequence->position() + 1 + static_cast<int32_t>(index);
  return sampling_of_row(block.sequence->input.sampling, position);
}

}  // namespace

bool TokenChooser::chooses_on_cpu(const TokenRequest& request) {
  const SamplingParams& sampling = request.sampling;
  return sampling.penalizes() || !sampling.logit_bias.empty() || sampling.uses_ratio() || request.expects_acceptance;
}

void TokenChooser::choose(Context& context, ConstTensorView hidden, std::span<const VerifiedBlock> blocks,
                          std::span<int32_t> choices, std::span<int32_t> accepted) {
  std::ranges::fill(accepted, 0);
  choices_of_cpu_.clear();
  int32_t* ids = for_host(context, choices);
  if (std::ranges::all_of(blocks, is_plain)) return head_argmax(context, ids, hidden, head_);
  rows_.clear();
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (size_t i = 0; i <= blocks[b].drafts.size(); ++i) rows_.push_back({b, i});
  }
  CHECK(rows_.size() == choices.size());
  for_each_logit_group(context, hidden, head_, [&](int64_t first, const TensorView& logits) {
    if (context.cuda != nullptr) return draw_on_card(context, blocks, first, logits, ids + first, accepted);
    const auto rows = static_cast<size_t>(logits.dim(0));
    draw_on_cpu(context, blocks, std::span(rows_).subspan(static_cast<size_t>(first), rows), logits,
                choices.subspan(static_cast<size_t>(first), rows), accepted);
  });
}

Status TokenChooser::settle(std::span<const VerifiedBlock> blocks, std::span<int32_t> choices,
                            std::span<int32_t> accepted) {
  for (const Choice& choice : choices_of_cpu_) choices[choice.row] = choice.id;
  std::span<const int32_t> rest = choices;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const size_t rows = blocks[b].drafts.size() + 1;
    if (!uses_ratio(blocks[b])) accepted[b] = accepted_prefix(blocks[b].drafts, rest.first(rows));
    // A row behind a rejected draft may hold anything: plain decoding would never have computed it.
    const std::span<const int32_t> kept = rest.first(static_cast<size_t>(accepted[b]) + 1);
    if (std::ranges::find(kept, kNotANumber) != kept.end()) {
      return make_error(Code::numeric, "the target's logits are not numbers");
    }
    rest = rest.subspan(rows);
  }
  return {};
}

// One group of rows. Every row gets its argmax first, which also finds what is not a number.
void TokenChooser::draw_on_cpu(Context& context, std::span<const VerifiedBlock> blocks, std::span<const Row> group,
                               const TensorView& logits, std::span<int32_t> choices,
                               std::span<int32_t> accepted) const {
  const ArenaScope scope(*context.arena);
  const auto rows = static_cast<size_t>(logits.dim(0));
  RowSampling* samplings = take_row_samplings(*context.arena, logits.dim(0));
  for (size_t r = 0; r < rows; ++r) {
    const VerifiedBlock& block = blocks[group[r].block];
    samplings[r] = sampling_of(block, group[r].index);
    if (!is_plain(block)) adjust(block, group[r].index, logits.row(static_cast<int64_t>(r)));
  }
  argmax(context, choices.data(), logits, head_.num_choices);
  to_scores(context, logits, head_.num_choices, samplings);
  // Ratio rows are not drawn here: each goes by what became of the drafts before it.
  for (size_t r = 0; r < rows; ++r) {
    if (uses_ratio(blocks[group[r].block])) samplings[r].temperature = 0.0f;
  }
  sample(context, choices.data(), logits, head_.num_choices, samplings, nullptr);
  for (size_t r = 0; r < rows; ++r) {
    const auto [b, index] = group[r];
    if (choices[r] == kNotANumber) continue;
    float* scores = logits.row(static_cast<int64_t>(r));
    if (uses_ratio(blocks[b])) {
      test_draft(blocks[b], index, scores, choices[r], accepted[b]);
    } else if (index < blocks[b].chances.size()) {
      note_chance(blocks[b], index, scores);
    }
  }
}

void TokenChooser::draw_on_card(Context& context, std::span<const VerifiedBlock> blocks, int64_t first,
                                const TensorView& logits, int32_t* ids, std::span<int32_t> accepted) {
  take_rows_of_cpu(context, blocks, first, logits, accepted);
  const ArenaScope scope(host_arena(context));
  const auto rows = static_cast<size_t>(logits.dim(0));
  const std::span samplings(take_row_samplings(host_arena(context), logits.dim(0)), rows);
  for (size_t r = 0; r < rows; ++r) {
    const auto [b, index] = rows_[static_cast<size_t>(first) + r];
    samplings[r] = sampling_of(blocks[b], index);
    if (chooses_on_cpu(blocks[b].sequence->input)) samplings[r].temperature = 0.0f;
  }
  const RowSampling* sent = on_device(context, std::span<const RowSampling>(samplings));
  argmax(context, ids, logits, head_.num_choices);
  to_scores(context, logits, head_.num_choices, sent);
  sample(context, ids, logits, head_.num_choices, sent, nullptr);
}

// Before the card changes the logits.
void TokenChooser::take_rows_of_cpu(const Context& context, std::span<const VerifiedBlock> blocks, int64_t first,
                                    const TensorView& logits, std::span<int32_t> accepted) {
  std::vector<Row> group;
  std::vector<int64_t> numbers;
  for (int64_t r = 0; r < logits.dim(0); ++r) {
    const Row& row = rows_[static_cast<size_t>(first + r)];
    if (!chooses_on_cpu(blocks[row.block].sequence->input)) continue;
    group.push_back(row);
    numbers.push_back(r);
  }
  if (group.empty()) return;
  const ArenaScope scope(host_arena(context));
  const TensorView copies = host_arena(context).take_f32({std::ssize(group), logits.dim(1)});
  for (size_t i = 0; i < group.size(); ++i) {
    read_back(*context.cuda, copies.row(static_cast<int64_t>(i)), logits.row(numbers[i]),
              static_cast<size_t>(logits.dim(1)) * sizeof(float));
  }
  Context cpu{.threads = context.threads, .arena = &host_arena(context), .isa = context.isa};
  std::vector<int32_t> choices(group.size());
  draw_on_cpu(cpu, blocks, group, copies, choices, accepted);
  for (size_t i = 0; i < group.size(); ++i) {
    choices_of_cpu_.push_back({static_cast<size_t>(first + numbers[i]), choices[i]});
  }
}

// Of a row whose token is drawn: its scores are no longer needed.
void TokenChooser::note_chance(const VerifiedBlock& block, size_t index, float* scores) const {
  softmax_row(scores, scores, head_.num_choices);
  block.chances[index] =
      expected_coupled_acceptance({scores, static_cast<size_t>(head_.num_choices)}, block.laws[index]);
}

void TokenChooser::test_draft(const VerifiedBlock& block, size_t index, float* scores, int32_t& choice,
                              int32_t& accepted) const {
  if (static_cast<size_t>(accepted) < index) return;  // an earlier draft was not kept
  const std::span<float> p(scores, static_cast<size_t>(head_.num_choices));
  if (!std::isfinite(scores[choice])) {  // the largest of the scores
    choice = kNotANumber;
    return;
  }
  softmax_row(p.data(), p.data(), head_.num_choices);
  const NoiseKey key = sampling_of(block, index).noise;
  if (index == block.drafts.size()) {
    choice = draw_bonus(p, key);
    return;
  }
  if (!block.chances.empty()) block.chances[index] = expected_ratio_acceptance(p, block.laws[index]);
  const RatioTest test = accept_ratio(p, block.laws[index], block.drafts[index], key);
  choice = test.token;
  if (test.kept) ++accepted;
}

size_t TokenChooser::scratch_bytes(const OutputHead& head, int64_t rows) {
  return logit_group_scratch_bytes(head.weight, rows) + row_samplings_bytes(std::min(rows, kLogitRows));
}

}  // namespace blockdraft
