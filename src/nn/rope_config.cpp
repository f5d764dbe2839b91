#include "nn/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

constexpr std::string_view kSupportedTypes = "rope type default, linear, llama3 or yarn";

// What one dictionary of rotary keys says; a layer-type dictionary is one too.
struct RopeDictionary {
  RopeConfig scaling;                   // all but rope_theta
  std::vector<ConfigValue> rope_theta;  // its copies, the one that counts first

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
  if (type == RopeType::llama3) {
    return is_one_of({"original_max_position_embeddings", "low_freq_factor", "high_freq_factor"});
  }
  return type == RopeType::yarn && is_one_of({"original_max_position_embeddings", "beta_fast", "beta_slow", "truncate",
                                              "attention_factor", "mscale", "mscale_all_dim"});
}

const char* type_name(RopeType type) {
  switch (type) {
    case RopeType::plain:
      return "plain";
    case RopeType::linear:
      return "linear";
    case RopeType::llama3:
      return "llama3";
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
  if (name == "llama3") return RopeType::llama3;
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
double yarn_scale(double factor, double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; }

Result<double> read_attention_factor(const ConfigReader& reader, double factor) {
  BLOCKDRAFT_ASSIGN(const auto given, bounded_number(reader, "attention_factor", 0.0, false));
  BLOCKDRAFT_ASSIGN(const auto mscale, number_at_least(reader, "mscale", 0.0));
  BLOCKDRAFT_ASSIGN(const auto mscale_all_dim, number_at_least(reader, "mscale_all_dim", 0.0));
  double resolved = yarn_scale(factor, 1.0);
  if (given) {
    resolved = *given;
  } else if (mscale.value_or(0.0) != 0.0 && mscale_all_dim.value_or(0.0) != 0.0) {
    resolved = yarn_scale(factor, *mscale) / yarn_scale(factor, *mscale_all_dim);
  }
  if (!is_positive_float32(resolved)) {
    return make_error(Code::corrupt_file, "{}: the attention factor of '{}' is {}, expected a positive float32",
                      reader.origin(), reader.find("attention_factor").name, resolved);
  }
  return resolved;
}

// Zero counts as absent for the two betas and the original length (spec 7.3).
Status read_yarn(const ConfigReader& reader, int64_t max_position_embeddings, RopeConfig& rope) {
  BLOCKDRAFT_ASSIGN(const auto original, reader.optional_integer("original_max_position_embeddings", {0, kExtent.max}));
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

// All three are what the frequencies are made of: none has a default.
Status read_llama3(const ConfigReader& reader, RopeConfig& rope) {
  BLOCKDRAFT_ASSIGN(rope.original_max_position_embeddings, reader.integer("original_max_position_embeddings", kExtent));
  BLOCKDRAFT_ASSIGN(const auto low, bounded_number(reader, "low_freq_factor", 0.0, false));
  if (!low) return reader.missing("low_freq_factor", "a number above 0");
  BLOCKDRAFT_ASSIGN(const auto high, bounded_number(reader, "high_freq_factor", *low, false));
  if (!high) return reader.missing("high_freq_factor", "a number above low_freq_factor");
  rope.low_freq_factor = *low;
  rope.high_freq_factor = *high;
  return {};
}

Result<RopeDictionary> read_dictionary(const Json& object, const ConfigReader& reader,
                                       int64_t max_position_embeddings) {
  RopeDictionary dictionary;
  RopeConfig& rope = dictionary.scaling;
  BLOCKDRAFT_ASSIGN(rope.type, read_type(reader));
  BLOCKDRAFT_TRY(check_keys(object, reader, rope.type));
  BLOCKDRAFT_TRY(refuse_partial_rotary(reader, reader.find("partial_rotary_factor")));
  if (ConfigValue theta = reader.find("rope_theta"); theta.value != nullptr) {
    dictionary.rope_theta.push_back(std::move(theta));
  }
  if (!dictionary.is_scaled()) return dictionary;
  BLOCKDRAFT_ASSIGN(const auto factor, number_at_least(reader, "factor", 1.0));
  if (!factor) return reader.missing("factor", "a number of at least 1");
  rope.factor = *factor;
  if (rope.type == RopeType::llama3) BLOCKDRAFT_TRY(read_llama3(reader, rope));
  if (rope.type == RopeType::yarn) BLOCKDRAFT_TRY(read_yarn(reader, max_position_embeddings, rope));
  return dictionary;
}

// The layers of a stack share one rotary embedding here.
bool agree(const RopeDictionary& a, const RopeDictionary& b) {
  const auto same_value = [](const ConfigValue& x, const ConfigValue& y) { return *x.value == *y.value; };
  return a.scaling == b.scaling &&
         std::equal(a.rope_theta.begin(), a.rope_theta.end(), b.rope_theta.begin(), b.rope_theta.end(), same_value);
}

std::string dump(const ConfigValue& found) { return printable(found.value->dump()); }

Result<RopeDictionary> read_layer_dictionaries(const Json& object, const ConfigReader& reader,
                                               int64_t max_position_embeddings) {
  std::optional<RopeDictionary> agreed;
  ConfigValue agreed_on;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || key == "rope_theta") continue;
    const ConfigValue found = reader.find(key);
    if (!is_layer_type(key)) return unsupported_value(reader, found, "no such key beside those of layer types");
    BLOCKDRAFT_ASSIGN(const std::optional<ConfigReader> nested, reader.optional_object(key));
    BLOCKDRAFT_ASSIGN(RopeDictionary dictionary, read_dictionary(value, *nested, max_position_embeddings));
    if (agreed && !agree(*agreed, dictionary)) {
      return unsupported_value(reader, found,
                               fmt::format("{} as in '{}', not {}: all layers share one rotary embedding",
                                           dump(agreed_on), agreed_on.name, dump(found)));
    }
    agreed = std::move(dictionary);
    agreed_on = found;
  }
  const ConfigValue flat = reader.find("rope_theta");
  if (flat.value != nullptr) agreed->rope_theta.insert(agreed->rope_theta.begin(), flat);
  return *agreed;
}

// rope_parameters or rope_scaling. Absent: no scaling, no rope_theta.
Result<RopeDictionary> find_dictionary(const ConfigReader& config, std::string_view key,
                                       int64_t max_position_embeddings) {
  BLOCKDRAFT_ASSIGN(const std::optional<ConfigReader> reader, config.optional_object(key));
  if (!reader) return RopeDictionary{};
  const Json& object = *config.find(key).value;
  if (reader->has("full_attention") || reader->has("sliding_attention")) {
    return read_layer_dictionaries(object, *reader, max_position_embeddings);
  }
  return read_dictionary(object, *reader, max_position_embeddings);
}

Result<double> choose_theta(const ConfigReader& config, const std::vector<ConfigValue>& copies,
                            std::vector<std::string>& warnings) {
  constexpr std::string_view kExpected = "a number above 1, there or in rope_parameters";
  if (copies.empty()) return config.missing("rope_theta", kExpected);
  const ConfigValue& first = copies.front();
  for (const ConfigValue& copy : copies) {
    if (*copy.value != *first.value) {
      warnings.push_back(fmt::format("{}: key '{}' is {} but '{}' is {}; the first is used", config.origin(),
                                     first.name, json_excerpt(*first.value), copy.name, json_excerpt(*copy.value)));
    }
  }
  BLOCKDRAFT_ASSIGN(const double theta, number_from(config, first));
  if (theta <= 1.0) return config.wrong_value(first, "a number above 1");
  return theta;
}

Status refuse_interleaved(const ConfigReader& config) {
  for (const std::string_view key : {"is_neox_style", "rope_is_neox_style"}) {
    BLOCKDRAFT_ASSIGN(const std::optional<bool> half_split, config.optional_boolean(key));
    if (!half_split.value_or(true)) return unsupported_value(config, config.find(key), "true (half-split pairs)");
  }
  return {};
}

double yarn_dimension(const RopeConfig& rope, double head_dim, double rotations) {
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  return head_dim * std::log(original / (2.0 * std::numbers::pi * rotations)) / (2.0 * std::log(rope.rope_theta));
}

// Pairs below `low` keep their frequency, those above `high` are interpolated, a ramp lies between.
struct YarnRamp {
  double low;
  double high;

  double operator()(int64_t pair) const {
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  }
};

YarnRamp yarn_ramp(const RopeConfig& rope, double head_dim) {
  double low = yarn_dimension(rope, head_dim, rope.beta_fast);
  double high = yarn_dimension(rope, head_dim, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;
  return {low, high};
}

// Long wavelengths are interpolated, short ones kept, a ramp lies between (spec 7.3).
double llama3_frequency(const RopeConfig& rope, double plain) {
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  const double wavelength = 2.0 * std::numbers::pi / plain;
  if (wavelength < original / rope.high_freq_factor) return plain;
  if (wavelength > original / rope.low_freq_factor) return plain / rope.factor;
  const double kept = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - kept) * plain / rope.factor + kept * plain;
}

}  // namespace

