// BLOCKDRAFT_TARGET_BEGIN("avx2,fma") ... BLOCKDRAFT_TARGET_END: the functions between them are compiled for these
// instructions. Include everything else before: what a header defines inline must stay what any processor can run,
// since the linker keeps one copy of it for all files.
#pragma once

#define BLOCKDRAFT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define BLOCKDRAFT_TARGET_BEGIN(options) \
  BLOCKDRAFT_PRAGMA(clang attribute push(__attribute__((target(options))), apply_to = function))
#define BLOCKDRAFT_TARGET_END BLOCKDRAFT_PRAGMA(clang attribute pop)
#else
#define BLOCKDRAFT_TARGET_BEGIN(options) BLOCKDRAFT_PRAGMA(GCC push_options) BLOCKDRAFT_PRAGMA(GCC target(options))
#define BLOCKDRAFT_TARGET_END BLOCKDRAFT_PRAGMA(GCC pop_options)
#endif
