#include "engine/token_engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/has_cuda.h"
#include "base/log.h"
#include "base/timer.h"
#include "verify/accept.h"

namespace blockdraft {
namespace {

// Of a card. A prompt of so many tokens is read sooner by the kernels of decoding, in one pass over the weights. Which
// kernels read a prompt depends on its length alone.
constexpr int64_t kShortPrompt = 64;

}  // namespace

Result<std::unique_ptr<TokenEngine>> TokenEngine::open(Target& target, DraftSource* drafter,
                                                       const TokenEngineOptions& options) {
  std::unique_ptr<TokenEngine> engine(new TokenEngine(target, drafter, options));
  BLOCKDRAFT_TRY(engine->allocate());
  return engine;
}

TokenEngine::TokenEngine(Target& target, DraftSource* drafter, const TokenEngineOptions& options)
    : target_(target),
      drafter_(drafter),
      options_(options),
      threads_(options.threads, options.pin_threads),
      head_{.weight = target.lm_head(), .num_choices = options.num_choices},
      first_chooser_(head_, 1) {
  CHECK(options.max_sequences >= 1 && options.max_positions >= 1);
  CHECK(options.max_width >= 0 && options.max_width <= (drafter == nullptr ? 0 : drafter->trained_width()));
  CHECK(options.num_choices >= 1 && options.num_choices <= head_.weight.out_features);
}

Status TokenEngine::allocate() {
  const CycleLimits limits = options_.cycle_limits();
  const int32_t num_threads = threads_.num_threads();
  ModelSizes models{.target = {target_.state_bytes(), target_.scratch_bytes(num_threads)},
                    .hidden_size = target_.config().transformer.hidden_size,
                    .head = head_};
  if (drafter_ != nullptr) {
    models.drafter = {drafter_->state_bytes(), drafter_->scratch_bytes(num_threads)};
    models.num_taps = static_cast<int64_t>(drafter_->target_layer_ids().size());
  }
  plan_ = plan_memory(models, limits);
  BLOCKDRAFT_ASSIGN(prefill_taps_, allocate_for(options_.device, plan_.prefill_taps, "taps of a prompt"));
  BLOCKDRAFT_ASSIGN(Buffer cycle_taps, allocate_for(options_.device, plan_.cycle_taps, "taps of a cycle"));
  cycle_ = std::make_unique<Cycle>(target_, drafter_, head_, limits, std::move(cycle_taps));
  context_ = {.threads = &threads_, .isa = options_.isa};
  if (options_.device != nullptr) {
    BLOCKDRAFT_TRY(open_link());
    open_prompt_products();
    BLOCKDRAFT_TRY(measure_scratch());
  }
  BLOCKDRAFT_ASSIGN(Buffer scratch, allocate_for(options_.device, plan_.scratch, "scratch"));
  arena_ = std::make_unique<Arena>(std::move(scratch));
  context_.arena = arena_.get();
  return {};
}

// What a card needs on the side of the CPU.
Status TokenEngine::open_link() {
  if constexpr (kHasCuda) {
    const CycleLimits limits = options_.cycle_limits();
    const LinkSizes sizes = plan_link(limits, options_.max_positions, head_.weight.out_features);
    BLOCKDRAFT_ASSIGN(HostLink link, HostLink::create(*options_.device, sizes.send_bytes, sizes.receive_bytes));
    link_ = std::make_shared<HostLink>(std::move(link));
    BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(sizes.cpu_bytes, "scratch of the CPU"));
    cpu_arena_ = std::make_unique<Arena>(std::move(memory));
    plan_.link = sizes.send_bytes + sizes.receive_bytes;
    context_.cuda = options_.device;
    context_.link = link_.get();
    context_.cpu_arena = cpu_arena_.get();
  }
  return {};
}

// A library that a machine may do without.
void TokenEngine::open_prompt_products() {
  if constexpr (kHasCuda) {
    auto opened = CublasLt::open(*options_.device);
    if (opened) {
      prompt_products_ = *std::move(opened);
    } else {
      log_warning("prompts are read by the kernels of decoding, which takes longer: {}", opened.error().message);
    }
  }
}

