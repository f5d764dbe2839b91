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

}  // namespace blockdraft
