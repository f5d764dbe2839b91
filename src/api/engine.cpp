#include "blockdraft/engine.h"

#include <algorithm>
#include <deque>
#include <new>
#include <optional>
#include <utility>

#include "api/drafter_layout.h"
#include "api/limits.h"
#include "api/open_device.h"
#include "api/text_stream.h"
#include "base/check_option.h"
#include "base/error.h"
#include "engine/models.h"

namespace blockdraft {
namespace {

// What is said of a drafter must not be lost where there is none.
Status check_drafter_options(const EngineOptions& options) {
  BLOCKDRAFT_TRY(check_confidence_threshold(options.confidence_threshold));
  for (const float chance : options.accept_pattern) {
    if (chance >= 0.0f && chance <= 1.0f) continue;  // false for NaN
    return make_error(Code::invalid_argument, "option accept_pattern has {}, expected 0 to 1", chance);
  }
  if (!options.drafter.empty()) return {};
  const char* given = options.drafter_weights != WeightFormat::as_stored   ? "drafter_weights"
                      : options.drafter_layout != DrafterLayout::as_stated ? "drafter_layout"
                      : options.confidence_threshold > 0.0f                ? "confidence_threshold"
                      : !options.accept_pattern.empty()                    ? "accept_pattern"
                                                                           : nullptr;
  if (given == nullptr) return {};
  return make_error(Code::invalid_argument, "option {} is given, but no drafter is", given);
}

LoadFormat load_format(WeightFormat format) {
  switch (format) {
    case WeightFormat::as_stored:
      break;
    case WeightFormat::bf16:
      return LoadFormat::bf16;
    case WeightFormat::fp8:
      return LoadFormat::fp8;
    case WeightFormat::nvfp4:
      return LoadFormat::nvfp4;
    case WeightFormat::int8:
      return LoadFormat::int8;
  }
  return LoadFormat::stored;
}

Status check_draft_tokens(DraftWidth width, int32_t trained_width) {
  if (width.kind != DraftWidth::Kind::count) return {};
  return check_option("draft_tokens", width.count, 1, trained_width);
}

std::string name_of(DraftWidth width) {
  switch (width.kind) {
    case DraftWidth::Kind::count:
      break;
    case DraftWidth::Kind::trained:
      return "trained";
    case DraftWidth::Kind::adaptive:
      return "auto";
  }
  return std::to_string(width.count);
}

Result<Tokenizer> open_tokenizer(const EngineOptions& options) {
  if (options.random_weights) return Tokenizer::empty();
  return Tokenizer::open(options.target);
}

std::optional<uint64_t> random_seed(const EngineOptions& options) {
  if (!options.random_weights) return std::nullopt;
  return options.random_seed;
}

// A sequence's numbers do not depend on what else is in the batch, so one alone shows them all.
Status check_dump(const EngineOptions& options) {
  if (options.drafter.empty()) {
    return make_error(Code::mismatch, "option dump is {}, but no drafter is open", options.dump.folder.string());
  }
  if (options.dump.folder.empty()) {
    return make_error(Code::invalid_argument, "option dump has cycles, but its folder is empty");
  }
  if (options.max_sequences != 1) {
    return make_error(Code::invalid_argument, "option max_sequences is {}, expected 1 with dump",
                      options.max_sequences);
  }
  for (const DumpOptions::Range& range : options.dump.cycles) {
    if (range.first >= 0 && range.first <= range.last) continue;
    return make_error(Code::invalid_argument, "option dump has cycles {} to {}, expected a rising range from 0 on",
                      range.first, range.last);
  }
  return {};
}

Status start_dump(TokenEngine& engine, const DumpOptions& options) {
  std::vector<CycleRange> cycles;
  for (const DumpOptions::Range& range : options.cycles) cycles.push_back({range.first, range.last});
  BLOCKDRAFT_ASSIGN(CycleDump dump, CycleDump::create(options.folder, std::move(cycles)));
  engine.dump_to(std::move(dump));
  return {};
}

std::vector<MemoryPlanItem> memory_plan(const Models& models) {
  std::vector<MemoryPlanItem> plan;
  for (const PlanItem& item : models.engine->memory_plan().items()) {
    plan.push_back({item.name, static_cast<int64_t>(item.size_bytes)});
  }
  if (models.target->converted_bytes() > 0) {
    plan.push_back({"target weights", static_cast<int64_t>(models.target->converted_bytes())});
  }
  if (models.drafter != nullptr && models.drafter->converted_bytes() > 0) {
    plan.push_back({"drafter weights", static_cast<int64_t>(models.drafter->converted_bytes())});
  }
  return plan;
}

EngineInfo describe(const Models& models, const CudaDevice* card, const EngineOptions& options, int64_t max_positions) {
  const Target& target = *models.target;
  EngineInfo info{.target_kind = target.config().architecture,
                  .device = options.device,
                  .device_name = card == nullptr ? "cpu" : card->name(),
                  .threads = models.engine->num_threads(),
                  .cpu_isa = name_of(models.engine->isa()),
                  .max_sequences = options.max_sequences,
                  .max_positions = max_positions,
                  .mapped_bytes = static_cast<int64_t>(target.mapped_bytes()),
                  .vocab_size = target.config().transformer.vocab_size,
                  .verify_weight_bytes = target.weight_bytes(),
                  .verify_kv_bytes_per_position = target.state_bytes_per_position(),
                  .verify_flops_per_row = target.flops_per_row()};
  info.memory_plan = memory_plan(models);
  info.head_weight_bytes = target.lm_head().size_bytes();
  info.head_flops_per_row = 2 * target.lm_head().out_features * target.lm_head().in_features;
  info.prefill_rows = kPrefillRows;
  info.config_warnings = target.config().transformer.warnings;
  if (models.drafter == nullptr) return info;
  const DraftModel& drafter = *models.drafter;
  info.drafter_kind = name_of(drafter.config().family);
  const std::vector<std::string>& warnings = drafter.config().warnings;
  info.config_warnings.insert(info.config_warnings.end(), warnings.begin(), warnings.end());
  info.trained_width = drafter.trained_width();
  info.mapped_bytes += static_cast<int64_t>(drafter.mapped_bytes());
  info.propose_weight_bytes = drafter.propose_weight_bytes();
  info.propose_kv_bytes_per_position = drafter.kv_bytes_per_position();
  info.propose_flops_per_row = drafter.propose_flops_per_row();
  info.propose_extra_rows = drafter.config().rows_for_width(1) - 1;
  info.choice_flops_per_row = drafter.choice_flops_per_row();
  info.context_weight_bytes = drafter.context_weight_bytes();
  info.context_flops_per_row = drafter.context_flops_per_row();
  return info;
}

CallTimes call_times(const RunTimes& times) {
  return {times.total_s,    times.prefill_s, times.first_token_s, times.context_us,
          times.propose_us, times.verify_us, times.accept_us,     times.hand_offs};
}

static_assert(SamplingParams::kGreedyTemperature == kGreedyTemperature);

SamplingParams sampling_params(const Request& request) {
  SamplingParams params{
      .temperature = request.temperature,
      .top_k = request.top_k,
      .top_p = request.top_p,
      .min_p = request.min_p,
      .seed = request.seed,
      .acceptance = request.acceptance == Acceptance::ratio ? AcceptanceRule::ratio : AcceptanceRule::coupled,
      .repetition_penalty = request.repetition_penalty,
      .presence_penalty = request.presence_penalty,
      .frequency_penalty = request.frequency_penalty};
  for (const LogitBias& entry : request.logit_bias) params.logit_bias.push_back({entry.id, entry.bias});
  return params;
}

FinishReason finish_reason(const TokenResult& result, const TextStream& stream) {
  if (stream.canceled()) return FinishReason::canceled;
  if (stream.at_stop_text() || result.end == EndReason::at_stop) return FinishReason::stop;
  return FinishReason::length;
}

}  // namespace

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::canceled:
      return "canceled";
  }
  return "unknown";
}

