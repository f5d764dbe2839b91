// The complete configs of spec 2.7, patches of them, and what tests of the drafter's config share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/config_refusal.h"

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
Json muse_assistant();        // DFlash as the Muse Glimmer assistant's own files have it
Json mimo();                  // a vendor variant of DFlash
Json qwen35_4b();             // DFlash, from its row of the table in spec 2.7
Json qwen3_8b();              // the same, as are the following
Json qwen35_35b_a3b();
Json gpt_oss_20b();
Json gemma4_31b();

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

// Patches of qwen3_4b that are refused. Its one test is in drafter_config_refusal_test.cpp, tables are where they
// belong.
class DrafterRefusal : public testing::TestWithParam<Refusal> {};

}  // namespace blockdraft
