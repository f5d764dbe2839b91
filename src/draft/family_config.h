// The keys that only one family of drafters has (spec 2.2).
#pragma once

#include "blockdraft/result.h"
#include "draft/draft_keys.h"
#include "draft/drafter_config.h"
#include "draft/drafter_kind.h"

namespace blockdraft {

// All four keys are required. conv_group_size divides hidden_size, selector_top_k is at most vocab_size.
Result<Dflash2Config> read_dflash2_config(const DraftKeys& keys, const TransformerConfig& transformer,
                                          int64_t draft_vocab_size);

// DeepSpec's files must say everything; the defaults of the others are those of their training code. A confidence head
// with Markov embeddings needs a Markov head.
Result<DsparkConfig> read_dspark_config(const DraftKeys& keys, const DrafterKind& kind);

}  // namespace blockdraft
