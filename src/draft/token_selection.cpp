#include "draft/token_selection.h"

#include "draft/argmax_selection.h"
#include "draft/candidate_selection.h"
#include "draft/markov_selection.h"

namespace blockdraft {

std::unique_ptr<TokenSelection> make_selection(const DrafterConfig& config, const DrafterWeights& weights) {
  switch (config.family) {
    case DrafterFamily::dflash2:
      return std::make_unique<CandidateSelection>(config.dflash2, weights.selector);
    case DrafterFamily::dspark:
      return std::make_unique<MarkovSelection>(config.dspark, weights.markov, config.transformer.hidden_size,
                                               config.block_size);
    case DrafterFamily::dflash:
      break;
  }
  return std::make_unique<ArgmaxSelection>();
}

}  // namespace blockdraft
