#include "nn/weight_packs.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "base/check.h"
#include "base/error.h"
#include "nn/row_tasks.h"
#include "ops/cpu/transpose.h"
#include "tensor/dword_pack.h"

namespace blockdraft {
namespace {

// Lines that are filled together, so that of each row whole cache lines are read.
constexpr int64_t kLinesOfBlock = kLineBytes / kDwordBytes;

// Bytes [first, first + count) of some rows into as many lines of a pack.
void fill_lines(std::byte* lines, const WeightView& weight, int64_t first_feature, int64_t features, int64_t first,
                int64_t count) {
  for (int64_t n = 0; n < features; ++n) {
    const std::byte* row = weight.row(first_feature + n) + first;
    std::byte* to = lines + n * kDwordBytes;
    int64_t at = 0;
    for (; at + kDwordBytes <= count; at += kDwordBytes, to += kLineBytes) std::memcpy(to, row + at, kDwordBytes);
    if (at < count) std::memcpy(to, row + at, static_cast<size_t>(count - at));
  }
}

void fill_pack(std::byte* pack, const WeightView& weight, int64_t first_feature) {
  const int64_t features = std::min(kPackFeatures, weight.out_features - first_feature);
  constexpr int64_t kBytes = kLinesOfBlock * kDwordBytes;
  int64_t first = 0;
#if defined(__x86_64__)
  const bool transposes = best_cpu_isa() >= CpuIsa::avx512 && features == kPackFeatures;
  for (; transposes && first + kBytes <= weight.row_bytes(); first += kBytes) {
    cpu::transpose_dwords_avx512(weight.row(first_feature) + first, weight.row_bytes(),
                                 pack + first / kDwordBytes * kLineBytes);
  }
#endif
  for (; first < weight.row_bytes(); first += kBytes) {
    fill_lines(pack + first / kDwordBytes * kLineBytes, weight, first_feature, features, first,
               std::min(kBytes, weight.row_bytes() - first));
  }
}

}  // namespace

Result<Buffer> allocate_packs(size_t size_bytes, const char* what) {
  BLOCKDRAFT_ASSIGN(Buffer packs, Buffer::allocate(size_bytes, what));
  // What is read once a pass, front to back, is read faster on large pages (docs/performance.md). Advice: where the
  // system has none, the small ones do.
  ::madvise(packs.data(), packs.size_bytes(), MADV_HUGEPAGE);
  return packs;
}

bool wants_packs(CpuIsa isa, const WeightView& weight) {
  return isa >= CpuIsa::avx512_bf16 && has_dword_packs(weight.dtype) && !weight.is_packed;
}

Result<Buffer> pack_dwords(const WeightView& weight, ThreadPool* threads) {
  CHECK(has_dword_packs(weight.dtype) && !weight.is_packed);
  const int64_t bytes = dword_packs_bytes(weight.dtype, weight.out_features, weight.in_features);
  BLOCKDRAFT_ASSIGN(Buffer packs, allocate_packs(static_cast<size_t>(bytes), "a packed weight"));
  auto* data = static_cast<std::byte*>(packs.data());
  for_each_task(threads, num_packs(weight.out_features), [&](int64_t pack) {
    fill_pack(data + pack * dword_pack_bytes(weight.dtype, weight.in_features), weight, pack * kPackFeatures);
  });
  return packs;
}

}  // namespace blockdraft
