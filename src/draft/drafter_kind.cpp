#include "draft/drafter_kind.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

struct KnownKind {
  std::string_view name;
  DrafterFamily family;
  DrafterFormat format;
};

constexpr KnownKind kArchitectures[] = {
    {"DFlashDraftModel", DrafterFamily::dflash, DrafterFormat::plain},
    {"DFlash2DraftModel", DrafterFamily::dflash2, DrafterFormat::plain},
    {"DSparkDraftModel", DrafterFamily::dspark, DrafterFormat::plain},
    {"Qwen3DSparkModel", DrafterFamily::dspark, DrafterFormat::deepspec},
    {"MuseGlimmerAssistantModel", DrafterFamily::dflash, DrafterFormat::muse},
};

// speculators_model_type and the architectures that come with it.
constexpr KnownKind kSpeculators[] = {
    {"dflash", DrafterFamily::dflash, DrafterFormat::speculators},
    {"dspark", DrafterFamily::dspark, DrafterFormat::speculators},
    {"dflash2", DrafterFamily::dflash2, DrafterFormat::speculators},
};
constexpr KnownKind kSpeculatorArchitectures[] = {
    {"DFlashSpeculator", DrafterFamily::dflash, DrafterFormat::speculators},
    {"DSparkSpeculator", DrafterFamily::dspark, DrafterFormat::speculators},
    {"DFlashSpeculator", DrafterFamily::dflash2, DrafterFormat::speculators},
    {"DFlash2DraftModel", DrafterFamily::dflash2, DrafterFormat::speculators},
};

// Kinds that are refused.
struct OtherKind {
  std::string_view name;
  std::string_view kind;
};

constexpr OtherKind kOtherArchitectures[] = {
    {"Gemma4DSparkModel", "the Gemma 4 variant of DSpark"},      {"Lfm2DSparkDraftModel", "the LFM2 variant of DSpark"},
    {"K3DSparkModel", "the Kimi K3 variant of DSpark"},          {"DominoDraftModel", "a Domino drafter"},
    {"DFlashLagunaForCausalLM", "the Laguna variant of DFlash"},
};

constexpr std::string_view kDomino = "domino";

template <class Entry, size_t N>
const Entry* find_entry(const Entry (&table)[N], std::string_view name) {
  const auto entry = std::find_if(table, table + N, [name](const Entry& candidate) { return candidate.name == name; });
  return entry == table + N ? nullptr : entry;
}

Error other_kind(const ConfigReader& config, const ConfigValue& found, std::string_view kind) {
  return unsupported_value(config, found, fmt::format("a DFlash, DFlash2 or DSpark drafter; this is {}", kind));
}

Result<std::string> read_architecture(const ConfigReader& config) {
  BLOCKDRAFT_ASSIGN(const auto architectures, config.optional_strings("architectures"));
  if (!architectures) return config.missing("architectures", R"(that of a drafter, such as ["DFlashDraftModel"])");
  return architectures->empty() ? std::string() : architectures->front();
}

bool is_speculators(const ConfigReader& config, std::string_view architecture) {
  return config.has("speculators_model_type") || config.has("speculators_config") ||
         config.has("transformer_layer_config") || architecture.ends_with("Speculator");
}

Result<DrafterKind> speculators_kind(const ConfigReader& config, const std::string& architecture) {
  BLOCKDRAFT_ASSIGN(const auto type, config.optional_string("speculators_model_type"));
  constexpr std::string_view kTypes = R"("dflash", "dspark" or "dflash2")";
  if (!type) return config.missing("speculators_model_type", kTypes);
  const KnownKind* kind = find_entry(kSpeculators, *type);
  if (kind == nullptr) return unsupported_value(config, config.find("speculators_model_type"), kTypes);
  const auto fits = [&](const KnownKind& entry) { return entry.name == architecture && entry.family == kind->family; };
  if (std::none_of(std::begin(kSpeculatorArchitectures), std::end(kSpeculatorArchitectures), fits)) {
    return unsupported_value(config, config.find("architectures"),
                             fmt::format("the architecture that goes with speculators_model_type \"{}\"", *type));
  }
  return DrafterKind{architecture, kind->family, kind->format};
}

