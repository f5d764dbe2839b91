// Block drafting in an engine that is not blockdraft's.
#pragma once

#include <cstdint>
#include <vector>

#include <blockdraft/drafter.h>

#include "model.h"

struct Cycle {
  int32_t width = 0;     // drafts that were verified
  int32_t accepted = 0;  // of those
  int32_t produced = 0;  // tokens committed
};

struct Text {
  std::vector<int32_t> tokens;  // the prompt, then what is generated
  std::vector<Cycle> cycles;

  // While it is being decoded.
  blockdraft::SequenceId sequence{};
  Cache cache;  // positions 0 .. tokens.size() - 2: all but the anchor
  size_t max_length = 0;
  bool ended = false;
};

// Greedy decoding of all prompts side by side. Throws std::runtime_error with blockdraft's message.
std::vector<Text> decode(const Model& model, blockdraft::Drafter& drafter,
                         const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens);
