#include "draft/pairing.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

constexpr TargetFacts kTarget{.hidden_size = 64, .num_hidden_layers = 8, .vocab_size = 4160, .num_choices = 4096};

DrafterConfig fitting() {
  DrafterConfig drafter;
  drafter.origin = "drafter/config.json";
  drafter.transformer.hidden_size = 64;
  drafter.transformer.vocab_size = 4160;
  drafter.target_hidden_size = 64;
  drafter.target_layer_ids = {6, 1, 4};
  drafter.num_target_layers = 8;
  drafter.mask_token_id = 4100;
  return drafter;
}

TEST(Pairing, AFittingPairFitsInEveryItem) {
  const auto checks = check_pairing(fitting(), kTarget);
  EXPECT_EQ(checks.size(), 6u);
  for (const PairingCheck& check : checks) {
    EXPECT_TRUE(check.fits) << check.name;
    EXPECT_FALSE(check.target.empty());
    EXPECT_FALSE(check.drafter.empty());
  }
  EXPECT_TRUE(require_pairing(fitting(), kTarget).ok());
}

struct Case {
  const char* item;
  std::function<void(DrafterConfig&)> change;
  bool fits;
  std::string found = {};
  std::string wanted = {};
};

TEST(Pairing, EachItemIsLookedAt) {
  const std::vector<Case> cases = {
      {"hidden size", [](DrafterConfig& d) { d.transformer.hidden_size = 128; }, false, "128", "64"},
      {"width of a tap", [](DrafterConfig& d) { d.target_hidden_size = 32; }, false, "32", "64"},
      {"decoder layers", [](DrafterConfig& d) { d.num_target_layers = 9; }, false, "trained for 9", "8"},
      {"decoder layers", [](DrafterConfig& d) { d.num_target_layers.reset(); }, true},
      {"target layer ids",
       [](DrafterConfig& d) {
         d.target_layer_ids = {0, 7};
       },
       true},
      {"target layer ids",
       [](DrafterConfig& d) {
         d.target_layer_ids = {8, 0};
       },
       false, "8, 0", "0 to 7"},
      {"mask id", [](DrafterConfig& d) { d.mask_token_id = 4159; }, true},
      {"mask id", [](DrafterConfig& d) { d.mask_token_id = 4160; }, false, "4160", "0 to 4159"},
      // Less padding than the target's, none, and more; but not fewer than the real ids.
      {"vocabulary", [](DrafterConfig& d) { d.transformer.vocab_size = 4096; }, true},
      {"vocabulary", [](DrafterConfig& d) { d.transformer.vocab_size = 4095; }, false, "4095 rows", "4096 real ids"},
      {"vocabulary", [](DrafterConfig& d) { d.transformer.vocab_size = 4096 + kMaxVocabularyPadding - 1; }, true},
      {"vocabulary", [](DrafterConfig& d) { d.transformer.vocab_size = 4096 + kMaxVocabularyPadding; }, false, "6144",
       "4160 rows"}};
  for (const Case& c : cases) {
    DrafterConfig drafter = fitting();
    c.change(drafter);
    bool seen = false;
    for (const PairingCheck& check : check_pairing(drafter, kTarget)) {
      EXPECT_EQ(check.fits, check.name != c.item || c.fits) << check.name << " is " << check.drafter;
      seen = seen || check.name == c.item;
    }
    EXPECT_TRUE(seen) << c.item;
    if (c.fits) {
      EXPECT_TRUE(require_pairing(drafter, kTarget).ok());
    } else {
      expect_error(require_pairing(drafter, kTarget), Code::mismatch,
                   {"drafter/config.json", c.item, c.found, c.wanted});
    }
  }
}

// Without the tokenizer nobody knows how much of a table is padding.
TEST(Pairing, WithUnknownRealIdsOnlyEqualTablesFit) {
  TargetFacts target = kTarget;
  target.num_choices = 0;
  EXPECT_TRUE(require_pairing(fitting(), target).ok());
  DrafterConfig drafter = fitting();
  drafter.transformer.vocab_size = 4161;
  expect_error(require_pairing(drafter, target), Code::mismatch, {"4161 rows", "4160 rows, real ids not known"});
}

TEST(Pairing, CandidatesMustBeRealIds) {
  DrafterConfig drafter = fitting();
  drafter.family = DrafterFamily::dflash2;
  drafter.dflash2.selector_top_k = 4096;
  EXPECT_TRUE(require_pairing(drafter, kTarget).ok());
  drafter.dflash2.selector_top_k = 4097;
  expect_error(require_pairing(drafter, kTarget), Code::mismatch, {"candidates a row", "4097", "at most 4096"});
}

// The same table fits however much of it is padding.
TEST(Pairing, FieldFault5_TheTargetsOwnTableFits) {
  TargetFacts target = kTarget;
  target.num_choices = 1000;
  EXPECT_TRUE(require_pairing(fitting(), target).ok());
}

}  // namespace
}  // namespace blockdraft
