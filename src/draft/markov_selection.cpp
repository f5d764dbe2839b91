#include "draft/markov_selection.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>

#include "draft/row_sampling.h"
#include "ops/activation.h"
#include "ops/argmax.h"
#include "ops/copy_rows.h"
#include "ops/embedding.h"
#include "ops/ids.h"
#include "ops/linear.h"
#include "tensor/host_link.h"
#include "tensor/recorder.h"

namespace blockdraft {

// Some sequences whose logits fit into the scratch together. Step k is draft k of every sequence that wants so many;
// rows lie step by step, and within a step by falling width, so that a step's rows are contiguous and its sequences
// are the first of the order. So the heads read their weights once a step for all sequences.
struct MarkovSelection::Group {
  int64_t num_sequences = 0;
  int64_t num_rows = 0;
  // Of the CPU:
  int32_t* width = nullptr;        // [num_sequences], in the order of the steps, falling
  int32_t* first_draft = nullptr;  // [num_sequences] place of draft 0 among all drafts of the call
  int32_t* request = nullptr;      // [num_sequences]
  int32_t* draft_of = nullptr;     // [num_rows] place among all drafts of the call
  int32_t* row_of = nullptr;       // [num_rows] of the group's drafts in their order: which row each is
  // Where the ops are:
  int32_t* previous = nullptr;             // [num_sequences] target id before the current step
  int32_t* choices = nullptr;              // [num_rows] target ids, kNotANumber
  const RowSampling* samplings = nullptr;  // [num_rows] null: nothing is drawn
  TensorView hidden;                       // [num_rows, hidden]
  TensorView logits;                       // [num_rows, draft vocabulary]
  TensorView confidence;                   // [num_rows, 1], before the sigmoid
  TensorView embedded;                     // [num_sequences, rank] markov_w1 rows of `previous`
  TensorView joined;                       // [num_sequences, hidden + 2 * rank] inputs of the small products
  TensorView gate;                         // [num_sequences, 3 * rank]
  TensorView bias_code;                    // [num_sequences, rank] what markov_w2 turns into the bias
  TensorView state;                        // [num_sequences, rank] of the rnn head

