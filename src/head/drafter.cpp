#include "blockdraft/drafter.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/check_option.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "draft/draft_model.h"
#include "draft/pairing.h"
#include "head/host_sampling.h"
#include "head/sequence_table.h"
#include "head/target_views.h"
#include "tensor/buffer.h"
#include "tensor/context.h"

namespace blockdraft {
namespace {

constexpr int64_t kDefaultPositions = 4096;

Status check_options(const DrafterOptions& options) {
  BLOCKDRAFT_TRY(check_option("threads", options.threads, 0, kMaxThreads));
  BLOCKDRAFT_TRY(check_option("max_sequences", options.max_sequences, 1, kMaxSequences));
  BLOCKDRAFT_TRY(check_option("max_positions", options.max_positions, 0, kMaxPositions));
  return check_confidence_threshold(options.confidence_threshold);
}

DrafterInfo describe(const DraftModel& model, const DrafterLimits& limits) {
  const DrafterConfig& config = model.config();
  return {.kind = name_of(config.family),
          .trained_width = config.trained_width(),
          .target_layer_ids = config.target_layer_ids,
          .hidden_size = config.target_hidden_size,
          .tap_columns = static_cast<int64_t>(config.target_layer_ids.size()) * config.target_hidden_size,
          .has_confidence = model.has_confidence(),
          .block_size = config.block_size,
          .mask_token_id = config.mask_token_id,
          .shifted = config.layout == BlockLayout::shifted,
          .window = config.largest_window(),
          .max_sequences = limits.max_sequences,
          .max_positions = limits.max_positions,
          .mapped_bytes = static_cast<int64_t>(model.mapped_bytes()),
          .packed_bytes = static_cast<int64_t>(model.converted_bytes()),
          .context_bytes = static_cast<int64_t>(model.state_bytes()),
          .warnings = config.warnings};
}

bool wants_law(const DraftRequest& request) { return request.sampling.wants_law; }

TokenLaw law_of(const ProbabilityRow& row) {
  const auto count = static_cast<size_t>(row.count);
  return {.ids = {row.ids, row.ids == nullptr ? 0 : count}, .probabilities = {row.values, count}};
}

template <class T>
void assign_part(std::vector<T>& to, const std::vector<T>& from, size_t first, size_t count) {
  const auto part = std::span(from).subspan(count == 0 ? 0 : first, count);
  to.assign(part.begin(), part.end());
}

}  // namespace

struct Drafter::State {
  State(std::unique_ptr<DraftModel> loaded, DrafterInfo facts, int64_t real_ids, int32_t num_threads, CpuIsa isa)
      : model(std::move(loaded)),
        info(std::move(facts)),
        num_real_ids(real_ids),
        sequences(info.max_sequences),
        threads(num_threads),
        context{.threads = &threads, .isa = isa},
        named(static_cast<size_t>(info.max_sequences), false) {}

  Status allocate_scratch();
  Status reserve_laws();
  Result<int32_t> slot_named_once(SequenceId sequence);
  Result<TapRows> check(const ContextRows& rows, int64_t rows_given);
  Result<DraftRequest> check(const DraftQuery& query, size_t index);
  Status extend(std::span<const float> taps, std::span<const ContextRows> rows);
  Status propose(std::span<const DraftQuery> queries, std::vector<Proposal>& proposals);
  void hand_out(std::vector<Proposal>& proposals) const;

  std::unique_ptr<DraftModel> model;
  DrafterInfo info;
  int64_t num_real_ids;
  SequenceTable sequences;
  ThreadPool threads;
  std::unique_ptr<Arena> arena;
  Context context;

  // Of the call in progress.
  std::vector<bool> named;  // [max_sequences] the call has named this slot's sequence
  std::vector<TapRows> tap_rows;
  std::vector<DraftRequest> requests;
  std::vector<int32_t> ids, widths;
  std::vector<float> confidences;
  std::vector<ProbabilityRow> laws;
  Arena law_memory{Buffer{}};  // of the newest propose()
};

Status Drafter::State::allocate_scratch() {
  const size_t bytes = model->scratch_bytes(threads.num_threads());
  BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(bytes, "scratch"));
  arena = std::make_unique<Arena>(std::move(memory));
  context.arena = arena.get();
  info.threads = threads.num_threads();
  info.cpu_isa = name_of(context.isa);
  info.scratch_bytes = static_cast<int64_t>(bytes);
  return {};
}

// What only drafts with laws need is allocated with the first of them, for any call that may come.
Status Drafter::State::reserve_laws() {
  if (law_memory.size_bytes() > 0 || std::ranges::none_of(requests, wants_law)) return {};
  const size_t bytes = model->law_bytes(int64_t{info.max_sequences} * info.trained_width);
  BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(bytes, "laws of drafts"));
  law_memory = Arena(std::move(memory));
  info.law_bytes = static_cast<int64_t>(bytes);
  return {};
}

