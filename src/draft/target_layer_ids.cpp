#include "draft/target_layer_ids.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// A key that may hold the layer ids, and what it adds to the z-lab numbering (spec 1.3).
struct LayerIdsKey {
  std::string_view key;
  int64_t offset;
};
constexpr LayerIdsKey kPlainKeys[] = {{"target_layer_ids", 0},
                                      {"layer_ids", 0},
                                      {"eagle_aux_hidden_state_layer_ids", 1},
                                      {"aux_hidden_state_layer_ids", 1}};
constexpr LayerIdsKey kSpeculatorsKeys[] = {{"aux_hidden_state_layer_ids", 1},
                                            {"eagle_aux_hidden_state_layer_ids", 1},
                                            {"target_layer_ids", 0},
                                            {"layer_ids", 0}};

bool has_duplicates(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) != ids.end();
}

bool strictly_increases(const std::vector<int32_t>& ids) {
  return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

Result<std::vector<int32_t>> parse_layer_ids(const ConfigReader& config, const DrafterKind& kind,
                                             const ConfigValue& found, int64_t offset,
                                             std::optional<int64_t> num_target_layers) {
  const int64_t first = kind.family == DrafterFamily::dspark ? -1 : 0;
  const int64_t last = num_target_layers.value_or(kLayerCount.max) - 1;
  BLOCKDRAFT_ASSIGN(const auto listed, integers_from(config, found, {first + offset, last + offset}));
  std::vector<int32_t> ids;
  for (const int64_t id : listed) ids.push_back(static_cast<int32_t>(id - offset));
  if (ids.empty()) return config.wrong_value(found, "at least one layer");
  if (has_duplicates(ids)) return config.wrong_value(found, "each layer at most once");
  if (kind.format == DrafterFormat::deepspec && !strictly_increases(ids)) {
    return config.wrong_value(found, "increasing layers with architecture " + kind.architecture);
  }
  return ids;
}

// What the training code takes for a missing list. speculators' own default is [2, N / 2, N - 3] in its numbering.
std::vector<int32_t> assumed_layer_ids(DrafterFormat format, int64_t num_target_layers, int64_t num_hidden_layers) {
  if (format != DrafterFormat::speculators) return fallback_layer_ids(num_target_layers, num_hidden_layers);
  return {1, static_cast<int32_t>(num_target_layers / 2 - 1), static_cast<int32_t>(num_target_layers - 4)};
}

Status assume_layer_ids(const ConfigReader& config, const DrafterKind& kind, DrafterConfig& drafter) {
  const bool speculators = kind.format == DrafterFormat::speculators;
  const std::string_view key = speculators ? "aux_hidden_state_layer_ids" : "target_layer_ids";
  if (kind.format == DrafterFormat::deepspec || (kind.family == DrafterFamily::dflash2 && !speculators)) {
    return config.missing(key, "a list of target layers");
  }
  if (!drafter.num_target_layers) {
    return config.missing(key, "a list of target layers, or num_target_layers to compute it from");
  }
  const int64_t count = *drafter.num_target_layers;
  drafter.target_layer_ids = assumed_layer_ids(kind.format, count, drafter.transformer.num_hidden_layers);
  drafter.target_layer_ids_computed = true;
  const std::string ids = json_excerpt(Json(drafter.target_layer_ids));
  const std::string origin = speculators ? fmt::format("num_target_layers {}", count)
                                         : fmt::format("num_target_layers {} and num_hidden_layers {}", count,
                                                       drafter.transformer.num_hidden_layers);
  const auto outside = [count](int32_t id) { return id < 0 || id >= count; };
  if (has_duplicates(drafter.target_layer_ids) || std::ranges::any_of(drafter.target_layer_ids, outside)) {
    return config.missing(key, fmt::format("a list of target layers: what {} {}, {}, is not one", origin,
                                           speculators ? "gives" : "give", ids));
  }
  drafter.warnings.push_back(
      fmt::format("{}: no {}; outputs of layers {} computed from {}", config.origin(), key, ids, origin));
  return {};
}

}  // namespace

std::vector<int32_t> fallback_layer_ids(int64_t num_target_layers, int64_t num_hidden_layers) {
  CHECK(num_target_layers >= 1 && num_hidden_layers >= 1);
  if (num_hidden_layers == 1) return {static_cast<int32_t>(num_target_layers / 2)};
  constexpr int64_t kFirst = 1;
  const int64_t span = num_target_layers - 3 - kFirst;
  const int64_t steps = num_hidden_layers - 1;
  std::vector<int32_t> ids;
  for (int64_t k = 0; k < num_hidden_layers; ++k) {
    const int64_t scaled = k * span;  // the id is kFirst + scaled / steps, rounded
    int64_t below = scaled / steps;
    if (below * steps > scaled) --below;  // towards minus infinity: span is negative for tiny targets
    const int64_t id = kFirst + below;
    const int64_t twice_rest = 2 * (scaled - below * steps);
    const bool round_up = twice_rest > steps || (twice_rest == steps && id % 2 != 0);  // a half goes to even
    ids.push_back(static_cast<int32_t>(round_up ? id + 1 : id));
  }
  return ids;
}

Status read_target_layer_ids(const DraftKeys& keys, const DrafterKind& kind, DrafterConfig& drafter) {
  const ConfigReader& config = keys.config();
  BLOCKDRAFT_ASSIGN(drafter.num_target_layers, keys.optional_integer("num_target_layers", kLayerCount));
  ConfigValue used;
  for (const LayerIdsKey& entry : kind.format == DrafterFormat::speculators ? kSpeculatorsKeys : kPlainKeys) {
    const ConfigValue found = keys.find(entry.key);
    if (found.value == nullptr) continue;
    BLOCKDRAFT_ASSIGN(auto ids, parse_layer_ids(config, kind, found, entry.offset, drafter.num_target_layers));
    if (used.value == nullptr) {
      used = found;
      drafter.target_layer_ids = std::move(ids);
    } else if (ids != drafter.target_layer_ids) {
      drafter.warnings.push_back(disagreement(config, used, found));
    }
  }
  return used.value == nullptr ? assume_layer_ids(config, kind, drafter) : Status();
}

}  // namespace blockdraft
