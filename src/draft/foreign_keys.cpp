#include "draft/foreign_keys.h"

#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// Values with which a key changes nothing.
enum class Neutral { zero_or_false, one, yes };

// Families that a key is foreign to, as a set of bits.
constexpr unsigned bit(DrafterFamily family) { return 1u << static_cast<unsigned>(family); }
constexpr unsigned kInPlace = bit(DrafterFamily::dflash) | bit(DrafterFamily::dflash2);
constexpr unsigned kAllButDflash2 = bit(DrafterFamily::dflash) | bit(DrafterFamily::dspark);
constexpr unsigned kAll = kInPlace | bit(DrafterFamily::dspark);

struct ForeignKey {
  std::string_view key;
  Neutral neutral;
  unsigned families;
  std::string_view owner;
};

constexpr ForeignKey kForeignKeys[] = {
    {"shift_label", Neutral::zero_or_false, kInPlace, "a block in shifted layout"},
    {"conv_kernel_size", Neutral::zero_or_false, kAllButDflash2, "a DFlash2 drafter"},
    {"conv_group_size", Neutral::zero_or_false, kAllButDflash2, "a DFlash2 drafter"},
    {"selector_rank", Neutral::zero_or_false, kAllButDflash2, "a DFlash2 drafter"},
    {"selector_top_k", Neutral::zero_or_false, kAllButDflash2, "a DFlash2 drafter"},
    {"markov_rank", Neutral::zero_or_false, kInPlace, "a DSpark drafter"},
    {"enable_confidence_head", Neutral::zero_or_false, kInPlace, "a DSpark drafter"},
    {"attention_value_scale", Neutral::one, kAll, "the MiMo variant of DFlash"},
    {"attention_sink_bias", Neutral::zero_or_false, kAll, "the MiMo variant of DFlash"},
    {"add_swa_attention_sink_bias", Neutral::zero_or_false, kAll, "the MiMo variant of DFlash"},
    {"backbone_rotary_base", Neutral::zero_or_false, kAll, "the MiMo variant of DFlash"},
    {"partial_rotary_factor", Neutral::one, kAll, "a partial rotary embedding, as in the MiMo variant of DFlash"},
    {"gating", Neutral::zero_or_false, kAll, "the Laguna variant of DFlash"},
    {"is_neox_style", Neutral::yes, kAll, "a rotary embedding of interleaved pairs"},
    {"rope_is_neox_style", Neutral::yes, kAll, "a rotary embedding of interleaved pairs"},
};

bool is_neutral(const Json& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::zero_or_false:
      return value == false || value == 0;
    case Neutral::one:
      return value == 1;
    case Neutral::yes:
      return value == true;
  }
  return false;
}

std::string_view neutral_name(Neutral neutral) {
  switch (neutral) {
    case Neutral::zero_or_false:
      return "0, false";
    case Neutral::one:
      return "1";
    case Neutral::yes:
      return "true";
  }
  return "";
}

Status refuse(const ConfigReader& config, const ConfigValue& found, const ForeignKey& foreign, DrafterFamily family) {
  if (found.value == nullptr || is_neutral(*found.value, foreign.neutral)) return {};
  const std::string_view plain = family == DrafterFamily::dflash ? "plain " : "";
  return unsupported_value(config, found,
                           fmt::format("{} or no such key in a {}{} drafter; it belongs to {}",
                                       neutral_name(foreign.neutral), plain, name_of(family), foreign.owner));
}

// Outside speculators format nothing reads this key: the architecture alone decides (spec 1.8).
Status check_sample_from_anchor(const DraftKeys& keys, const DrafterKind& kind) {
  if (kind.format == DrafterFormat::speculators) return {};
  const bool shifted = kind.family == DrafterFamily::dspark;
  BLOCKDRAFT_ASSIGN(const auto sample_from_anchor, keys.optional_boolean("sample_from_anchor"));
  if (sample_from_anchor.value_or(shifted) == shifted) return {};
  return unsupported_value(keys.config(), keys.find("sample_from_anchor"),
                           fmt::format("{} or no such key in a {} drafter, whose block is {}", shifted,
                                       name_of(kind.family), shifted ? "shifted" : "in place"));
}

}  // namespace

Status refuse_foreign_keys(const DraftKeys& keys, const DrafterKind& kind) {
  for (const ForeignKey& foreign : kForeignKeys) {
    if ((foreign.families & bit(kind.family)) == 0) continue;
    BLOCKDRAFT_TRY(refuse(keys.config(), keys.find(foreign.key), foreign, kind.family));
    BLOCKDRAFT_TRY(refuse(keys.transformer(), keys.transformer().find(foreign.key), foreign, kind.family));
  }
  return check_sample_from_anchor(keys, kind);
}

}  // namespace blockdraft
