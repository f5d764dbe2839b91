// The C functions: translation, and the line that no exception crosses.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "blockdraft/accept.h"
#include "blockdraft/blockdraft.h"
#include "blockdraft/drafter.h"

struct blockdraft_drafter {
  blockdraft::Drafter drafter;
  std::vector<blockdraft::ContextRows> rows;
  std::vector<blockdraft::DraftQuery> queries;
  std::vector<blockdraft::Proposal> proposals;
};

namespace blockdraft {
namespace {

blockdraft_code code_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return BLOCKDRAFT_INVALID_ARGUMENT;
    case Code::not_found:
      return BLOCKDRAFT_NOT_FOUND;
    case Code::corrupt_file:
      return BLOCKDRAFT_CORRUPT_FILE;
    case Code::unsupported:
      return BLOCKDRAFT_UNSUPPORTED;
    case Code::mismatch:
      return BLOCKDRAFT_MISMATCH;
    case Code::limit_exceeded:
      return BLOCKDRAFT_LIMIT_EXCEEDED;
    case Code::out_of_memory:
      return BLOCKDRAFT_OUT_OF_MEMORY;
    case Code::io_error:
      return BLOCKDRAFT_IO_ERROR;
    case Code::numeric:
      return BLOCKDRAFT_NUMERIC;
  }
  return BLOCKDRAFT_INVALID_ARGUMENT;
}

void write_message(blockdraft_error* error, std::string_view message) {
  if (error == nullptr) return;
  size_t length = std::min(message.size(), sizeof(error->message) - 1);
  // Not in the middle of a UTF-8 character.
  while (length > 0 && length < message.size() && (static_cast<unsigned char>(message[length]) & 0xC0) == 0x80) {
    --length;
  }
  std::copy_n(message.data(), length, error->message);
  error->message[length] = '\0';
}

// Runs what may fail.
template <class Call>
blockdraft_code guarded(blockdraft_error* error, Call call) {
  try {
    const Status status = call();
    if (status) return BLOCKDRAFT_OK;
    write_message(error, status.error().message);
    return code_of(status.error().code);
  } catch (const std::bad_alloc&) {
    write_message(error, "out of memory");
    return BLOCKDRAFT_OUT_OF_MEMORY;
  } catch (const std::exception& exception) {
    write_message(error, exception.what());
    return BLOCKDRAFT_IO_ERROR;
  }
}

Status require(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return make_error(Code::invalid_argument, "{} is NULL, expected a pointer", name);
}

Status require(const void* pointer, size_t count, const char* name) {
  return count == 0 ? Status() : require(pointer, name);
}

MatrixView view_of(const blockdraft_matrix& matrix) {
  return {.data = matrix.data,
          .type = static_cast<MatrixType>(matrix.type),
          .rows = matrix.rows,
          .columns = matrix.columns,
          .row_scales = matrix.row_scales};
}

DrafterOptions options_of(const blockdraft_drafter_options& options) {
  return {.threads = options.threads,
          .max_sequences = options.max_sequences == 0 ? 1 : options.max_sequences,
          .max_positions = options.max_positions,
          .confidence_threshold = options.confidence_threshold,
          .cpu_isa = options.cpu_isa == nullptr ? "" : options.cpu_isa};
}

TargetTensors tensors_of(const blockdraft_target_tensors& target) {
  return {.embed_tokens = view_of(target.embed_tokens),
          .lm_head = view_of(target.lm_head),
          .num_layers = target.num_layers,
          .num_real_ids = target.num_real_ids,
          .embedding_scale = target.embedding_scale == 0.0f ? 1.0f : target.embedding_scale};
}

blockdraft_drafter_info info_of(const DrafterInfo& info) {
  return {.kind = info.kind.c_str(),
          .trained_width = info.trained_width,
          .target_layer_ids = info.target_layer_ids.data(),
          .num_target_layer_ids = static_cast<int32_t>(info.target_layer_ids.size()),
          .hidden_size = info.hidden_size,
          .tap_columns = info.tap_columns,
          .has_confidence = info.has_confidence,
          .block_size = info.block_size,
          .mask_token_id = info.mask_token_id,
          .shifted = info.shifted,
          .window = info.window,
          .threads = info.threads,
          .cpu_isa = info.cpu_isa.c_str(),
          .max_sequences = info.max_sequences,
          .max_positions = info.max_positions,
          .num_warnings = static_cast<int32_t>(info.warnings.size())};
}

// The matrix [tap_rows, tap_columns] as a span; a size that no memory has is refused.
Result<std::span<const float>> taps_of(const Drafter& drafter, const float* taps, int64_t tap_rows) {
  const int64_t most = PTRDIFF_MAX / static_cast<int64_t>(sizeof(float)) / drafter.info().tap_columns;
  if (tap_rows < 0 || tap_rows > most) {
    return make_error(Code::invalid_argument, "tap_rows is {}, expected 0 to {}", tap_rows, most);
  }
  return std::span(taps, static_cast<size_t>(tap_rows * drafter.info().tap_columns));
}

