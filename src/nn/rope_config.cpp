#include "nn/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

constexpr std::string_view kSupportedTypes = "rope type default, linear or yarn";

// What one dictionary of rotary keys says; a layer-type dictionary is one too.
struct RopeDictionary {
  RopeConfig scaling;  // all but rope_theta
  ConfigValue rope_theta;

  bool is_scaled() const { return scaling.type != RopeType::plain; }
};

bool is_layer_type(std::string_view key) { return key == "full_attention" || key == "sliding_attention"; }

bool is_known_key(std::string_view key, RopeType type) {
  const auto is_one_of = [key](std::initializer_list<std::string_view> keys) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  if (is_one_of({"rope_theta", "rope_type", "type", "partial_rotary_factor"})) return true;
  if (type == RopeType::plain) return false;
  if (key == "factor") return true;
  return type == RopeType::yarn && is_one_of({"original_max_position_embeddings", "beta_fast", "beta_slow", "truncate",
                                              "attention_factor", "mscale", "mscale_all_dim"});
}

const char* type_name(RopeType type) {
  switch (type) {
    case RopeType::plain:
      return "plain";
    case RopeType::linear:
      return "linear";
    case RopeType::yarn:
      return "yarn";
  }
  return "unknown";
}

Result<std::optional<double>> bounded_number(const ConfigReader& reader, std::string_view key, double minimum,
                                             bool minimum_allowed) {
  BLOCKDRAFT_ASSIGN(const std::optional<double> number, reader.optional_number(key));
  if (number && (*number < minimum || (*number == minimum && !minimum_allowed))) {
    return reader.wrong_value(reader.find(key),
                              fmt::format("a number {} {}", minimum_allowed ? "of at least" : "above", minimum));
  }
  return number;
}

Result<std::optional<double>> number_at_least(const ConfigReader& reader, std::string_view key, double minimum) {
  return bounded_number(reader, key, minimum, true);
}

Result<RopeType> read_type(const ConfigReader& reader) {
  const ConfigValue type = reader.find("type");
  ConfigValue found = reader.find("rope_type");
  if (found.value != nullptr && type.value != nullptr && *found.value != *type.value) {
    return reader.wrong_value(found, fmt::format("the value of '{}', {}", type.name, json_excerpt(*type.value)));
  }
  if (found.value == nullptr) found = type;
  if (found.value == nullptr) return RopeType::plain;
  BLOCKDRAFT_ASSIGN(const std::string name, string_from(reader, found));
  if (name == "default") return RopeType::plain;
  if (name == "linear") return RopeType::linear;
  if (name == "yarn") return RopeType::yarn;
  return unsupported_value(reader, found, kSupportedTypes);
}

// A key that we would pass over may change every angle, so all of them must be known.
Status check_keys(const Json& object, const ConfigReader& reader, RopeType type) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || is_known_key(key, type)) continue;
    if (!reader.has("rope_type") && !reader.has("type")) return reader.missing("rope_type", kSupportedTypes);
    const std::string_view type_key = type == RopeType::plain ? "default" : type_name(type);
    return unsupported_value(reader, reader.find(key), fmt::format("no such key with rope type {}", type_key));
  }
  return {};
}

// ms(f, m) of spec 7.3.
double yarn_scale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

Result<double> read_attention_factor(const ConfigReader& reader, double factor) {
  BLOCKDRAFT_ASSIGN(const auto given, bounded_number(reader, "attention_factor", 0.0, false));
  BLOCKDRAFT_ASSIGN(const auto mscale, number_at_least(reader, "mscale", 0.0));
  BLOCKDRAFT_ASSIGN(const auto mscale_all_dim, number_at_least(reader, "mscale_all_dim", 0.0));
  if (given) return *given;
  if (mscale.value_or(0.0) != 0.0 && mscale_all_dim.value_or(0.0) != 0.0) {
    return yarn_scale(factor, *mscale) / yarn_scale(factor, *mscale_all_dim);
  }
  return yarn_scale(factor, 1.0);
}

