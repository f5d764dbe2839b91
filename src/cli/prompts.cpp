#include "cli/prompts.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"

namespace blockdraft {
namespace {

Error usage_error(std::string message) { return {Code::invalid_argument, std::move(message)}; }

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

Result<std::string> id_of(const Json& object, const std::string& place, int64_t line_number) {
  const auto id = object.find("id");
  if (id == object.end()) return std::to_string(line_number);
  if (id->is_string()) return id->get<std::string>();
  if (id->is_number_integer()) return id->dump();
  return usage_error(fmt::format("{}: 'id' is {}, expected a string or an integer", place, json_type_name(*id)));
}

Result<NamedPrompt> parse_line(std::string_view line, const std::string& place, int64_t line_number) {
  const auto object = parse_json(line, place);
  if (!object) return usage_error(object.error().message);
  if (!object->is_object()) {
    return usage_error(
        fmt::format("{}: the line is {}, expected an object with a string \"prompt\"", place, json_type_name(*object)));
  }
  const auto prompt = object->find("prompt");
  if (prompt == object->end()) {
    return usage_error(fmt::format("{}: no \"prompt\" in the object, expected a string", place));
  }
  if (!prompt->is_string()) {
    return usage_error(fmt::format("{}: 'prompt' is {}, expected a string", place, json_type_name(*prompt)));
  }
  BLOCKDRAFT_ASSIGN(std::string id, id_of(*object, place, line_number));
  return NamedPrompt{std::move(id), prompt->get<std::string>()};
}

Result<std::vector<NamedPrompt>> read_prompts(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return usage_error(fmt::format("--prompts: '{}' is a folder; give a file of JSON lines", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return usage_error(fmt::format("--prompts: cannot read '{}' ({}); give a file of JSON lines", path.string(),
                                   std::strerror(errno)));
  }
  std::vector<NamedPrompt> prompts;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (is_blank(line)) continue;
    BLOCKDRAFT_ASSIGN(NamedPrompt prompt, parse_line(line, fmt::format("{}:{}", path.string(), number), number));
    prompts.push_back(std::move(prompt));
  }
  if (file.bad()) return usage_error(fmt::format("--prompts: reading '{}' failed", path.string()));
  if (prompts.empty()) return usage_error(fmt::format("--prompts: '{}' holds no prompt", path.string()));
  return prompts;
}

Result<std::vector<NamedPrompt>> all_prompts(const TextFlags& flags) {
  if (!flags.prompts.empty()) return read_prompts(flags.prompts);
  if (flags.has_prompt) return std::vector<NamedPrompt>{{"prompt", flags.prompt}};
  return usage_error("nothing to continue: give --prompt TEXT or --prompts FILE");
}

}  // namespace

Result<std::vector<NamedPrompt>> load_prompts(const TextFlags& flags) {
  BLOCKDRAFT_ASSIGN(std::vector<NamedPrompt> prompts, all_prompts(flags));
  const size_t count = prompts.size();
  std::erase_if(prompts, [&](const NamedPrompt& prompt) {
    return prompt.id.find(flags.filter) == std::string::npos && prompt.text.find(flags.filter) == std::string::npos;
  });
  if (!prompts.empty()) return prompts;
  return usage_error(
      fmt::format("--filter: none of the {} prompts has '{}' in its id or text", count, printable(flags.filter)));
}

std::vector<Request> requests_of(const std::vector<NamedPrompt>& prompts, const TextFlags& flags) {
  std::vector<Request> requests;
  requests.reserve(prompts.size());
  for (const NamedPrompt& prompt : prompts) {
    requests.push_back({.prompt = prompt.text,
                        .max_tokens = flags.max_tokens,
                        .stop = flags.stop,
                        .ignore_eos = flags.ignore_eos,
                        .temperature = flags.temperature,
                        .top_k = flags.top_k,
                        .top_p = flags.top_p,
                        .min_p = flags.min_p,
                        .seed = flags.seed,
                        .acceptance = flags.acceptance,
                        .repetition_penalty = flags.repetition_penalty,
                        .presence_penalty = flags.presence_penalty,
                        .frequency_penalty = flags.frequency_penalty,
                        .logit_bias = flags.logit_bias});
  }
  return requests;
}

std::vector<NamedPrompt> name_random_prompts(int32_t count) {
  std::vector<NamedPrompt> prompts;
  for (int32_t i = 0; i < count; ++i) prompts.push_back({fmt::format("random-{}", i), ""});
  return prompts;
}

std::vector<Request> random_requests(const std::vector<NamedPrompt>& prompts, const TextFlags& flags,
                                     int64_t num_tokens, int64_t vocab_size) {
  std::vector<Request> requests = requests_of(prompts, flags);
  const PhiloxKey key = {static_cast<uint32_t>(flags.seed), static_cast<uint32_t>(flags.seed >> 32)};
  for (uint32_t prompt = 0; prompt < requests.size(); ++prompt) {
    for (int64_t i = 0; i < num_tokens; ++i) {
      const uint32_t word = philox({static_cast<uint32_t>(i), prompt, 0, 0}, key)[0];
      requests[prompt].prompt_ids.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(vocab_size)));
    }
  }
  return requests;
}

}  // namespace blockdraft