Status refuse_partial_rotary(const ConfigReader& reader, const ConfigValue& factor) {
  if (factor.value == nullptr) return {};
  BLOCKDRAFT_ASSIGN(const double value, number_from(reader, factor));
  if (value != 1.0) return unsupported_value(reader, factor, "1 (partial rotary embeddings are not supported)");
  return {};
}

Result<RopeConfig> read_rope_config(const ConfigReader& config, int64_t max_position_embeddings,
                                    std::vector<std::string>& warnings) {
  BLOCKDRAFT_TRY(refuse_interleaved(config));
  BLOCKDRAFT_TRY(refuse_partial_rotary(config, config.find("partial_rotary_factor")));
  BLOCKDRAFT_ASSIGN(const RopeDictionary parameters,
                    find_dictionary(config, "rope_parameters", max_position_embeddings));
  BLOCKDRAFT_ASSIGN(const RopeDictionary scaling, find_dictionary(config, "rope_scaling", max_position_embeddings));

  if (parameters.is_scaled() && scaling.is_scaled() && parameters.scaling != scaling.scaling) {
    warnings.push_back(fmt::format("{}: keys 'rope_parameters' ({}) and 'rope_scaling' ({}) differ; the first is used",
                                   config.origin(), dump(config.find("rope_parameters")),
                                   dump(config.find("rope_scaling"))));
  }
  RopeConfig rope = parameters.is_scaled() ? parameters.scaling : scaling.scaling;

  std::vector<ConfigValue> theta_copies;
  if (ConfigValue top = config.find("rope_theta"); top.value != nullptr) theta_copies.push_back(std::move(top));
  for (const RopeDictionary* dictionary : {&parameters, &scaling}) {
    theta_copies.insert(theta_copies.end(), dictionary->rope_theta.begin(), dictionary->rope_theta.end());
  }
  BLOCKDRAFT_ASSIGN(rope.rope_theta, choose_theta(config, theta_copies, warnings));
  return rope;
}

