#include "ops/cuda/linear_stream.cuh"

namespace blockdraft::cu {

void launch_stream_bf16(Context& context, const char* what, const StreamCall& call) {
  launch_stream_format<Bf16Format>(context, what, call);
}

}  // namespace blockdraft::cu