Status TokenEngine::validate(const TokenRequest& request, size_t index) const {
  if (request.prompt_ids.empty()) {
    return make_error(Code::invalid_argument, "request {}: the prompt has no tokens, expected one at least", index);
  }
  if (request.max_tokens < 0) {
    return make_error(Code::invalid_argument, "request {}: max_tokens is {}, expected at least 0", index,
                      request.max_tokens);
  }
  if (request.width < 0 || request.width > options_.max_width) {
    return make_error(Code::invalid_argument, "request {}: draft width is {}, expected 0 to {}", index, request.width,
                      options_.max_width);
  }
  if (static_cast<int64_t>(request.prompt_ids.size()) > options_.max_positions) {
    return make_error(Code::limit_exceeded, "request {}: the prompt has {} tokens, the engine takes {} positions",
                      index, request.prompt_ids.size(), options_.max_positions);
  }
  const int64_t table_rows = target_.embed_tokens().out_features;
  for (const int32_t id : request.prompt_ids) {
    if (id < 0 || id >= table_rows) {
      return make_error(Code::invalid_argument, "request {}: prompt id is {}, expected 0 to {}", index, id,
                        table_rows - 1);
    }
  }
  if (const Status status = check_sampling(request.sampling, options_.num_choices); !status) {
    return make_error(status.error().code, "request {}: {}", index, status.error().message);
  }
  if (request.adapts_width && request.width > 0 && request.sampling.uses_ratio()) {
    return make_error(
        Code::invalid_argument,
        "request {}: acceptance is ratio, whose text depends on the width of every cycle, expected coupled "
        "with draft_tokens auto",
        index);
  }
  if (request.expects_acceptance && !request.sampling.draws()) {
    return make_error(Code::invalid_argument,
                      "request {}: temperature is {}, expected {} or more where the expected acceptance is asked for",
                      index, request.sampling.temperature, SamplingParams::kGreedyTemperature);
  }
  if (wants_laws(request) && drafter_->law_bytes(1) == 0) {
    return make_error(Code::mismatch,
                      "request {}: {} needs the law of every draft, and this source of drafts gives none; expected "
                      "coupled acceptance without it",
                      index, request.sampling.uses_ratio() ? "ratio acceptance" : "the expected acceptance");
  }
  return {};
}

Status TokenEngine::reserve_backlog() {
  BLOCKDRAFT_TRY(cycle_->reserve_backlog(options_.device));
  plan_.waiting_taps = cycle_->backlog_bytes();
  return {};
}

// Ratio acceptance needs memory that no other request does.
Status TokenEngine::reserve_laws(std::span<const TokenRequest> requests) {
  if (std::ranges::none_of(requests, wants_laws)) return {};
  BLOCKDRAFT_TRY(cycle_->reserve_laws());
  plan_.laws = cycle_->law_bytes();
  return {};
}

int64_t TokenEngine::text_limit(const TokenRequest& request) const {
  return std::min(request.max_tokens, options_.max_positions - static_cast<int64_t>(request.prompt_ids.size()));
}

// A cycle gives a token at least to every running text, and as long as a request waits all slots are in use.
int64_t TokenEngine::max_cycles(std::span<const TokenRequest> requests) const {
  int64_t total = 0;
  int64_t longest = 0;
  for (const TokenRequest& request : requests) {
    total += text_limit(request);
    longest = std::max(longest, text_limit(request));
  }
  return total / options_.max_sequences + longest;
}

Result<std::vector<TokenResult>> TokenEngine::run(std::span<const TokenRequest> requests) {
  if constexpr (kHasCuda) {
    if (options_.device != nullptr) options_.device->make_current();  // of whatever thread this is
  }
  for (size_t i = 0; i < requests.size(); ++i) BLOCKDRAFT_TRY(validate(requests[i], i));
  BLOCKDRAFT_TRY(reserve_laws(requests));
  times_ = {};
  times_.reserve(static_cast<size_t>(max_cycles(requests)));
  const Timer timer;
  std::vector<TokenResult> results(requests.size());
  const Status status = decode_all(requests, results);
  times_.total_s = timer.elapsed_s();
  if (!status) return status.error();
  return results;
}

Status TokenEngine::decode_all(std::span<const TokenRequest> requests, std::vector<TokenResult>& results) {
  const Timer timer;
  BLOCKDRAFT_TRY(prepare_widths(requests));
  std::vector<std::unique_ptr<Sequence>> running;
  std::vector<int32_t> free_slots;
  for (int32_t slot = options_.max_sequences - 1; slot >= 0; --slot) free_slots.push_back(slot);
  size_t next = 0;
  std::vector<Sequence*> batch;
  const auto retire = [&](Sequence& sequence) {
    sequence.result.ids.assign(sequence.generated().begin(), sequence.generated().end());
    results[sequence.request] = std::move(sequence.result);
    release(sequence);
    free_slots.push_back(sequence.slot);
  };
  // On an error the slots must be empty again for the next run.
  const auto fail = [&](const Error& error) -> Status {
    for (const auto& sequence : running) release(*sequence);
    return error;
  };

  while (next < requests.size() || !running.empty()) {
    while (next < requests.size() && !free_slots.empty()) {
      auto sequence = std::make_unique<Sequence>();
      sequence->request = next;
      sequence->input = requests[next++];
      sequence->slot = free_slots.back();
      free_slots.pop_back();
      running.push_back(std::move(sequence));
      const Timer prefill_timer;
      if (const Status status = admit(*running.back()); !status) return fail(status.error());
      times_.prefill_s += prefill_timer.elapsed_s();
      if (times_.first_token_s == 0) times_.first_token_s = timer.elapsed_s();
      if (!running.back()->ended) continue;
      retire(*running.back());
      running.pop_back();
    }
    batch.clear();
    for (const auto& sequence : running) batch.push_back(sequence.get());
    if (batch.empty()) continue;
    if (const Status status = run_cycle(batch); !status) return fail(status.error());
    std::erase_if(running, [&](const std::unique_ptr<Sequence>& sequence) {
      if (sequence->ended) retire(*sequence);
      return sequence->ended;
    });
  }
  return {};
}

