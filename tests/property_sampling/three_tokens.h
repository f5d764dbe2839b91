// A target of ten tokens with a drafter of each family, so small that the law of a text's first three tokens can be
// written down: 1000 probabilities, each a product of three rows of the target.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/token_engine.h"
#include "property_sampling/laws.h"
#include "support/decoder.h"
#include "support/temp_dir.h"
#include "support/tiny_models.h"

namespace blockdraft::test {

inline constexpr int32_t kLawIds = 10;  // of the target's 12: then a row of padding, and the drafters' mask
inline constexpr int32_t kLawWidth = 3;
inline const std::vector<int32_t> kLawPrompt = {3, 1, 3};

class LawModels {
 public:
  static const LawModels& get();
  std::filesystem::path target() const { return folder_ / "target"; }
  std::filesystem::path drafter(TinyFamily family) const;

 private:
  LawModels();
  TempDir folder_;
};

// How the tokens of a text are chosen, in all that the tests of laws vary.
struct LawCase {
  std::string name;
  SamplingParams sampling;  // seed and acceptance are the test's
};
const std::vector<LawCase>& law_cases();

// [kLawIds ^ 3] by first, second and third token: by enumeration, with a forward pass (NaiveTarget), penalties and
// filters that are written down a second time, in double.
Law law_of_three_tokens(const SamplingParams& sampling);

TokenEngineOptions law_options();
MakeDrafts law_drafter(TinyFamily family);

struct ThreeTokens {
  std::vector<int64_t> counts;  // as the law
  int64_t accepted = 0;         // drafts of all texts
  int64_t tested = 0;           // those that were reached: the accepted ones and the first of each cycle that was not
  double expected = 0;          // of those, by their laws
};

// Draws `texts` texts with seeds of their own; five tokens each, so that drafts reach beyond the third.
//   widths: text i asks for widths[i % size] drafts a cycle.
ThreeTokens draw_three_tokens(Decoder& decoder, const SamplingParams& sampling, int64_t texts,
                              const std::vector<int32_t>& widths);

std::string name_of(TinyFamily family);

}  // namespace blockdraft::test