struct Engine::State {
  Tokenizer tokenizer;
  std::shared_ptr<CudaDevice> card;  // null: the CPU. Before what computes on it, so that it dies after that
  Models models;
  EngineInfo info;
  CallTimes times;

  Status check(const Request& request, size_t index) const;
  TokenRequest token_request(const Request& request) const;
  Generation generation(const TokenRequest& request, TokenResult result, TextStream& stream) const;
};

Status Engine::State::check(const Request& request, size_t index) const {
  if (std::ranges::any_of(request.stop, &std::string::empty)) {
    return make_error(Code::invalid_argument, "request {}: a stop text is empty, expected one byte at least", index);
  }
  return {};
}

TokenRequest Engine::State::token_request(const Request& request) const {
  TokenRequest result{.max_tokens = request.max_tokens, .width = info.draft_tokens, .adapts_width = info.adapts_width};
  result.sampling = sampling_params(request);
  result.expects_acceptance = request.expect_acceptance;
  result.prompt_ids = request.prompt_ids.empty() ? tokenizer.encode(request.prompt) : request.prompt_ids;
  if (!request.ignore_eos) result.stop_ids = models.target->config().eos_token_ids;
  return result;
}

Generation Engine::State::generation(const TokenRequest& request, TokenResult result, TextStream& stream) const {
  stream.finish();
  Generation generation{.text = stream.text(),
                        .finish_reason = finish_reason(result, stream),
                        .prompt_tokens = static_cast<int64_t>(request.prompt_ids.size())};
  generation.cycles.reserve(result.cycles.size());
  for (const SequenceCycle& cycle : result.cycles) {
    generation.cycles.push_back({cycle.width, cycle.accepted, cycle.produced, cycle.asked, cycle.expected});
  }
  generation.ids = std::move(result.ids);
  return generation;
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::open(const EngineOptions& options) try {
  BLOCKDRAFT_TRY(check_limits(options.threads, options.max_sequences));
  BLOCKDRAFT_TRY(check_drafter_options(options));
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa(options.cpu_isa));
  BLOCKDRAFT_ASSIGN(const bool pin_threads, choose_thread_pinning());
  if (!options.dump.folder.empty() || !options.dump.cycles.empty()) BLOCKDRAFT_TRY(check_dump(options));
  BLOCKDRAFT_ASSIGN(std::shared_ptr<CudaDevice> card, open_device(options.device));
  BLOCKDRAFT_ASSIGN(const TargetConfig config, read_target_config(options.target));
  BLOCKDRAFT_ASSIGN(const int64_t max_positions, resolve_positions(options.max_positions, config.transformer));
  BLOCKDRAFT_ASSIGN(Tokenizer tokenizer, open_tokenizer(options));
  BLOCKDRAFT_ASSIGN(Models models,
                    open_models(config, {.device = card.get(),
                                         .target = options.target,
                                         .drafter = options.drafter,
                                         .threads = options.threads,
                                         .isa = isa,
                                         .pin_threads = pin_threads,
                                         .max_sequences = options.max_sequences,
                                         .max_positions = max_positions,
                                         .random_seed = random_seed(options),
                                         .target_format = load_format(options.target_weights),
                                         .num_real_ids = options.random_weights ? config.transformer.vocab_size
                                                                                : tokenizer.vocab_size(),
                                         .layout = layout_override(options.drafter_layout),
                                         .weight_format = load_format(options.drafter_weights),
                                         .confidence_threshold = options.confidence_threshold}));
  if (!options.dump.folder.empty()) BLOCKDRAFT_TRY(start_dump(*models.engine, options.dump));
  if (!options.accept_pattern.empty()) models.engine->set_accept_pattern(AcceptPattern(options.accept_pattern));
  EngineInfo info = describe(models, card.get(), options, max_positions);
  Engine engine(
      std::make_unique<State>(State{std::move(tokenizer), std::move(card), std::move(models), std::move(info), {}}));
  if (!options.drafter.empty() || options.draft_tokens != kTrainedWidth) {
    BLOCKDRAFT_TRY(engine.set_draft_tokens(options.draft_tokens));
  }
  return engine;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, "{}: no memory for the weights and {} sequences of {} positions",
                    options.target.string(), options.max_sequences, options.max_positions);
}