Result<DrafterKind> architecture_kind(const ConfigReader& config, const std::string& architecture) {
  if (const KnownKind* known = find_entry(kArchitectures, architecture)) {
    return DrafterKind{architecture, known->family, known->format};
  }
  const OtherKind* other = find_entry(kOtherArchitectures, architecture);
  return other_kind(config, config.find("architectures"),
                    other == nullptr ? "no architecture of a known drafter" : other->kind);
}

// projector_type must be that of the class, but for exports of DSpark under DFlash's architecture. `kind` takes them
// in.
Status apply_projector(const DraftKeys& keys, const std::optional<std::string>& projector, DrafterKind& kind) {
  if (!projector) return {};
  const bool dspark = *projector == "dspark";
  if (dspark && kind.architecture == "DFlashDraftModel") kind.family = DrafterFamily::dspark;
  if (dspark == (kind.family == DrafterFamily::dspark)) return {};
  return unsupported_value(
      keys.config(), keys.find("projector_type"),
      fmt::format("\"{}\" or no such key with architecture {}", dspark ? "dflash" : "dspark", kind.architecture));
}

Result<std::optional<std::string>> read_projector(const DraftKeys& keys) {
  BLOCKDRAFT_ASSIGN(auto projector, keys.optional_string("projector_type"));
  if (!projector || *projector == "dflash" || *projector == "dspark") return projector;
  return other_kind(keys.config(), keys.find("projector_type"),
                    *projector == kDomino ? "a Domino drafter" : "a projector type that is not known");
}

Status refuse_other_model_types(const ConfigReader& transformer, DrafterFormat format) {
  BLOCKDRAFT_ASSIGN(const auto model_type, transformer.optional_string("model_type"));
  if (model_type.value_or("qwen3") == "qwen3") return {};
  if (format == DrafterFormat::muse && *model_type == "muse_glimmer_assistant") return {};
  return unsupported_value(transformer, transformer.find("model_type"),
                           "\"qwen3\", whose layers every published drafter has");
}

std::string override_warning(const ConfigReader& config, BlockLayout stated, BlockLayout wanted) {
  return fmt::format("{}: the block is {} by the config but {} is asked for; the second is used", config.origin(),
                     name_of(stated), name_of(wanted));
}

}  // namespace

Result<DrafterKind> read_drafter_kind(const DraftKeys& keys) {
  const ConfigReader& config = keys.config();
  BLOCKDRAFT_ASSIGN(const auto projector, read_projector(keys));
  BLOCKDRAFT_ASSIGN(const std::string architecture, read_architecture(config));
  const bool speculators = is_speculators(config, architecture);
  BLOCKDRAFT_ASSIGN(DrafterKind kind,
                    speculators ? speculators_kind(config, architecture) : architecture_kind(config, architecture));
  BLOCKDRAFT_TRY(apply_projector(keys, projector, kind));
  if (speculators && !config.has("transformer_layer_config")) {
    return config.missing("transformer_layer_config", "an object with the keys of the drafter's layers");
  }
  BLOCKDRAFT_TRY(refuse_other_model_types(keys.transformer(), kind.format));
  return kind;
}

Result<BlockLayout> read_block_layout(const DraftKeys& keys, const DrafterKind& kind,
                                      std::optional<BlockLayout> layout_override, std::vector<std::string>& warnings) {
  std::optional<BlockLayout> stated =
      kind.family == DrafterFamily::dspark ? BlockLayout::shifted : BlockLayout::in_place;
  if (kind.format == DrafterFormat::speculators) {
    BLOCKDRAFT_ASSIGN(const auto sample_from_anchor, keys.optional_boolean("sample_from_anchor"));
    stated.reset();
    if (sample_from_anchor) stated = *sample_from_anchor ? BlockLayout::shifted : BlockLayout::in_place;
  }
  if (layout_override) {
    if (stated && *stated != *layout_override) {
      warnings.push_back(override_warning(keys.config(), *stated, *layout_override));
    }
    return *layout_override;
  }
  if (!stated) {
    warnings.push_back(
        fmt::format("{}: no sample_from_anchor; the block is taken to be {}, as before there was that key",
                    keys.config().origin(), name_of(BlockLayout::in_place)));
  }
  return stated.value_or(BlockLayout::in_place);
}

}  // namespace blockdraft
