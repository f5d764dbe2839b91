#include "blockdraft/inspect.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/drafter_layout.h"
#include "api/inspect_memory.h"
#include "api/inspect_weights.h"
#include "base/error.h"
#include "base/json.h"
#include "blockdraft/tokenizer.h"
#include "checkpoint/config_reader.h"
#include "draft/drafter_config.h"
#include "engine/models.h"
#include "nn/rope_config.h"
#include "target/target_config.h"

namespace blockdraft {
namespace {

class Lines {
 public:
  template <class... Args>
  void add(std::string name, fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back({std::move(name), fmt::format(format, std::forward<Args>(args)...)});
  }
  std::vector<ReportLine> take() { return std::move(lines_); }

 private:
  std::vector<ReportLine> lines_;
};

void add_transformer(Lines& lines, const TransformerConfig& config) {
  lines.add("layers", "{}", config.num_hidden_layers);
  lines.add("hidden size", "{}", config.hidden_size);
  lines.add("inner size", "{}", config.intermediate_size);
  lines.add("heads", "{} for queries, {} for keys and values, {} wide", config.num_attention_heads,
            config.num_key_value_heads, config.head_dim);
  lines.add("attention biases", "{}", config.attention_bias ? "yes" : "no");
  lines.add("vocabulary", "{} rows", config.vocab_size);
  lines.add("rope", "{}", describe(config.rope));
  lines.add("norm epsilon", "{:g}", config.rms_norm_eps);
}

// "sliding 2048, causal (layers 0 to 3); full, both ways (layer 4)"
std::string describe_layers(const std::vector<DrafterLayerConfig>& layers) {
  const auto describe_one = [](const DrafterLayerConfig& layer) {
    const std::string reach = layer.window > 0 ? fmt::format("window {}", layer.window) : std::string("whole context");
    return fmt::format("{}, {}", reach, layer.causal ? "causal in the block" : "both ways in the block");
  };
  std::string text;
  for (size_t first = 0; first < layers.size();) {
    size_t last = first;
    const std::string kind = describe_one(layers[first]);
    while (last + 1 < layers.size() && describe_one(layers[last + 1]) == kind) ++last;
    const std::string range =
        first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last);
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", kind, range);
    first = last + 1;
  }
  return text;
}

void add_dflash2(Lines& lines, const Dflash2Config& config) {
  lines.add("convolutions", "{} taps, groups of {} channels", config.conv_kernel_size, config.conv_group_size);
  lines.add("candidate selector", "rank {}, {} candidates a row", config.selector_rank, config.selector_top_k);
}

void add_dspark(Lines& lines, const DsparkConfig& config) {
  lines.add("markov head", "{}",
            config.markov_rank == 0 ? std::string("none")
                                    : fmt::format("{}, rank {}", name_of(config.markov_head_type), config.markov_rank));
  lines.add("confidence head", "{}",
            !config.enable_confidence_head       ? "none"
            : config.confidence_head_with_markov ? "of hidden state and token before"
                                                 : "of hidden state");
}

void add_drafter(Lines& lines, const DrafterConfig& config) {
  const bool in_place = config.layout == BlockLayout::in_place;
  lines.add("block", "{} rows, {} drafts a cycle ({})", config.block_size, config.trained_width(),
            in_place ? "in place: a row guesses its own position" : "shifted: a row guesses the next position");
  lines.add("taps", "outputs of target layers {}{}{}", fmt::join(config.target_layer_ids, ", "),
            std::ranges::count(config.target_layer_ids, -1) == 0 ? "" : " (-1: the embeddings)",
            config.target_layer_ids_computed ? " (computed: the config has none)" : "");
  lines.add("mask id", "{}", config.mask_token_id);
  lines.add("attention", "{}", describe_layers(config.layers));
  if (config.draft_vocab_size != config.transformer.vocab_size) {
    lines.add("draft vocabulary", "{} ids", config.draft_vocab_size);
  }
  if (config.input_embedding_scale) lines.add("embedding scale", "{:g}", *config.input_embedding_scale);
  if (config.output_multiplier != 1.0f) lines.add("output multiplier", "{:g}", config.output_multiplier);
  if (config.final_logit_softcapping > 0) lines.add("logit softcap", "{:g}", config.final_logit_softcapping);
  if (config.family == DrafterFamily::dflash2) add_dflash2(lines, config.dflash2);
  if (config.family == DrafterFamily::dspark) add_dspark(lines, config.dspark);
}

// Anything that is not a causal language model by its architecture is taken for a drafter: the drafter's reader names
// what it finds.
bool is_target(const Json& config) {
  const auto architectures = config.find("architectures");
  if (architectures == config.end() || !architectures->is_array() || architectures->empty()) return false;
  const Json& first = architectures->front();
  return first.is_string() && first.get_ref<const std::string&>().ends_with("ForCausalLM");
}

void add_packed(MemoryPlanReport& plan, const char* name, const FolderReport& report) {
  if (report.packed_bytes > 0) plan.items.push_back({name, report.packed_bytes});
}

Result<FolderReport> inspect_target(const std::filesystem::path& folder, const InspectOptions& options) {
  BLOCKDRAFT_ASSIGN(const TargetConfig config, read_target_config(folder));
  FolderReport report{.kind = config.architecture, .warnings = config.transformer.warnings};
  Lines lines;
  add_transformer(lines, config.transformer);
  lines.add("positions", "{}", config.transformer.max_position_embeddings);
  lines.add("output head", "{}", config.tie_word_embeddings ? "the embedding table" : "its own");
  lines.add("stop ids", "{}", fmt::join(config.eos_token_ids, ", "));
  report.lines = lines.take();
  BLOCKDRAFT_TRY(inspect_target_weights(folder, config, report));
  BLOCKDRAFT_ASSIGN(report.memory, plan_engine(config, nullptr, nullptr, options));
  add_packed(report.memory, "target weights", report);
  return report;
}

Result<FolderReport> inspect_drafter(const std::filesystem::path& folder, const InspectOptions& options) {
  BLOCKDRAFT_ASSIGN(const DrafterConfig config, read_drafter_config(folder, layout_override(options.drafter_layout)));
  FolderReport report{.is_drafter = true, .kind = name_of(config.family), .warnings = config.warnings};
  Lines lines;
  add_drafter(lines, config);
  add_transformer(lines, config.transformer);
  report.lines = lines.take();
  BLOCKDRAFT_ASSIGN(const DrafterWeights weights, inspect_drafter_weights(folder, config, report));
  BLOCKDRAFT_ASSIGN(report.memory, plan_drafter(config, weights, options));
  add_packed(report.memory, "drafter weights", report);
  return report;
}

// 0 for a folder without a tokenizer.
Result<int64_t> num_real_ids(const std::filesystem::path& target) {
  std::error_code ignored;
  if (!std::filesystem::exists(target / "tokenizer.json", ignored)) return int64_t{0};
  BLOCKDRAFT_ASSIGN(const Tokenizer tokenizer, Tokenizer::open(target));
  return static_cast<int64_t>(tokenizer.vocab_size());
}

}  // namespace

