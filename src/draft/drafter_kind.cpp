#include "draft/drafter_kind.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

constexpr std::string_view kPlainDFlash = "DFlashDraftModel";
constexpr std::string_view kSpeculators = "a drafter in speculators format";

struct NamedKind {
  std::string_view name;
  std::string_view kind;
};

constexpr NamedKind kOtherArchitectures[] = {
    {"DFlash2DraftModel", "a DFlash2 drafter"},
    {"DSparkDraftModel", "a DSpark drafter"},
    {"Qwen3DSparkModel", "a DSpark drafter"},
    {"Gemma4DSparkModel", "the Gemma 4 variant of DSpark"},
    {"Lfm2DSparkDraftModel", "the LFM2 variant of DSpark"},
    {"K3DSparkModel", "the Kimi K3 variant of DSpark"},
    {"DominoDraftModel", "a Domino drafter"},
    {"MuseGlimmerAssistantModel", "the Muse Glimmer assistant, a vendor variant of DFlash"},
    {"DFlashLagunaForCausalLM", "the Laguna variant of DFlash"},
    {"DFlashSpeculator", kSpeculators},
    {"DSparkSpeculator", kSpeculators},
};

constexpr NamedKind kOtherProjectors[] = {{"domino", "a Domino drafter"}, {"dspark", "a DSpark drafter"}};

// Values with which a key of another kind changes nothing.
enum class Neutral { zero_or_false, one, yes };

struct ForeignKey {
  std::string_view key;
  Neutral neutral;
  std::string_view kind;
};

constexpr ForeignKey kForeignKeys[] = {
    {"shift_label", Neutral::zero_or_false, "a block in shifted layout"},
    {"sample_from_anchor", Neutral::zero_or_false, "a block in shifted layout"},
    {"conv_kernel_size", Neutral::zero_or_false, "a DFlash2 drafter"},
    {"conv_group_size", Neutral::zero_or_false, "a DFlash2 drafter"},
    {"selector_rank", Neutral::zero_or_false, "a DFlash2 drafter"},
    {"selector_top_k", Neutral::zero_or_false, "a DFlash2 drafter"},
    {"markov_rank", Neutral::zero_or_false, "a DSpark drafter"},
    {"enable_confidence_head", Neutral::zero_or_false, "a DSpark drafter"},
    {"attention_value_scale", Neutral::one, "the MiMo variant of DFlash"},
    {"attention_sink_bias", Neutral::zero_or_false, "the MiMo variant of DFlash"},
    {"add_swa_attention_sink_bias", Neutral::zero_or_false, "the MiMo variant of DFlash"},
    {"backbone_rotary_base", Neutral::zero_or_false, "the MiMo variant of DFlash"},
    {"partial_rotary_factor", Neutral::one, "a partial rotary embedding, as in the MiMo variant of DFlash"},
    {"gating", Neutral::zero_or_false, "the Laguna variant of DFlash"},
    {"is_neox_style", Neutral::yes, "a rotary embedding of interleaved pairs"},
    {"rope_is_neox_style", Neutral::yes, "a rotary embedding of interleaved pairs"},
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

template <size_t N>
std::string_view kind_of(const NamedKind (&table)[N], std::string_view name, std::string_view otherwise) {
  const auto entry = std::find_if(table, table + N, [name](const NamedKind& kind) { return kind.name == name; });
  return entry == table + N ? otherwise : entry->kind;
}

Error other_kind(const ConfigReader& config, const ConfigValue& found, std::string_view kind) {
  return unsupported_value(
      config, found, fmt::format("a plain DFlash drafter of architecture [\"{}\"]; this is {}", kPlainDFlash, kind));
}

Status refuse_speculators(const ConfigReader& config) {
  for (const std::string_view key : {"speculators_model_type", "speculators_config", "transformer_layer_config"}) {
    if (const ConfigValue found = config.find(key); found.value != nullptr) {
      return other_kind(config, found, kSpeculators);
    }
  }
  return {};
}

Status refuse_other_projectors(DraftKeys& keys) {
  BLOCKDRAFT_ASSIGN(const auto projector, keys.optional_string("projector_type"));
  if (projector.value_or("dflash") == "dflash") return {};
  return other_kind(keys.config(), keys.find("projector_type"),
                    kind_of(kOtherProjectors, *projector, "a projector type that is not known"));
}

Result<std::string> read_architecture(const ConfigReader& config) {
  BLOCKDRAFT_ASSIGN(const auto architectures, config.optional_strings("architectures"));
  if (!architectures) return config.missing("architectures", fmt::format("[\"{}\"]", kPlainDFlash));
  const std::string first = architectures->empty() ? std::string() : architectures->front();
  if (first == kPlainDFlash) return first;
  return other_kind(config, config.find("architectures"),
                    kind_of(kOtherArchitectures, first, "no architecture of a known drafter"));
}

Status refuse_foreign_keys(DraftKeys& keys) {
  for (const ForeignKey& foreign : kForeignKeys) {
    const ConfigValue found = keys.find(foreign.key);
    if (found.value == nullptr || is_neutral(*found.value, foreign.neutral)) continue;
    return unsupported_value(keys.config(), found,
                             fmt::format("{} or no such key in a plain DFlash drafter; this is {}",
                                         neutral_name(foreign.neutral), foreign.kind));
  }
  return {};
}

Status refuse_other_model_types(const ConfigReader& config) {
  BLOCKDRAFT_ASSIGN(const auto model_type, config.optional_string("model_type"));
  if (model_type.value_or("qwen3") == "qwen3") return {};
  return unsupported_value(config, config.find("model_type"), "\"qwen3\", whose layers every published drafter has");
}

}  // namespace

Result<std::string> read_plain_dflash_architecture(DraftKeys& keys) {
  const ConfigReader& config = keys.config();
  BLOCKDRAFT_TRY(refuse_speculators(config));
  BLOCKDRAFT_TRY(refuse_other_projectors(keys));
  BLOCKDRAFT_ASSIGN(std::string architecture, read_architecture(config));
  BLOCKDRAFT_TRY(refuse_foreign_keys(keys));
  BLOCKDRAFT_TRY(refuse_other_model_types(config));
  return architecture;
}

}  // namespace blockdraft