std::vector<float> inverse_frequencies(const RopeConfig& rope, int64_t head_dim) {
  CHECK(head_dim > 0 && head_dim % 2 == 0);
  const auto dim = static_cast<double>(head_dim);
  const bool is_yarn = rope.type == RopeType::yarn;
  const YarnRamp ramp = is_yarn ? yarn_ramp(rope, dim) : YarnRamp{0.0, 1.0};
  std::vector<float> frequencies(static_cast<size_t>(head_dim / 2));
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double plain = std::pow(rope.rope_theta, -2.0 * static_cast<double>(i) / dim);
    double frequency = plain;
    if (rope.type == RopeType::linear) frequency = plain / rope.factor;
    if (rope.type == RopeType::llama3) frequency = llama3_frequency(rope, plain);
    if (is_yarn) frequency = (1.0 - ramp(i)) * plain + ramp(i) * plain / rope.factor;
    frequencies[static_cast<size_t>(i)] = static_cast<float>(frequency);
  }
  return frequencies;
}

std::string describe(const RopeConfig& rope) {
  std::string text = fmt::format("{}, theta {:g}", type_name(rope.type), rope.rope_theta);
  if (rope.type != RopeType::plain) text += fmt::format(", factor {:g}", rope.factor);
  if (rope.type == RopeType::yarn || rope.type == RopeType::llama3) {
    text += fmt::format(", original length {}", rope.original_max_position_embeddings);
  }
  return text;
}

}  // namespace blockdraft
