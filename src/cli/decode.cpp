#include "cli/decode.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace blockdraft {
namespace {

constexpr std::string_view kRequest = "request ";

// Fields of Request that all prompts share, by the flag of the same name: "top_k is -1" is about --top-k.
constexpr std::string_view kSharedFields[] = {
    "temperature",      "top_k", "top_p", "min_p", "logit_bias", "repetition_penalty", "presence_penalty",
    "frequency_penalty"};

// The message with the flag in the field's place; empty if it is about something else.
std::string with_flag(std::string_view message) {
  for (const std::string_view field : kSharedFields) {
    if (!message.starts_with(field)) continue;
    std::string flag = "--" + std::string(field);
    std::ranges::replace(flag, '_', '-');
    return flag + std::string(message.substr(field.size()));
  }
  return {};
}

}  // namespace

void SpeedTotals::add(const DecodedBatch& batch) {
  for (const Generation& generation : batch.generations) tokens += static_cast<int64_t>(generation.ids.size());
  seconds += batch.times.total_s;
}

size_t call_size(const EngineInfo& info, size_t num_requests) { return info.max_sequences == 1 ? 1 : num_requests; }

Error name_prompt(const PromptBatch& batch, const Error& error) {
  std::string_view message = error.message;
  size_t index = 0;
  if (message.starts_with(kRequest)) {
    message.remove_prefix(kRequest.size());
    const auto [end, failed] = std::from_chars(message.data(), message.data() + message.size(), index);
    if (failed != std::errc() || index >= batch.size() || !std::string_view(end).starts_with(": ")) return error;
    message.remove_prefix(static_cast<size_t>(end - message.data()) + 2);
  } else if (batch.size() > 1) {
    return error;
  }
  if (std::string text = with_flag(message); !text.empty()) return {error.code, std::move(text)};
  return make_error(error.code, "prompt '{}': {}", printable(batch.prompts[index].id), message);
}

Result<DecodedBatch> decode_batch(Engine& engine, const PromptBatch& batch,
                                  const std::function<void(size_t)>& on_begun) {
  DecodedBatch decoded;
  decoded.streamed.resize(batch.size());
  auto generations = engine.generate(batch.requests, [&](const Piece& piece) {
    decoded.streamed[piece.request] += piece.text;
    if (on_begun) on_begun(piece.request);
    return true;
  });
  if (!generations) return name_prompt(batch, generations.error());
  decoded.generations = std::move(*generations);
  decoded.times = engine.last_call();
  return decoded;
}

Status warm_up(Engine& engine, const PromptBatch& batch) {
  constexpr int64_t kTokens = 8;
  Request request = batch.requests.front();
  request.max_tokens = std::min(request.max_tokens, kTokens);
  if (const auto done = engine.generate(request); !done) return name_prompt(batch.part(0, 1), done.error());
  return {};
}

}  // namespace blockdraft
