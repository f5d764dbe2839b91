// 16 by 16 elements of four bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockdraft::cpu {

// lines[16 * c + r] = element c of row r, for 16 rows of 64 bytes that lie row_bytes apart. AVX-512 F.
#if defined(__x86_64__)
void transpose_dwords_avx512(const std::byte* rows, int64_t row_bytes, std::byte* lines);
#endif

}  // namespace blockdraft::cpu
