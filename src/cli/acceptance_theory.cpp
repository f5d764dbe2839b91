#include "cli/acceptance_theory.h"

#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/progress.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

Result<AcceptanceTheory> measure(Engine& drafted, const PromptBatch& all, Acceptance acceptance) {
  std::vector<Request> requests(all.requests.begin(), all.requests.end());
  for (Request& request : requests) {
    request.acceptance = acceptance;
    request.expect_acceptance = true;
  }
  AcceptanceTheory theory;
  ProgressBar progress(acceptance == Acceptance::ratio ? "ratio" : "coupled", requests.size());
  const PromptBatch asking{all.prompts, requests};
  const size_t step = call_size(drafted.info(), requests.size());
  for (size_t first = 0; first < requests.size(); first += step) {
    BLOCKDRAFT_ASSIGN(const DecodedBatch decoded,
                      decode_batch(drafted, asking.part(first, step), [&](size_t i) { progress.update(first + i); }));
    for (const Generation& generation : decoded.generations) theory.add(generation);
  }
  return theory;
}

}  // namespace

void AcceptanceTheory::add(const Generation& generation) {
  for (const CycleRecord& cycle : generation.cycles) {
    if (cycle.width == 0) continue;
    ++cycles_;
    accepted_ += cycle.accepted;
    expected_ += cycle.expected_accepted;
  }
}

std::optional<double> AcceptanceTheory::observed() const {
  if (cycles_ == 0) return std::nullopt;
  return 1 + static_cast<double>(accepted_) / static_cast<double>(cycles_);
}

std::optional<double> AcceptanceTheory::allowed() const {
  if (cycles_ == 0) return std::nullopt;
  return 1 + expected_ / static_cast<double>(cycles_);
}

Result<AcceptanceTheories> measure_acceptance(Engine& drafted, const PromptBatch& all) {
  AcceptanceTheories theories;
  BLOCKDRAFT_ASSIGN(theories.coupled, measure(drafted, all, Acceptance::coupled));
  BLOCKDRAFT_ASSIGN(theories.ratio, measure(drafted, all, Acceptance::ratio));
  return theories;
}

std::string human_acceptance(const AcceptanceTheories& theories) {
  const auto row = [](const char* name, const AcceptanceTheory& theory) {
    return fmt::format("{:<8} {} tokens a pass that verifies drafts, {} allowed by p and q\n", name,
                       decimal(theory.observed(), 2), decimal(theory.allowed(), 2));
  };
  return row("coupled", theories.coupled) + row("ratio", theories.ratio);
}

Json json_acceptance(const AcceptanceTheories& theories) {
  const auto entry = [](const AcceptanceTheory& theory) -> Json {
    return {{"observed", json_or_null(theory.observed())}, {"allowed", json_or_null(theory.allowed())}};
  };
  return {{"coupled", entry(theories.coupled)}, {"ratio", entry(theories.ratio)}};
}

}  // namespace blockdraft
