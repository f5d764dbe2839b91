#include "cli/read_stream.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/target_options.h"

namespace blockdraft {
namespace {

constexpr size_t kStreams = 4;
constexpr size_t kStreamBytes = kStreamChunkBytes / kStreams;
constexpr size_t kLine = 64;
constexpr size_t kSums = 2 * kStreams;  // two of each stream, so that no addition waits for the one before

uint64_t with_portable(const std::byte* data) {
  using Vector = uint64_t __attribute__((vector_size(16)));
  Vector sums[kSums] = {};
  for (size_t at = 0; at < kStreamBytes; at += kLine) {
#pragma GCC unroll 4
    for (size_t stream = 0; stream < kStreams; ++stream) {
#pragma GCC unroll 4
      for (size_t part = 0; part < 4; ++part) {
        Vector value;
        std::memcpy(&value, data + stream * kStreamBytes + at + part * sizeof value, sizeof value);
        sums[2 * stream + part % 2] += value;
      }
    }
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] += sums[i];
  return sums[0][0] + sums[0][1];
}

#if defined(__x86_64__)
BLOCKDRAFT_TARGET_BEGIN("avx2")
uint64_t with_avx2(const std::byte* data) {
  __m256i sums[kSums] = {};
  for (size_t at = 0; at < kStreamBytes; at += kLine) {
#pragma GCC unroll 4
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const auto* line = reinterpret_cast<const __m256i*>(data + stream * kStreamBytes + at);
      sums[2 * stream] = _mm256_add_epi64(sums[2 * stream], _mm256_loadu_si256(line));
      sums[2 * stream + 1] = _mm256_add_epi64(sums[2 * stream + 1], _mm256_loadu_si256(line + 1));
    }
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = _mm256_add_epi64(sums[0], sums[i]);
  return static_cast<uint64_t>(_mm256_extract_epi64(sums[0], 0) + _mm256_extract_epi64(sums[0], 1) +
                               _mm256_extract_epi64(sums[0], 2) + _mm256_extract_epi64(sums[0], 3));
}
BLOCKDRAFT_TARGET_END

BLOCKDRAFT_TARGET_BEGIN("avx512f")
uint64_t with_avx512(const std::byte* data) {
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (size_t at = 0; at < kStreamBytes; at += 2 * kLine) {
#pragma GCC unroll 4
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* line = data + stream * kStreamBytes + at;
      sums[2 * stream] = _mm512_add_epi64(sums[2 * stream], _mm512_loadu_si512(line));
      sums[2 * stream + 1] = _mm512_add_epi64(sums[2 * stream + 1], _mm512_loadu_si512(line + kLine));
    }
  }
  for (size_t i = 1; i < kSums; ++i) sums[0] = _mm512_add_epi64(sums[0], sums[i]);
  uint64_t lanes[8];
  _mm512_storeu_si512(lanes, sums[0]);
  uint64_t total = 0;
  for (const uint64_t lane : lanes) total += lane;
  return total;
}
BLOCKDRAFT_TARGET_END
#endif

}  // namespace

uint64_t read_chunk(CpuIsa isa, const std::byte* data) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) return with_avx512(data);
  if (isa >= CpuIsa::avx2) return with_avx2(data);
#endif
  static_cast<void>(isa);
  return with_portable(data);
}

}  // namespace blockdraft
