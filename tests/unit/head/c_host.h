/* A host in C. */
#pragma once

#include "blockdraft/blockdraft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Extends a new sequence by `length` rows, asks for drafts of the trained width, and rewinds and closes. The code of
 * the first call that fails, and its message. ids: [trained width]. */
blockdraft_code c_host_run(const char* folder, const blockdraft_target_tensors* target, const float* taps,
                           int32_t length, int32_t anchor_id, int32_t* ids, float* confidences,
                           blockdraft_error* error);

#ifdef __cplusplus
}
#endif
