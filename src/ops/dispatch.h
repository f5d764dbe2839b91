// Which backend an op of a Context runs on.
#pragma once

#include "base/has_cuda.h"
#include "tensor/context.h"

// BLOCKDRAFT_DISPATCH(context, rms_norm(context, out, x, weight, eps)) calls cu::rms_norm() or cpu::rms_norm(). A build
// without CUDA discards the first branch, so that cu:: needs no definitions there.
#define BLOCKDRAFT_DISPATCH(context, ...) \
  do {                                    \
    if constexpr (kHasCuda) {             \
      if ((context).cuda != nullptr) {    \
        cu::__VA_ARGS__;                  \
        break;                            \
      }                                   \
    }                                     \
    cpu::__VA_ARGS__;                     \
  } while (false)