  int64_t active(int64_t step) const {
    return std::count_if(width, width + num_sequences, [step](int32_t w) { return w > step; });
  }
};

namespace {

ConstTensorView first_rows(const TensorView& view, int64_t count) { return rows_of(view, 0, count); }

// The parts side by side in the leading columns of `joined`.
ConstTensorView join(Context& context, const TensorView& joined, std::initializer_list<ConstTensorView> parts) {
  const TensorView rows = rows_of(joined, 0, parts.begin()->dim(0));
  int64_t column = 0;
  for (const ConstTensorView& part : parts) {
    copy_rows(context, columns_of(rows, column, part.dim(1)), part, nullptr);
    column += part.dim(1);
  }
  return columns_of(rows, 0, column);
}

// A group has at most kLogitRows rows, or one block of any size.
int64_t max_group_rows(int64_t drafts, int64_t block_size) {
  return std::min(drafts, std::max(kLogitRows, block_size));
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

// Which row is which draft.
void MarkovSelection::order_steps(Arena& arena, const SelectionInput& input, size_t first_request, size_t num_requests,
                                  int64_t first_draft, Group& group) {
  group.num_sequences = static_cast<int64_t>(num_requests);
  group.width = arena.take_i32(group.num_sequences);
  group.first_draft = arena.take_i32(group.num_sequences);
  group.request = arena.take_i32(group.num_sequences);
  const auto requests = input.requests.subspan(first_request, num_requests);
  std::iota(group.request, group.request + num_requests, static_cast<int32_t>(first_request));
  // By falling width, then by number: not std::stable_sort, which takes memory.
  std::sort(group.request, group.request + num_requests, [&](int32_t a, int32_t b) {
    const int32_t width_a = input.requests[static_cast<size_t>(a)].width;
    const int32_t width_b = input.requests[static_cast<size_t>(b)].width;
    return width_a != width_b ? width_a > width_b : a < b;
  });
  for (size_t i = 0; i < num_requests; ++i) {
    const auto request = static_cast<size_t>(group.request[i]);
    group.width[i] = input.requests[request].width;
    group.first_draft[i] = static_cast<int32_t>(first_draft);
    for (size_t before = 0; before < request - first_request; ++before) group.first_draft[i] += requests[before].width;
    group.num_rows += group.width[i];
  }
  group.draft_of = arena.take_i32(group.num_rows);
  group.row_of = arena.take_i32(group.num_rows);
  int32_t row = 0;
  for (int32_t step = 0; row < group.num_rows; ++step) {
    for (int64_t i = 0; i < group.active(step); ++i, ++row) {
      group.draft_of[row] = group.first_draft[i] + step;
      group.row_of[group.draft_of[row] - first_draft] = row;
    }
  }
}

MarkovSelection::Group MarkovSelection::take_group(Context& context, const SelectionInput& input, size_t first_request,
                                                   size_t num_requests, int64_t first_draft) const {
  Group group;
  order_steps(host_arena(context), input, first_request, num_requests, first_draft, group);
  Arena& arena = *context.arena;
  const int64_t rank = config_.markov_rank;
  // Fewer drafts in all may make a larger group than more do (four sequences of 15 and one of 4, against eight of 15).
  // A card's scratch is measured with the most, so what is taken must never grow as they get fewer.
  const int64_t room = std::max(group.num_rows, std::min(input.hidden.dim(0), kLogitRows));
  group.choices = arena.take_i32(room);
  group.hidden = rows_of(arena.take_f32({room, hidden_size_}), 0, group.num_rows);
  group.logits = rows_of(arena.take_f32({room, input.head.weight.out_features}), 0, group.num_rows);
  group.confidence = arena.take_f32({group.num_rows, 1});
  group.embedded = arena.take_f32({group.num_sequences, rank});
  group.joined = arena.take_f32({group.num_sequences, hidden_size_ + 2 * rank});
  group.gate = arena.take_f32({group.num_sequences, 3 * rank});
  group.bias_code = arena.take_f32({group.num_sequences, rank});
  group.state = arena.take_f32({group.num_sequences, rank});
  set_zero(context, group.state);

  const std::span anchors(host_arena(context).take_i32(group.num_sequences), num_requests);
  for (size_t i = 0; i < num_requests; ++i) {
    anchors[i] = input.requests[static_cast<size_t>(group.request[i])].anchor_id;
  }
  group.previous = on_device(context, anchors);
  group.samplings = samplings_of(context, input, group);
  const std::span<const int32_t> draft_of(group.draft_of, static_cast<size_t>(group.num_rows));
  copy_rows(context, group.hidden, input.hidden, on_device(context, draft_of));
  return group;
}

// Null if nothing is drawn in any group, so that what is queued does not depend on who is in which. Without filters
// (spec 5.3).
const RowSampling* MarkovSelection::samplings_of(Context& context, const SelectionInput& input, const Group& group) {
  const std::span requests = input.requests;
  const auto request_of = [&](int64_t i) -> const DraftRequest& {
    return requests[static_cast<size_t>(group.request[i])];
  };
  if (!any_drawn(requests)) return nullptr;
  RowSampling* samplings = take_row_samplings(host_arena(context), group.num_rows);
  int64_t row = 0;
  for (int64_t step = 0; row < group.num_rows; ++step) {
    for (int64_t i = 0; i < group.active(step); ++i, ++row) {
      samplings[row] = unfiltered(sampling_of_draft(request_of(i), static_cast<int32_t>(step)));
    }
  }
  return on_device(context, std::span<const RowSampling>(samplings, static_cast<size_t>(group.num_rows)));
}

void MarkovSelection::embed_predecessors(Context& context, Group& group, int64_t active) const {
  if (config_.markov_rank == 0) return;
  embedding(context, rows_of(group.embedded, 0, active), group.previous, weights_.markov_w1, 1.0f);
}

// The confidence in a draft depends on the tokens before it only (spec 5.4).
void MarkovSelection::judge(Context& context, Group& group, ConstTensorView hidden, TensorView confidence) const {
  if (!config_.enable_confidence_head) return;
  const ConstTensorView input = config_.confidence_head_with_markov
                                    ? join(context, group.joined, {hidden, first_rows(group.embedded, hidden.dim(0))})
                                    : hidden;
  linear(context, {.out = confidence, .x = input, .weights = {&weights_.confidence, 1}});
}

// logits += markov_w2 * code, the code by the type of the head (spec 5.2).
void MarkovSelection::correct(Context& context, Group& group, ConstTensorView hidden, TensorView logits) const {
  if (config_.markov_rank == 0) return;
  const int64_t active = hidden.dim(0);
  const ConstTensorView embedded = first_rows(group.embedded, active);
  ConstTensorView code = embedded;
  if (config_.markov_head_type == MarkovHeadType::gated) {
    const TensorView gate = columns_of(rows_of(group.gate, 0, active), 0, config_.markov_rank);
    const TensorView gated = rows_of(group.bias_code, 0, active);
    linear(context,
           {.out = gate, .x = join(context, group.joined, {hidden, embedded}), .weights = {&weights_.gate_proj, 1}});
    sigmoid_mul(context, gated, gate, embedded);
    code = gated;
  } else if (config_.markov_head_type == MarkovHeadType::rnn) {
    const TensorView state = rows_of(group.state, 0, active);
    const TensorView joint = rows_of(group.gate, 0, active);
    const TensorView output = rows_of(group.bias_code, 0, active);
    linear(context, {.out = joint,
                     .x = join(context, group.joined, {state, embedded, hidden}),
                     .weights = {&weights_.joint_proj, 1}});
    gated_recurrence(context, state, output, joint);
    code = output;
  }
  linear(context, {.out = logits, .x = code, .weights = {&weights_.markov_w2, 1}, .accumulate = true});
}

// One step's tokens, where they are drawn: softmax(logits / T).
void MarkovSelection::draw(Context& context, const SelectionInput& input, Group& group, int64_t row,
                           int64_t active) const {
  const TensorView logits = rows_of(group.logits, row, active);
  const RowSampling* samplings = group.samplings + row;
  to_scores(context, logits, input.head.num_choices, samplings);
  sample(context, group.choices + row, logits, input.head.num_choices, samplings, input.device_map);
}

// One step's rows, at the places of their drafts.
void MarkovSelection::record_step(const Context& context, std::string_view name, const Group& group, int64_t step,
                                  ConstTensorView rows) const {
  if (context.recorder == nullptr) return;
  for (int64_t i = 0; i < rows.dim(0); ++i) {
    const ArenaScope scope(host_arena(context));
    const float* row = on_host(context, rows.row(i), rows.dim(1));
    context.recorder->put(name, group.first_draft[i] + step, {row, static_cast<size_t>(rows.dim(1))});
  }
}

void MarkovSelection::run(Context& context, const SelectionInput& input, Group& group) const {
  head_logits(context, group.logits, group.hidden, input.head);
  int64_t row = 0;
  for (int64_t step = 0; row < group.num_rows; ++step) {
    const int64_t active = group.active(step);
    const ConstTensorView hidden = rows_of(group.hidden, row, active);
    const TensorView logits = rows_of(group.logits, row, active);
    int32_t* choices = group.choices + row;
    embed_predecessors(context, group, active);
    const TensorView confidence = rows_of(group.confidence, row, active);
    record_step(context, "logits", group, step, logits);
    judge(context, group, hidden, confidence);
    if (config_.enable_confidence_head) record_step(context, "confidence_logits", group, step, confidence);
    correct(context, group, hidden, logits);
    record_step(context, "corrected_logits", group, step, logits);
    argmax(context, choices, logits, input.head.num_choices);
    if (group.samplings != nullptr) draw(context, input, group, row, active);
    // After a NaN the sequence's drafts are void; its rows go on with a valid id, as other rows share the products.
    map_ids(context, choices, input.device_map, group.previous, active);
    row += active;
  }
}

// From the order of the steps to the order of the requests.
void MarkovSelection::hand_out(Context& context, const SelectionInput& input, const Group& group,
                               const Drafts& drafts) const {
  const std::span<const int32_t> row_of(group.row_of, static_cast<size_t>(group.num_rows));
  const int32_t first_draft = *std::min_element(group.first_draft, group.first_draft + group.num_sequences);
  gather_ids(context, drafts.places() + first_draft, group.choices, on_device(context, row_of), group.num_rows);
  if (config_.enable_confidence_head && (input.confidence_threshold > 0.0f || !drafts.confidences.empty())) {
    hand_out_confidences(context, input, group, drafts);
  }
  for (int64_t i = 0; i < group.num_sequences; ++i) {
    if (input.requests[static_cast<size_t>(group.request[i])].sampling.wants_law) {
      hand_out_laws(context, input, group, i, drafts);
    }
  }
}

// And the static threshold of spec 5.5.
void MarkovSelection::hand_out_confidences(const Context& context, const SelectionInput& input, const Group& group,
                                           const Drafts& drafts) {
  const float* logits = on_host(context, group.confidence.f32(), group.num_rows);
  int64_t row = 0;
  for (int32_t step = 0; row < group.num_rows; ++step) {
    for (int64_t i = 0; i < group.active(step); ++i, ++row) {
      const float confidence = sigmoid(logits[row]);
      if (!drafts.confidences.empty()) drafts.confidences[static_cast<size_t>(group.draft_of[row])] = confidence;
      int32_t& width = drafts.widths[static_cast<size_t>(group.request[i])];
      if (confidence < input.confidence_threshold) width = std::min(width, step);
    }
  }
}

// Of one sequence.
void MarkovSelection::hand_out_laws(const Context& context, const SelectionInput& input, const Group& group,
                                    int64_t sequence, const Drafts& drafts) {
  const int32_t* target_ids = input.draft_to_target.empty() ? nullptr : input.draft_to_target.data();
  const int32_t* choices = on_host<int32_t>(context, group.choices, group.num_rows);
  int64_t row = sequence;
  for (int64_t step = 0; step < group.width[sequence]; row += group.active(step), ++step) {
    if (choices[row] == kNotANumber) continue;
    drafts.laws[static_cast<size_t>(group.draft_of[row])] =
        law_of_scores(context, *drafts.law_memory, group.logits.row(row), input.head.num_choices, target_ids);
  }
}

void MarkovSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  propose_all(input.requests, drafts.widths);
  int64_t first_draft = 0;
  for (size_t first = 0; first < input.requests.size();) {
    // One sequence at least, and as many as the rows of logits allow.
    size_t last = first + 1;
    int64_t rows = input.requests[first].width;
    while (last < input.requests.size() && rows + input.requests[last].width <= kLogitRows) {
      rows += input.requests[last++].width;
    }
    const ArenaScope scope(*context.arena);
    const ArenaScope host_scope(host_arena(context));
    Group group = take_group(context, input, first, last - first, first_draft);
    run(context, input, group);
    hand_out(context, input, group, drafts);
    first_draft += rows;
    first = last;
  }
}

size_t MarkovSelection::scratch_bytes(const OutputHead& head, int32_t, int64_t drafts) const {
  const int64_t rank = config_.markov_rank;
  const int64_t rows = max_group_rows(drafts, block_size_);
  return 7 * arena_bytes_f32(rows) + row_samplings_bytes(rows) + arena_bytes_f32(rows * hidden_size_) +
         arena_bytes_f32(rows * head.weight.out_features) + arena_bytes_f32(rows) + 3 * arena_bytes_f32(rows * rank) +
         arena_bytes_f32(rows * (hidden_size_ + 2 * rank)) + arena_bytes_f32(rows * 3 * rank) +
         linear_scratch_bytes(rows, hidden_size_ + 2 * rank);
}

int64_t MarkovSelection::weight_bytes() const {
  int64_t bytes = 0;
  if (config_.markov_rank > 0) bytes += weights_.markov_w2.size_bytes();
  if (config_.markov_rank > 0 && config_.markov_head_type == MarkovHeadType::gated) {
    bytes += weights_.gate_proj.size_bytes();
  }
  if (config_.markov_rank > 0 && config_.markov_head_type == MarkovHeadType::rnn) {
    bytes += weights_.joint_proj.size_bytes();
  }
  return config_.enable_confidence_head ? bytes + weights_.confidence.size_bytes() : bytes;
}

int64_t MarkovSelection::flops_per_row() const {
  int64_t flops = 0;
  for (const WeightView* weight :
       {&weights_.markov_w2, &weights_.gate_proj, &weights_.joint_proj, &weights_.confidence}) {
    flops += 2 * weight->out_features * weight->in_features;
  }
  return flops;
}

}  // namespace blockdraft