Result<FolderReport> inspect_folder(const std::filesystem::path& folder, const InspectOptions& options) {
  BLOCKDRAFT_ASSIGN(const Json json, read_config_json(folder));
  return is_target(json) ? inspect_target(folder, options) : inspect_drafter(folder, options);
}

Result<PairingReport> inspect_pair(const std::filesystem::path& target, const std::filesystem::path& drafter,
                                   const InspectOptions& options) {
  BLOCKDRAFT_ASSIGN(const TargetConfig target_config, read_target_config(target));
  BLOCKDRAFT_ASSIGN(const int64_t real_ids, num_real_ids(target));
  BLOCKDRAFT_ASSIGN(const DrafterConfig drafter_config,
                    read_drafter_config(drafter, layout_override(options.drafter_layout)));
  PairingReport report;
  for (PairingCheck& check : check_pairing(drafter_config, facts_of(target_config, real_ids))) {
    report.lines.push_back({std::move(check.name), std::move(check.target), std::move(check.drafter), check.fits});
  }
  if (!report.fits()) return report;
  FolderReport of_target, of_drafter;
  BLOCKDRAFT_TRY(inspect_target_weights(target, target_config, of_target));
  BLOCKDRAFT_ASSIGN(const DrafterWeights weights, inspect_drafter_weights(drafter, drafter_config, of_drafter));
  BLOCKDRAFT_ASSIGN(report.memory, plan_engine(target_config, &drafter_config, &weights, options));
  add_packed(report.memory, "target weights", of_target);
  add_packed(report.memory, "drafter weights", of_drafter);
  return report;
}

int64_t MemoryPlanReport::size_bytes() const {
  int64_t total = 0;
  for (const MemoryPlanItem& item : items) total += item.size_bytes;
  return total;
}

bool PairingReport::fits() const { return std::ranges::all_of(lines, &PairingLine::fits); }

std::string PairingReport::problem() const {
  std::string text;
  for (const PairingLine& line : lines) {
    if (line.fits) continue;
    text +=
        fmt::format("{}{} is {}, the target has {}", text.empty() ? "" : "; ", line.name, line.drafter, line.target);
  }
  return text;
}

}  // namespace blockdraft