Status Engine::set_draft_tokens(DraftWidth draft_tokens) {
  EngineInfo& info = state_->info;
  if (state_->models.drafter == nullptr) {
    return make_error(Code::mismatch, "option draft_tokens is {}, but no drafter is open", name_of(draft_tokens));
  }
  BLOCKDRAFT_TRY(check_draft_tokens(draft_tokens, info.trained_width));
  if (draft_tokens == kAdaptiveWidth) {
    BLOCKDRAFT_TRY(state_->models.engine->reserve_backlog());
    info.memory_plan = memory_plan(state_->models);
  }
  info.adapts_width = draft_tokens.kind == DraftWidth::Kind::adaptive;
  info.draft_tokens = draft_tokens.kind == DraftWidth::Kind::count ? draft_tokens.count : info.trained_width;
  return {};
}

Result<Generation> Engine::generate(const Request& request, const OnPiece& on_piece) {
  BLOCKDRAFT_ASSIGN(std::vector<Generation> generations, generate(std::span(&request, 1), on_piece));
  return std::move(generations.front());
}

Result<std::vector<Generation>> Engine::generate(std::span<const Request> requests, const OnPiece& on_piece) {
  std::vector<TokenRequest> token_requests;
  std::deque<TextStream> streams;  // a deque: the callbacks below keep references
  for (size_t i = 0; i < requests.size(); ++i) {
    BLOCKDRAFT_TRY(state_->check(requests[i], i));
    std::function<bool(std::string_view)> emit;
    if (on_piece) emit = [&on_piece, i](std::string_view text) { return on_piece({i, text}); };
    TextStream& stream = streams.emplace_back(state_->tokenizer, requests[i].stop, std::move(emit));
    token_requests.push_back(state_->token_request(requests[i]));
    token_requests.back().on_token = [&stream](int32_t id) { return stream.push(id); };
  }
  Result<std::vector<TokenResult>> results = state_->models.engine->run(token_requests);
  state_->times = call_times(state_->models.engine->times());
  state_->info.memory_plan = memory_plan(state_->models);  // grows with the first request for ratio acceptance
  if (!results) return results.error();

  std::vector<Generation> generations;
  for (size_t i = 0; i < requests.size(); ++i) {
    generations.push_back(state_->generation(token_requests[i], std::move((*results)[i]), streams[i]));
  }
  return generations;
}

std::vector<std::string> Engine::warnings() const { return draft_warnings(state_->models.engine->draft_counts()); }
const CallTimes& Engine::last_call() const { return state_->times; }
const EngineInfo& Engine::info() const { return state_->info; }
const Tokenizer& Engine::tokenizer() const { return state_->tokenizer; }

}  // namespace blockdraft
