// Programmatic dependent launch: a kernel that begins before the one before it ends (LaunchShape::overlaps).
//
// What the kernels before wrote may be read, and what they read overwritten, only behind wait_for_predecessor(). Where
// all kernels of a chain wait, in all threads, all that came before a kernel is done then: one that has a thread end
// without waiting takes that from every kernel behind it. Ahead of it only what no kernel of a
// pass writes may be read: weights, and positions and tables of a batch. Attention also reads old keys there, behind a
// kernel that lets it begin only when its own predecessors are done (AttentionArgs::early). Only cards of compute
// capability 9.0 get such launches (launch.h); elsewhere there is nothing to wait for.
#pragma once

namespace blockdraft::cu {

// The next kernel may begin as soon as all blocks have said so or ended. Behind wait_for_predecessor() where the next
// one looks at what was there before this one without waiting.
__device__ inline void let_successor_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n");
#endif
}

// Until the kernel before has ended and all that it wrote can be read.
__device__ inline void wait_for_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

// The first line of a kernel that has nothing to do ahead of its turn.
__device__ inline void begin_in_chain() {
  let_successor_begin();
  wait_for_predecessor();
}

}  // namespace blockdraft::cu
