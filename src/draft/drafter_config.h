// config.json of a drafter: every published layout becomes this one struct (spec section 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/result.h"
#include "nn/transformer_config.h"

namespace blockdraft {

// Which block row gives which draft (spec 1.8).
enum class BlockLayout {
  in_place,  // row i is the guess for its own position; row 0, the anchor's, is not used
  shifted,   // row i is the guess for the position after it
};
const char* name_of(BlockLayout layout);  // "in place", "shifted"

enum class DrafterFamily { dflash, dflash2, dspark };
const char* name_of(DrafterFamily family);  // "DFlash", "DFlash2", "DSpark"

// Field names are the checkpoint's own keys (spec 2.2).
struct Dflash2Config {
  int32_t conv_kernel_size = 0;  // taps
  int32_t conv_group_size = 0;   // channels that share a dynamic coefficient; divides hidden_size
  int32_t selector_rank = 0;
  int32_t selector_top_k = 0;
};

enum class MarkovHeadType { vanilla, gated, rnn };
const char* name_of(MarkovHeadType type);  // the checkpoint's own name

struct DsparkConfig {
  int32_t markov_rank = 0;  // 0: no head, rows are chosen independently
  MarkovHeadType markov_head_type = MarkovHeadType::vanilla;
  bool enable_confidence_head = false;
  bool confidence_head_with_markov = false;
};

enum class LayerType { full_attention, sliding_attention };

struct DrafterLayerConfig {
  LayerType type = LayerType::full_attention;
  bool causal = false;  // within the block (spec 2.4)
  int32_t window = 0;   // positions, the query included; 0: none
};

struct DrafterConfig {
  std::string architecture;  // the first of `architectures`
  std::string origin;        // path of the config.json, for messages
  TransformerConfig transformer;
  std::vector<DrafterLayerConfig> layers;  // [num_hidden_layers]
  DrafterFamily family = DrafterFamily::dflash;
  Dflash2Config dflash2;  // of family dflash2
  DsparkConfig dspark;    // of family dspark

  BlockLayout layout = BlockLayout::in_place;
  int32_t block_size = 0;  // rows B the drafter was trained with
  int32_t mask_token_id = -1;
  std::vector<int32_t>
      target_layer_ids;  // in file order, never sorted; z-lab numbering: output of decoder layer i; -1: the embeddings
  bool target_layer_ids_computed = false;  // the config has none: the fallback of spec 1.3 was used, with a warning
  std::optional<int64_t> num_target_layers;
  int64_t target_hidden_size = 0;  // width of one tap
  int64_t draft_vocab_size = 0;    // rows of the head; below vocab_size only with d2t

  std::optional<float> input_embedding_scale;  // absent: the target's own scale (spec 1.5)
  float output_multiplier = 1.0f;
  float final_logit_softcapping = 0.0f;  // 0: none

  std::vector<std::string> warnings;  // disagreeing copies of a key, computed layer ids; logged once at load

  // Drafts that a block of the trained size yields: block_size - 1 in place, block_size shifted.
  int32_t trained_width() const { return layout == BlockLayout::in_place ? block_size - 1 : block_size; }
  // Context positions that some layer can see at most, the row's own included; 0: some layer sees everything.
  int32_t largest_window() const;
  // Block rows needed for so many drafts.
  int32_t rows_for_width(int32_t width) const { return layout == BlockLayout::in_place ? width + 1 : width; }
};

// Reads `folder`/config.json with the precedence of spec 2.1 and validates as spec 2.8 says, as far as the config alone
// allows: DFlash, DFlash2 and DSpark as z-lab, SpecForge, DeepSpec and speculators write them, and the Muse Glimmer
// assistant. Refused, each by name:
// Domino and the vendor variants of appendix A, unknown projector types, keys that change the mathematics and belong to
// another kind, a mask_embedding.pt in the folder (as of the MiMo variant). A quantization is not looked at here:
// formats are decided per tensor.
//
// `layout_override` replaces what the config says of the layout, with a warning if the two differ; files in speculators
// format may not say it (spec 1.8).
Result<DrafterConfig> read_drafter_config(const std::filesystem::path& folder,
                                          std::optional<BlockLayout> layout_override = {});

// The same from a parsed config.json. `origin` names the document in errors and warnings; a document that is not an
// object is refused.
Result<DrafterConfig> read_drafter_config(const Json& document, std::string origin,
                                          std::optional<BlockLayout> layout_override = {});

// target_layer_ids of spec 1.3 for a DFlash config without them: `num_target_layers` N, `num_hidden_layers` L.
std::vector<int32_t> fallback_layer_ids(int64_t num_target_layers, int64_t num_hidden_layers);

}  // namespace blockdraft