Status TokenEngine::run_cycle(std::span<Sequence* const> batch) {
  const int64_t hand_offs = context_.threads->hand_offs();
  BLOCKDRAFT_TRY(cycle_->run(context_, batch, times_));
  times_.hand_offs += context_.threads->hand_offs() - hand_offs;
  if (!dump_) return {};
  BLOCKDRAFT_TRY(dump_->end_cycle(*batch.front()));
  context_.recorder = dump_->recorder();
  return {};
}

void TokenEngine::dump_to(CycleDump dump) {
  CHECK(options_.max_sequences == 1);
  dump_ = std::move(dump);
  context_.recorder = dump_->recorder();
}

// Reads the prompt and commits the first token, which comes out of the prompt's own last row.
Status TokenEngine::admit(Sequence& sequence) {
  if (dump_) dump_->begin_text();
  const auto prompt_length = static_cast<int64_t>(sequence.input.prompt_ids.size());
  sequence.max_length = prompt_length + text_limit(sequence.input);
  sequence.tokens.reserve(static_cast<size_t>(sequence.max_length));
  sequence.tokens = sequence.input.prompt_ids;
  sequence.result.cycles.reserve(static_cast<size_t>(sequence.remaining()));
  if (sequence.remaining() == 0) {
    sequence.ended = true;
    return {};
  }
  if (sequence.input.sampling.penalizes()) {
    // Verify rows count drafts as generated for a moment: up to max_width of them.
    sequence.history = TokenHistory(sequence.input.prompt_ids, target_.embed_tokens().out_features,
                                    sequence.remaining() + options_.max_width);
  }
  if (sequence.input.adapts_width && sequence.input.width > 0) {
    sequence.adaptive = cycle_->policy(cost_kind(sequence.input))->begin();
  }
  int32_t choice = 0;
  BLOCKDRAFT_TRY(prefill(sequence, choice));
  const Committed committed = commit(0, {&choice, 1}, sequence.remaining(), sequence.input.stop_ids);
  sequence.append({&choice, 1}, committed);
  return {};
}

// The first token is chosen as all others are, by the kernels of decoding.
Status TokenEngine::prefill(Sequence& sequence, int32_t& first_choice) {
  const ArenaScope scope(*context_.arena);
  const TensorView hidden = context_.arena->take_f32({1, target_.config().transformer.hidden_size});
  if (std::ssize(sequence.input.prompt_ids) > kShortPrompt) context_.prompt_products = prompt_products_.get();
  const Status status = read_prompt(sequence, hidden);
  context_.prompt_products = nullptr;
  BLOCKDRAFT_TRY(status);
  const VerifiedBlock block{.sequence = &sequence};
  int32_t accepted = 0;
  first_chooser_.choose(context_, hidden, {&block, 1}, {&first_choice, 1}, {&accepted, 1});
  BLOCKDRAFT_TRY(synchronize(context_));
  return first_chooser_.settle({&block, 1}, {&first_choice, 1}, {&accepted, 1});
}

Status TokenEngine::read_prompt(Sequence& sequence, TensorView hidden) {
  const std::span<const int32_t> prompt = sequence.input.prompt_ids;
  const std::span<const int32_t> layer_ids =
      drafter_ == nullptr ? std::span<const int32_t>{} : drafter_->target_layer_ids();
  const TensorView taps =
      view_f32(prefill_taps_.f32(), Shape{kPrefillRows, static_cast<int64_t>(layer_ids.size()) * hidden.dim(1)});
  for (size_t first = 0; first < prompt.size(); first += kPrefillRows) {
    const std::span<const int32_t> ids = prompt.subspan(first, std::min<size_t>(kPrefillRows, prompt.size() - first));
    const auto rows = static_cast<int32_t>(ids.size());
    const bool is_last = first + ids.size() == prompt.size();
    const int32_t last_row = rows - 1;
    const SequenceRows sequence_rows{sequence.slot, static_cast<int32_t>(first), ids};
    BLOCKDRAFT_TRY(begin_pass());
    target_.reserve(sequence.slot, rows);
    target_.forward(context_, {.sequences = {&sequence_rows, 1},
                               .hidden_rows = {&last_row, is_last ? size_t{1} : size_t{0}},
                               .hidden = hidden,
                               .tap_layer_ids = layer_ids,
                               .taps = taps});
    target_.commit(sequence.slot, rows);
    if (drafter_ != nullptr) {
      const TapRows tap_rows{sequence.slot, static_cast<int32_t>(first), 0, rows};
      drafter_->extend_context(context_, taps, {&tap_rows, 1});
    }
  }
  return {};
}

Status TokenEngine::begin_pass() {
  if constexpr (kHasCuda) {
    if (link_ != nullptr) return link_->begin();
  }
  return {};
}

void TokenEngine::release(Sequence& sequence) {
  target_.reset(sequence.slot);
  cycle_->release(sequence.slot);
  if (drafter_ != nullptr) drafter_->reset(sequence.slot);
}

}  // namespace blockdraft
