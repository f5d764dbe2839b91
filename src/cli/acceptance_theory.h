// How many drafts the laws of target and drafter allow to be accepted, beside how many were.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "blockdraft/result.h"
#include "cli/decode.h"

namespace blockdraft {

// Tokens a pass of the target, its own one included, over the passes that verified drafts.
class AcceptanceTheory {
 public:
  void add(const Generation& generation);
  std::optional<double> observed() const;
  std::optional<double> allowed() const;  // by p and q, draft by draft (CycleRecord::expected_accepted)

 private:
  int64_t cycles_ = 0, accepted_ = 0;
  double expected_ = 0;
};

struct AcceptanceTheories {
  AcceptanceTheory coupled, ratio;
};

// Decodes everything once with each acceptance; the requests draw their tokens.
Result<AcceptanceTheories> measure_acceptance(Engine& drafted, const PromptBatch& all);

std::string human_acceptance(const AcceptanceTheories& theories);  // a line each
Json json_acceptance(const AcceptanceTheories& theories);

}  // namespace blockdraft