Sampling sampling_of(const blockdraft_sampling& sampling) {
  return {.temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p == 0.0f ? 1.0f : sampling.top_p,
          .min_p = sampling.min_p,
          .seed = sampling.seed,
          .choice = sampling.choice,
          .acceptance = static_cast<Acceptance>(sampling.acceptance)};
}

Sampling sampling_of(const blockdraft_sampling* sampling) {
  return sampling == nullptr ? Sampling{} : sampling_of(*sampling);
}

blockdraft_token_law law_of(const TokenLaw& law) {
  return {.ids = law.ids.empty() ? nullptr : law.ids.data(),
          .probabilities = law.probabilities.data(),
          .count = law.probabilities.size()};
}

Status check_law(const blockdraft_token_law& law) { return require(law.probabilities, law.count, "probabilities"); }

TokenLaw law_of(const blockdraft_token_law& law) {
  return {.ids = {law.ids, law.ids == nullptr ? 0 : law.count}, .probabilities = {law.probabilities, law.count}};
}

// One entry a draft, zeros where none was drawn.
void write_laws(const Proposal& proposal, blockdraft_token_law*& out) {
  if (proposal.laws.empty()) {
    out = std::fill_n(out, proposal.ids.size(), blockdraft_token_law{});
  } else {
    for (const TokenLaw& law : proposal.laws) *out++ = law_of(law);
  }
}

void write_proposals(const std::vector<Proposal>& proposals, blockdraft_drafts out) {
  for (const Proposal& proposal : proposals) {
    out.ids = std::ranges::copy(proposal.ids, out.ids).out;
    if (out.kept_widths != nullptr) *out.kept_widths++ = proposal.kept_width;
    if (out.confidences != nullptr) out.confidences = std::ranges::copy(proposal.confidences, out.confidences).out;
    if (out.laws != nullptr) write_laws(proposal, out.laws);
  }
}

blockdraft_accepted_drafts accepted_of(const AcceptedDrafts& kept) {
  return {.accepted = kept.accepted, .produced = kept.produced, .at_stop = kept.at_stop, .at_length = kept.at_length};
}

// Rows of a trial; a size that no memory has is refused.
Result<std::span<float>> rows_of(const blockdraft_ratio_trial& trial) {
  constexpr size_t kMostFloats = PTRDIFF_MAX / sizeof(float);
  if (trial.num_drafts >= kMostFloats) {
    return make_error(Code::invalid_argument, "num_drafts is {}, expected less than {}", trial.num_drafts, kMostFloats);
  }
  const size_t most = kMostFloats / (trial.num_drafts + 1);
  if (trial.num_ids > most) {
    return make_error(Code::invalid_argument, "num_ids is {}, expected 1 to {}", trial.num_ids, most);
  }
  return std::span(trial.probabilities, trial.num_ids * (trial.num_drafts + 1));
}

}  // namespace
}  // namespace blockdraft

using namespace blockdraft;  // NOLINT(google-build-using-namespace): C functions are in no namespace

blockdraft_code blockdraft_drafter_open(const char* folder, const blockdraft_drafter_options* options,
                                        const blockdraft_target_tensors* target, blockdraft_drafter** out,
                                        blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(folder, "folder"));
    BLOCKDRAFT_TRY(require(target, "target"));
    BLOCKDRAFT_TRY(require(out, "out"));
    const DrafterOptions chosen = options == nullptr ? DrafterOptions{} : options_of(*options);
    BLOCKDRAFT_ASSIGN(Drafter drafter, Drafter::open(folder, chosen, tensors_of(*target)));
    *out = new blockdraft_drafter{std::move(drafter), {}, {}, {}};
    return {};
  });
}

void blockdraft_drafter_close(blockdraft_drafter* drafter) { delete drafter; }

blockdraft_code blockdraft_drafter_get_info(const blockdraft_drafter* drafter, blockdraft_drafter_info* out,
                                            blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    BLOCKDRAFT_TRY(require(out, "out"));
    *out = info_of(drafter->drafter.info());
    return {};
  });
}

const char* blockdraft_drafter_warning(const blockdraft_drafter* drafter, int32_t index) {
  if (drafter == nullptr || index < 0) return nullptr;
  const std::vector<std::string>& warnings = drafter->drafter.info().warnings;
  return static_cast<size_t>(index) < warnings.size() ? warnings[static_cast<size_t>(index)].c_str() : nullptr;
}

blockdraft_code blockdraft_drafter_new_sequence(blockdraft_drafter* drafter, int64_t* out, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_ASSIGN(const SequenceId sequence, drafter->drafter.new_sequence());
    *out = static_cast<int64_t>(sequence);
    return {};
  });
}

blockdraft_code blockdraft_drafter_release(blockdraft_drafter* drafter, int64_t sequence, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    return drafter->drafter.release(SequenceId{sequence});
  });
}

blockdraft_code blockdraft_drafter_context_length(const blockdraft_drafter* drafter, int64_t sequence, int32_t* out,
                                                  blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_ASSIGN(*out, drafter->drafter.context_length(SequenceId{sequence}));
    return {};
  });
}

