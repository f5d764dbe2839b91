// Marks small functions that kernels of a card call, too: one definition, so one result.
#pragma once

#ifdef __CUDACC__
#define BLOCKDRAFT_HOST_DEVICE __host__ __device__
#else
#define BLOCKDRAFT_HOST_DEVICE
#endif
