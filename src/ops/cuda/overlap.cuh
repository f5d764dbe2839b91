// Programmatic dependent launch: a kernel that begins before the one before it ends (LaunchShape::overlaps).
//
// What the kernels before wrote may be read, and what they read overwritten, only behind wait_for_predecessor(). Where
// all kernels of a chain wait, in all threads, all that came before a kernel is done then. Cards below compute
// capability 9.0 have no such launches, and there is nothing to wait for.
#pragma once

namespace blockdraft::cu {

// The next kernel may begin as soon as all blocks have said so or ended.
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

}  // namespace blockdraft::cu