blockdraft_code blockdraft_drafter_extend_context(blockdraft_drafter* drafter, const float* taps, int64_t tap_rows,
                                                  const blockdraft_context_rows* rows, size_t num_rows,
                                                  blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    BLOCKDRAFT_TRY(require(rows, num_rows, "rows"));
    BLOCKDRAFT_ASSIGN(const std::span<const float> span, taps_of(drafter->drafter, taps, tap_rows));
    BLOCKDRAFT_TRY(require(taps, span.size(), "taps"));
    drafter->rows.clear();
    for (const blockdraft_context_rows& part : std::span(rows, num_rows)) {
      drafter->rows.push_back({SequenceId{part.sequence}, part.first_position, part.first_row, part.num_rows});
    }
    return drafter->drafter.extend_context(span, drafter->rows);
  });
}

blockdraft_code blockdraft_drafter_propose(blockdraft_drafter* drafter, const blockdraft_draft_query* queries,
                                           size_t num_queries, const blockdraft_drafts* out, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    BLOCKDRAFT_TRY(require(queries, num_queries, "queries"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_TRY(require(out->ids, num_queries, "ids"));
    drafter->queries.clear();
    for (const blockdraft_draft_query& query : std::span(queries, num_queries)) {
      drafter->queries.push_back(
          {SequenceId{query.sequence}, query.anchor_id, query.position, query.width, sampling_of(query.sampling)});
    }
    BLOCKDRAFT_TRY(drafter->drafter.propose(drafter->queries, drafter->proposals));
    write_proposals(drafter->proposals, *out);
    return {};
  });
}

blockdraft_code blockdraft_drafter_rewind(blockdraft_drafter* drafter, int64_t sequence, int32_t position,
                                          blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafter, "drafter"));
    return drafter->drafter.rewind(SequenceId{sequence}, position);
  });
}

blockdraft_code blockdraft_accept_greedy(const int32_t* drafts, size_t num_drafts, const int32_t* choices,
                                         int64_t remaining, const int32_t* stop_ids, size_t num_stop_ids,
                                         blockdraft_accepted_drafts* out, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(drafts, num_drafts, "drafts"));
    BLOCKDRAFT_TRY(require(choices, "choices"));
    BLOCKDRAFT_TRY(require(stop_ids, num_stop_ids, "stop_ids"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_ASSIGN(const AcceptedDrafts kept, accept_greedy({drafts, num_drafts}, {choices, num_drafts + 1},
                                                               remaining, {stop_ids, num_stop_ids}));
    *out = accepted_of(kept);
    return {};
  });
}

blockdraft_code blockdraft_choose_token(const float* logits, size_t num_ids, const blockdraft_sampling* sampling,
                                        int32_t position, int32_t* out, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(logits, "logits"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_ASSIGN(*out, choose_token({logits, num_ids}, sampling_of(sampling), position));
    return {};
  });
}

blockdraft_code blockdraft_to_probabilities(float* logits, size_t num_ids, const blockdraft_sampling* sampling,
                                            blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(logits, "logits"));
    return to_probabilities({logits, num_ids}, sampling_of(sampling));
  });
}

blockdraft_code blockdraft_accept_ratio(const blockdraft_ratio_trial* trial, int32_t* tokens,
                                        blockdraft_accepted_drafts* out, blockdraft_error* error) {
  return guarded(error, [&]() -> Status {
    BLOCKDRAFT_TRY(require(trial, "trial"));
    BLOCKDRAFT_TRY(require(trial->drafts, trial->num_drafts, "drafts"));
    BLOCKDRAFT_TRY(require(trial->laws, trial->num_drafts, "laws"));
    BLOCKDRAFT_TRY(require(trial->probabilities, "probabilities"));
    BLOCKDRAFT_TRY(require(trial->stop_ids, trial->num_stop_ids, "stop_ids"));
    BLOCKDRAFT_TRY(require(tokens, "tokens"));
    BLOCKDRAFT_TRY(require(out, "out"));
    BLOCKDRAFT_ASSIGN(const std::span<float> rows, rows_of(*trial));
    std::vector<TokenLaw> laws;
    for (const blockdraft_token_law& law : std::span(trial->laws, trial->num_drafts)) {
      BLOCKDRAFT_TRY(check_law(law));
      laws.push_back(law_of(law));
    }
    std::vector<int32_t> kept_tokens;
    BLOCKDRAFT_ASSIGN(const AcceptedDrafts kept, accept_ratio({.drafts = {trial->drafts, trial->num_drafts},
                                                               .laws = laws,
                                                               .probabilities = rows,
                                                               .position = trial->position,
                                                               .seed = trial->seed,
                                                               .choice = trial->choice,
                                                               .remaining = trial->remaining,
                                                               .stop_ids = {trial->stop_ids, trial->num_stop_ids}},
                                                              kept_tokens));
    std::ranges::copy(kept_tokens, tokens);
    *out = accepted_of(kept);
    return {};
  });
}
