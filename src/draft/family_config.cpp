#include "draft/family_config.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

Result<int32_t> required_extent(const DraftKeys& keys, std::string_view key) {
  BLOCKDRAFT_ASSIGN(const auto value, keys.optional_integer(key, kExtent));
  if (!value) return keys.config().missing(key, "a positive integer, at the top level or in dflash_config");
  return static_cast<int32_t>(*value);
}

// A key that training codes other than DeepSpec's have a default for.
template <class T>
Result<T> or_default(const DraftKeys& keys, const DrafterKind& kind, std::string_view key, std::string_view expected,
                     const std::optional<T>& value, T otherwise) {
  if (value) return *value;
  if (kind.format != DrafterFormat::deepspec) return otherwise;
  return keys.config().missing(key, fmt::format("{} with architecture {}", expected, kind.architecture));
}

Result<int32_t> read_markov_rank(const DraftKeys& keys, const DrafterKind& kind) {
  BLOCKDRAFT_ASSIGN(const auto found, keys.optional_integer("markov_rank", {0, kExtent.max}));
  const int64_t otherwise = kind.format == DrafterFormat::speculators ? 256 : 0;
  BLOCKDRAFT_ASSIGN(const int64_t rank,
                    or_default(keys, kind, "markov_rank", "an integer of at least 0", found, otherwise));
  return static_cast<int32_t>(rank);
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return text;
}

Result<MarkovHeadType> read_markov_head_type(const DraftKeys& keys) {
  BLOCKDRAFT_ASSIGN(const auto found, keys.optional_string("markov_head_type"));
  const std::string name = lower_case(found.value_or("vanilla"));
  if (name == "vanilla") return MarkovHeadType::vanilla;
  if (name == "gated") return MarkovHeadType::gated;
  if (name == "rnn") return MarkovHeadType::rnn;
  return unsupported_value(keys.config(), keys.find("markov_head_type"), R"("vanilla", "gated" or "rnn")");
}

Result<bool> read_enable_confidence_head(const DraftKeys& keys, const DrafterKind& kind) {
  BLOCKDRAFT_ASSIGN(const auto found, keys.optional_boolean("enable_confidence_head"));
  BLOCKDRAFT_ASSIGN(const auto alpha, keys.optional_number("confidence_head_alpha"));
  // SpecForge builds the head if its loss has a weight.
  const bool otherwise = kind.format == DrafterFormat::speculators || alpha.value_or(0.0) > 0.0;
  return or_default(keys, kind, "enable_confidence_head", "true or false", found, otherwise);
}

Result<bool> read_confidence_head_with_markov(const DraftKeys& keys, const DrafterKind& kind, int32_t markov_rank) {
  constexpr std::string_view kKey = "confidence_head_with_markov";
  BLOCKDRAFT_ASSIGN(const auto found, keys.optional_boolean(kKey));
  const bool otherwise = kind.format == DrafterFormat::speculators;
  BLOCKDRAFT_ASSIGN(const bool with_markov, or_default(keys, kind, kKey, "true or false", found, otherwise));
  if (!with_markov || markov_rank > 0) return with_markov;
  constexpr std::string_view kExpected = "false, as markov_rank is 0";
  if (!found) return keys.config().missing(kKey, kExpected);
  return keys.config().wrong_value(keys.find(kKey), kExpected);
}

}  // namespace

Result<Dflash2Config> read_dflash2_config(const DraftKeys& keys, const TransformerConfig& transformer,
                                          int64_t draft_vocab_size) {
  Dflash2Config dflash2;
  BLOCKDRAFT_ASSIGN(dflash2.conv_kernel_size, required_extent(keys, "conv_kernel_size"));
  BLOCKDRAFT_ASSIGN(dflash2.conv_group_size, required_extent(keys, "conv_group_size"));
  BLOCKDRAFT_ASSIGN(dflash2.selector_rank, required_extent(keys, "selector_rank"));
  BLOCKDRAFT_ASSIGN(dflash2.selector_top_k, required_extent(keys, "selector_top_k"));
  if (transformer.hidden_size % dflash2.conv_group_size != 0) {
    return keys.config().wrong_value(keys.find("conv_group_size"),
                                     fmt::format("a divisor of hidden_size {}", transformer.hidden_size));
  }
  if (dflash2.selector_top_k > draft_vocab_size) {
    return keys.config().wrong_value(
        keys.find("selector_top_k"),
        fmt::format("at most {} {}", draft_vocab_size < transformer.vocab_size ? "draft_vocab_size" : "vocab_size",
                    draft_vocab_size));
  }
  return dflash2;
}

Result<DsparkConfig> read_dspark_config(const DraftKeys& keys, const DrafterKind& kind) {
  DsparkConfig dspark;
  BLOCKDRAFT_ASSIGN(dspark.markov_rank, read_markov_rank(keys, kind));
  BLOCKDRAFT_ASSIGN(dspark.markov_head_type, read_markov_head_type(keys));
  BLOCKDRAFT_ASSIGN(dspark.enable_confidence_head, read_enable_confidence_head(keys, kind));
  if (!dspark.enable_confidence_head) return dspark;
  BLOCKDRAFT_ASSIGN(dspark.confidence_head_with_markov,
                    read_confidence_head_with_markov(keys, kind, dspark.markov_rank));
  return dspark;
}

}  // namespace blockdraft
