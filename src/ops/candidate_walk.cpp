#include "ops/candidate_walk.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"
#include "ops/dispatch.h"

namespace blockdraft {

void candidate_walk(Context& context, const CandidateWalkArgs& args) {
  CHECK(is_f32_matrix(args.scores) && is_f32_matrix(args.unary) && is_f32_matrix(args.edge));
  CHECK(args.scores.shape == args.unary.shape && args.edge.dim(0) == args.unary.dim(0));
  CHECK(is_valid_weight(args.predecessor) && is_valid_weight(args.successor));
  CHECK(!args.predecessor.is_packed && !args.successor.is_packed);
  CHECK(args.predecessor.in_features == args.edge.dim(1) && args.successor.in_features == args.edge.dim(1));
  CHECK(args.num_sequences == 0 || (args.anchors != nullptr && args.first_row != nullptr));
  BLOCKDRAFT_DISPATCH(context, candidate_walk(context, args));
}

}  // namespace blockdraft
