// Runs prompts through an engine, keeping what was streamed and how long it took.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/engine.h"
#include "blockdraft/result.h"
#include "cli/prompts.h"

namespace blockdraft {

// Prompts and their requests, index by index.
struct PromptBatch {
  std::span<const NamedPrompt> prompts;
  std::span<const Request> requests;

  size_t size() const { return requests.size(); }
  PromptBatch part(size_t first, size_t count) const {
    return {prompts.subspan(first, count), requests.subspan(first, count)};
  }
};

struct DecodedBatch {
  std::vector<Generation> generations;
  std::vector<std::string> streamed;  // the pieces of each, joined
  CallTimes times;
};

// Generated tokens and the wall time of the calls that made them, the passes over the prompts included.
struct SpeedTotals {
  int64_t tokens = 0;
  double seconds = 0;

  void add(const DecodedBatch& batch);
  double tokens_per_s() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// Requests that go into one call: one at a time where the engine decodes one at a time, so that each result is there as
// soon as it is complete; all of them otherwise, so that a free place is taken at once.
size_t call_size(const EngineInfo& info, size_t num_requests);

// One call. `on_begun` is called with the index of a request whenever a piece of it comes.
Result<DecodedBatch> decode_batch(Engine& engine, const PromptBatch& batch,
                                  const std::function<void(size_t)>& on_begun = {});

// The library counts the requests of a call ("request 3: ..."): here they have names.
Error name_prompt(const PromptBatch& batch, const Error& error);

// A few tokens of the first prompt, so that timing does not begin with reading weights from the disk.
Status warm_up(Engine& engine, const PromptBatch& batch);

}  // namespace blockdraft
