// The prompts that the flags ask for.
#pragma once

#include <string>
#include <vector>

#include "blockdraft/engine.h"
#include "blockdraft/result.h"
#include "cli/options.h"

namespace blockdraft {

struct NamedPrompt {
  std::string id;  // the file's, or its line number
  std::string text;
};

// At least one. Errors are invalid_argument and name the flag or "FILE:LINE".
Result<std::vector<NamedPrompt>> load_prompts(const TextFlags& flags);

std::vector<Request> requests_of(const std::vector<NamedPrompt>& prompts, const TextFlags& flags);

// Prompts of `num_tokens` random ids below `vocab_size`, by the seed of the flags: names of `count` of them, and their
// requests.
std::vector<NamedPrompt> name_random_prompts(int32_t count);
std::vector<Request> random_requests(const std::vector<NamedPrompt>& prompts, const TextFlags& flags,
                                     int64_t num_tokens, int64_t vocab_size);

}  // namespace blockdraft