Result<int32_t> Drafter::State::slot_named_once(SequenceId sequence) {
  BLOCKDRAFT_ASSIGN(const int32_t slot, sequences.slot_of(sequence));
  if (named[static_cast<size_t>(slot)]) {
    return make_error(Code::invalid_argument, "sequence {} is named twice in one call, expected once",
                      static_cast<int64_t>(sequence));
  }
  named[static_cast<size_t>(slot)] = true;
  return slot;
}

Result<TapRows> Drafter::State::check(const ContextRows& rows, int64_t rows_given) {
  const auto name = static_cast<int64_t>(rows.sequence);
  BLOCKDRAFT_ASSIGN(const int32_t slot, slot_named_once(rows.sequence));
  if (rows.first_row < 0 || rows.num_rows < 0 || rows.num_rows > rows_given - rows.first_row) {
    return make_error(Code::invalid_argument, "sequence {}: {} rows from row {} on, the taps have {} rows", name,
                      rows.num_rows, rows.first_row, rows_given);
  }
  const int32_t length = model->context_length(slot);
  if (rows.first_position != length) {
    return make_error(Code::invalid_argument,
                      "sequence {}: taps begin at position {}, expected {}, the end of its context", name,
                      rows.first_position, length);
  }
  if (rows.num_rows > info.max_positions - length) {
    return make_error(Code::limit_exceeded, "sequence {}: a context of {} positions, max_positions is {}", name,
                      length + rows.num_rows, info.max_positions);
  }
  return TapRows{slot, rows.first_position, static_cast<int32_t>(rows.first_row), static_cast<int32_t>(rows.num_rows)};
}

Status Drafter::State::extend(std::span<const float> taps, std::span<const ContextRows> rows) {
  const auto columns = static_cast<size_t>(info.tap_columns);
  if (taps.size() % columns != 0) {
    return make_error(Code::invalid_argument, "taps have {} numbers, expected a multiple of {}: {} layers of {}",
                      taps.size(), columns, info.target_layer_ids.size(), info.hidden_size);
  }
  const auto rows_given = static_cast<int64_t>(taps.size() / columns);
  std::fill(named.begin(), named.end(), false);
  tap_rows.clear();
  for (const ContextRows& part : rows) {
    BLOCKDRAFT_ASSIGN(const TapRows checked, check(part, rows_given));
    tap_rows.push_back(checked);
  }
  model->extend_context(context, view_f32(taps.data(), Shape{rows_given, info.tap_columns}), tap_rows);
  return {};
}

Result<DraftRequest> Drafter::State::check(const DraftQuery& query, size_t index) {
  BLOCKDRAFT_ASSIGN(const int32_t slot, slot_named_once(query.sequence));
  const int32_t length = model->context_length(slot);
  if (query.position != length) {
    return make_error(Code::invalid_argument,
                      "query {}: the anchor's position is {}, expected {}, the end of its context", index,
                      query.position, length);
  }
  if (query.anchor_id < 0 || query.anchor_id >= num_real_ids) {
    return make_error(Code::invalid_argument, "query {}: anchor id is {}, expected 0 to {}", index, query.anchor_id,
                      num_real_ids - 1);
  }
  if (query.width < 1 || query.width > info.trained_width) {
    return make_error(Code::invalid_argument, "query {}: width is {}, expected 1 to {}", index, query.width,
                      info.trained_width);
  }
  if (query.width >= info.max_positions - length) {
    return make_error(Code::limit_exceeded, "query {}: drafts up to position {}, max_positions is {}", index,
                      length + query.width, info.max_positions);
  }
  const Result<SamplingParams> sampling = sampling_params(query.sampling);
  if (!sampling) return make_error(sampling.error().code, "query {}: {}", index, sampling.error().message);
  return DraftRequest{.slot = slot,
                      .anchor_id = query.anchor_id,
                      .position = query.position,
                      .width = query.width,
                      .sampling = {.row = sampling_of_drafts(*sampling), .wants_law = sampling->uses_ratio()}};
}

Status Drafter::State::propose(std::span<const DraftQuery> queries, std::vector<Proposal>& proposals) {
  std::fill(named.begin(), named.end(), false);
  requests.clear();
  size_t drafts = 0;
  for (size_t i = 0; i < queries.size(); ++i) {
    BLOCKDRAFT_ASSIGN(const DraftRequest checked, check(queries[i], i));
    requests.push_back(checked);
    drafts += static_cast<size_t>(checked.width);
  }
  ids.resize(drafts);
  widths.resize(queries.size());
  confidences.resize(info.has_confidence ? drafts : 0);
  laws.assign(drafts, {});
  BLOCKDRAFT_TRY(reserve_laws());
  const ArenaScope whole(law_memory);  // what lies in it stays as it is until the next call takes it
  if (!queries.empty()) {
    BLOCKDRAFT_TRY(model->propose(
        context, requests,
        {.ids = ids, .widths = widths, .confidences = confidences, .laws = laws, .law_memory = &law_memory}));
  }
  hand_out(proposals);
  return {};
}

