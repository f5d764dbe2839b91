// Whether this build has the CUDA backend (CMake option BLOCKDRAFT_CUDA).
#pragma once

namespace blockdraft {

#ifdef BLOCKDRAFT_HAS_CUDA
inline constexpr bool kHasCuda = true;
#else
inline constexpr bool kHasCuda = false;
#endif

}  // namespace blockdraft
