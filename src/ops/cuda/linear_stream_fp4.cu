#include "ops/cuda/linear_stream.cuh"

namespace blockdraft::cu {

void launch_stream_fp4(Context& context, const char* what, const StreamCall& call) {
  launch_stream_format<Fp4Format>(context, what, call);
}

}  // namespace blockdraft::cu
