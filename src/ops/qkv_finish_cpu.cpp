#include "ops/kv_write.h"
#include "ops/qkv_finish.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace blockdraft::cpu {

void qkv_finish(Context& context, const QkvFinishArgs& args) {
  if (args.q_norm.data != nullptr) {
    cpu::rms_norm(context, args.q, args.q, args.q_norm, args.eps);
    cpu::rms_norm(context, args.k, args.k, args.k_norm, args.eps);
  }
  cpu::rope(context, args.q, args.rope);
  cpu::rope(context, args.k, args.rope);
  cpu::kv_write(context, args.kv, args.batch, args.k, args.v);
}

}  // namespace blockdraft::cpu
