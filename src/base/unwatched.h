// Code that ThreadSanitizer does not watch.
//
// It watches every access, which makes the innermost loops of kernels fifty times slower, and it does not inline what
// is watched into what is not: a loop and all that it calls for an element have to be marked. Only for code that reads
// what nobody writes during the call; what a task writes is written, and watched, outside of it.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define BLOCKDRAFT_UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define BLOCKDRAFT_UNWATCHED
#endif