void Drafter::State::hand_out(std::vector<Proposal>& proposals) const {
  proposals.resize(requests.size());
  size_t first = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto width = static_cast<size_t>(requests[i].width);
    Proposal& proposal = proposals[i];
    assign_part(proposal.ids, ids, first, width);
    proposal.kept_width = widths[i];
    assign_part(proposal.confidences, confidences, first, info.has_confidence ? width : 0);
    proposal.laws.clear();
    if (wants_law(requests[i])) {
      std::ranges::transform(std::span(laws).subspan(first, width), std::back_inserter(proposal.laws), law_of);
    }
    first += width;
  }
}

Drafter::Drafter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Drafter::Drafter(Drafter&&) noexcept = default;
Drafter& Drafter::operator=(Drafter&&) noexcept = default;
Drafter::~Drafter() = default;

Result<Drafter> Drafter::open(const std::filesystem::path& folder, const DrafterOptions& options,
                              const TargetTensors& target) try {
  BLOCKDRAFT_TRY(check_options(options));
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa(options.cpu_isa));
  BLOCKDRAFT_ASSIGN(const TargetWeights weights, target_weights(target));
  BLOCKDRAFT_ASSIGN(const DrafterConfig config, read_drafter_config(folder));
  const DrafterLimits limits{
      .max_sequences = options.max_sequences,
      .max_positions = options.max_positions != 0
                           ? options.max_positions
                           : std::min(config.transformer.max_position_embeddings, kDefaultPositions)};
  ThreadPool threads(options.threads);  // while loading lasts
  BLOCKDRAFT_ASSIGN(std::unique_ptr<DraftModel> model,
                    DraftModel::load({folder}, config, weights, limits, {.isa = isa, .threads = &threads}));
  if (options.confidence_threshold > 0.0f) {
    BLOCKDRAFT_TRY(model->set_confidence_threshold(options.confidence_threshold));
  }
  DrafterInfo info = describe(*model, limits);
  auto state = std::make_unique<State>(std::move(model), std::move(info), weights.num_choices, options.threads, isa);
  BLOCKDRAFT_TRY(state->allocate_scratch());
  return Drafter(std::move(state));
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, "{}: no memory for {} sequences of {} positions", folder.string(),
                    options.max_sequences, options.max_positions);
}

Result<SequenceId> Drafter::new_sequence() { return state_->sequences.open(); }

Status Drafter::release(SequenceId sequence) {
  BLOCKDRAFT_ASSIGN(const int32_t slot, state_->sequences.slot_of(sequence));
  state_->model->reset(slot);
  state_->sequences.release(slot);
  return {};
}

Status Drafter::extend_context(SequenceId sequence, std::span<const float> taps, int32_t first_position) {
  const ContextRows rows{.sequence = sequence,
                         .first_position = first_position,
                         .num_rows = static_cast<int64_t>(taps.size()) / state_->info.tap_columns};
  return state_->extend(taps, {&rows, 1});
}

Status Drafter::extend_context(std::span<const float> taps, std::span<const ContextRows> rows) {
  return state_->extend(taps, rows);
}

Status Drafter::propose(std::span<const DraftQuery> queries, std::vector<Proposal>& proposals) {
  return state_->propose(queries, proposals);
}

Status Drafter::rewind(SequenceId sequence, int32_t position) {
  BLOCKDRAFT_ASSIGN(const int32_t slot, state_->sequences.slot_of(sequence));
  DraftModel& model = *state_->model;
  const int32_t length = model.context_length(slot);
  if (position < 0 || position > length) {
    return make_error(Code::invalid_argument, "sequence {}: cannot rewind to position {}, its context ends at {}",
                      static_cast<int64_t>(sequence), position, length);
  }
  const int32_t earliest = model.earliest_context_length(slot);
  if (position < earliest) {
    return make_error(Code::limit_exceeded,
                      "sequence {}: cannot rewind to position {}, the windows have left nothing before {}",
                      static_cast<int64_t>(sequence), position, earliest);
  }
  model.truncate_context(slot, position);
  return {};
}

Result<int32_t> Drafter::context_length(SequenceId sequence) const {
  BLOCKDRAFT_ASSIGN(const int32_t slot, state_->sequences.slot_of(sequence));
  return state_->model->context_length(slot);
}

const DrafterInfo& Drafter::info() const { return state_->info; }

}  // namespace blockdraft
