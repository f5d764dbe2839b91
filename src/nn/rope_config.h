// Rotary frequencies from a config (spec 2.5, 7.2, 7.3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {

enum class RopeType { plain, linear, llama3, yarn };

struct RopeConfig {
  RopeType type = RopeType::plain;
  double rope_theta = 10000.0;
  double factor = 1.0;                           // all but plain
  double low_freq_factor = 1.0;                  // llama3
  double high_freq_factor = 4.0;                 // llama3
  int64_t original_max_position_embeddings = 0;  // llama3; yarn, already resolved to max_position_embeddings if absent
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  double attention_factor = 1.0;  // resolved: cos and sin are multiplied by it

  bool operator==(const RopeConfig&) const = default;
};

// Reads rope_theta, rope_parameters and rope_scaling by the rules of spec 2.5. Copies that disagree add a line to
// `warnings` that names both; the first in that order is used. A config without rope_theta anywhere is refused
// (not_found): engines default to different values. Refused by name: a rope type other than default, linear and yarn, a
// partial rotary factor other than 1, interleaved pairs (is_neox_style or rope_is_neox_style false), layer-type
// dictionaries that disagree, values outside their ranges, keys of a scaling dictionary that its type does not know.
Result<RopeConfig> read_rope_config(const ConfigReader& config, int64_t max_position_embeddings,
                                    std::vector<std::string>& warnings);

// A partial rotary factor (absent: 1) other than 1 is unsupported, wherever a config carries it.
Status refuse_partial_rotary(const ConfigReader& reader, const ConfigValue& factor);

// inv_freq[i] for i = 0 .. head_dim / 2 - 1, computed in double and rounded once. head_dim is even.
std::vector<float> inverse_frequencies(const RopeConfig& rope, int64_t head_dim);

// "plain, theta 1e+06" or "yarn, theta 150000, factor 32, original length 4096": for inspect.
std::string describe(const RopeConfig& rope);

}  // namespace blockdraft
