// The complete configs of spec 2.7, patches of them, and what tests of the drafter's config share.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "draft/drafter_config.h"

namespace blockdraft {

Json qwen3_4b();              // DFlash
Json qwen36_27b();            // DFlash
Json qwen38_27b_dflash2();    // DFlash2
Json muse_30b_dflash2();      // DFlash2
Json qwen3_4b_dspark();       // DSpark as SpecForge writes it
Json qwen3_4b_deepspec();     // DSpark as DeepSpec writes it: a copy of the target's config
Json qwen3_4b_speculators();  // DFlash in speculators format
Json speculators_dspark();    // DSpark in speculators format
Json speculators_dflash2();   // DFlash2 in speculators format
Json mimo();                  // a vendor variant of DFlash

// `patch` is a merge patch: null removes a key.
Json patched(Json document, const char* patch);

// Reads `document` with `patch` as "config.json". The first must be accepted.
DrafterConfig accepted(const Json& document, const char* patch = "{}");
Result<DrafterConfig> read(const char* patch);       // of qwen3_4b
DrafterConfig read_ok(const char* patch);            // of qwen3_4b
DrafterConfig read_folder(const std::string& path);  // relative to the source tree
DrafterConfig read_golden(const std::string& name);
DrafterConfig value_of(Result<DrafterConfig> config);

// The message is without the origin.
void expect_refused(const Json& document, const char* patch, Code code, const std::string& message);

std::vector<int32_t> windows(const DrafterConfig& config);
std::vector<bool> causality(const DrafterConfig& config);
std::vector<bool> slides(const DrafterConfig& config);

// A patch of qwen3_4b that is refused.
struct Refusal {
  const char* name;
  const char* patch;
  Code code;
  std::string message;  // without the origin
};
inline void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

}  // namespace blockdraft
