#include "ops/cuda/support.h"

#include "base/error.h"

namespace blockdraft::cu {

Status supports_attention(const CudaDevice& device, int32_t num_heads, int32_t num_kv_heads, int32_t head_dim) {
  if (head_dim != 64 && head_dim != 128 && head_dim != 256) {
    return make_error(Code::unsupported, "attention on {}: head_dim is {}, expected 64, 128 or 256", device.name(),
                      head_dim);
  }
  const int32_t most = head_dim > 128 ? 32 : 64;
  if (num_kv_heads <= 0 || num_heads % num_kv_heads != 0 || num_heads / num_kv_heads > most) {
    return make_error(
        Code::unsupported,
        "attention on {}: {} query heads share {} K/V heads, expected a multiple of at most {} a K/V head",
        device.name(), num_heads, num_kv_heads, most);
  }
  return {};
}

Status supports_top_k(int64_t k) {
  if (k >= 1 && k <= kMaxTopK) return {};
  return make_error(Code::unsupported, "candidates on a card: {} a row, expected 1 to {}", k, kMaxTopK);
}

}  // namespace blockdraft::cu