// Zero counts as absent for the two betas and the original length (spec 7.3).
Status read_yarn(const ConfigReader& reader, int64_t max_position_embeddings, RopeConfig& rope) {
  BLOCKDRAFT_ASSIGN(const auto original,
                    reader.optional_integer("original_max_position_embeddings", {0, kExtent.max}));
  rope.original_max_position_embeddings = original.value_or(0) != 0 ? *original : max_position_embeddings;
  BLOCKDRAFT_ASSIGN(const auto beta_fast, number_at_least(reader, "beta_fast", 0.0));
  if (beta_fast.value_or(0.0) != 0.0) rope.beta_fast = *beta_fast;
  BLOCKDRAFT_ASSIGN(const auto beta_slow, number_at_least(reader, "beta_slow", 0.0));
  if (beta_slow.value_or(0.0) != 0.0) rope.beta_slow = *beta_slow;
  if (rope.beta_fast < rope.beta_slow) {
    return make_error(Code::corrupt_file, "{}: '{}' is {} and '{}' is {}, expected the first to be no smaller",
                      reader.origin(), reader.find("beta_fast").name, rope.beta_fast, reader.find("beta_slow").name,
                      rope.beta_slow);
  }
  BLOCKDRAFT_ASSIGN(const auto truncate, reader.optional_boolean("truncate"));
  rope.truncate = truncate.value_or(true);
  BLOCKDRAFT_ASSIGN(rope.attention_factor, read_attention_factor(reader, rope.factor));
  return {};
}

Result<RopeDictionary> read_dictionary(const Json& object, const ConfigReader& reader,
                                       int64_t max_position_embeddings) {
  RopeDictionary dictionary;
  RopeConfig& rope = dictionary.scaling;
  BLOCKDRAFT_ASSIGN(rope.type, read_type(reader));
  BLOCKDRAFT_TRY(check_keys(object, reader, rope.type));
  BLOCKDRAFT_TRY(refuse_partial_rotary(reader, reader.find("partial_rotary_factor")));
  dictionary.rope_theta = reader.find("rope_theta");
  if (!dictionary.is_scaled()) return dictionary;
  BLOCKDRAFT_ASSIGN(const auto factor, number_at_least(reader, "factor", 1.0));
  if (!factor) return reader.missing("factor", "a number of at least 1");
  rope.factor = *factor;
  if (rope.type == RopeType::yarn) BLOCKDRAFT_TRY(read_yarn(reader, max_position_embeddings, rope));
  return dictionary;
}

bool same_value(const ConfigValue& a, const ConfigValue& b) {
  if (a.value == nullptr || b.value == nullptr) return a.value == b.value;
  return *a.value == *b.value;
}

// Dictionaries by layer type: all must say the same, for the layers of a stack share one rotary embedding here.
Result<RopeDictionary> read_layer_dictionaries(const Json& object, const ConfigReader& reader,
                                               int64_t max_position_embeddings) {
  std::optional<RopeDictionary> agreed;
  std::string agreed_name;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || key == "rope_theta") continue;
    const ConfigValue found = reader.find(key);
    if (!is_layer_type(key)) return unsupported_value(reader, found, "no such key beside those of layer types");
    BLOCKDRAFT_ASSIGN(const std::optional<ConfigReader> nested, reader.optional_object(key));
    BLOCKDRAFT_ASSIGN(RopeDictionary dictionary, read_dictionary(value, *nested, max_position_embeddings));
    if (agreed &&
        (dictionary.scaling != agreed->scaling || !same_value(dictionary.rope_theta, agreed->rope_theta))) {
      return make_error(Code::unsupported, "{}: keys '{}' and '{}' differ ({} and {}), expected one rotary embedding",
                        reader.origin(), agreed_name, found.name, agreed->dump(), dictionary.dump());
    }
    agreed = std::move(dictionary);
    agreed_name = found.name;
  }
  if (const ConfigValue flat = reader.find("rope_theta"); flat.value != nullptr) agreed->rope_theta = flat;
  return *agreed;
}

}  // namespace
}  // namespace blockdraft
