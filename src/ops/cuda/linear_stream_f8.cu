#include "ops/cuda/linear_stream.cuh"

namespace blockdraft::cu {

void launch_stream_f8(Context& context, const char* what, const StreamCall& call) {
  if (call.weights[0].block_scales != nullptr) {
    launch_stream_format<F8Format<true>>(context, what, call);
  } else {
    launch_stream_format<F8Format<false>>(context, what, call);
  }
}

}  // namespace blockdraft::cu
