#include "draft/draft_vocabulary.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "tensor/codec.h"
#include "tensor/shape.h"

namespace blockdraft {
namespace {

std::vector<int64_t> integers(const StoredTensor& tensor) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* address = tensor.data + i * size_of(tensor.dtype);
    values[i] = tensor.dtype == DType::i64 ? load_unaligned<int64_t>(address) : load_unaligned<int32_t>(address);
  }
  return values;
}

bool is_id_list(const std::vector<int64_t>& ids, int64_t vocab_size) {
  return std::ranges::adjacent_find(ids, std::greater_equal<>{}) == ids.end() && !ids.empty() && ids.front() >= 0 &&
         ids.back() < vocab_size;
}

Status check_tensors(const StoredTensor& d2t, const StoredTensor* t2d, int64_t draft_vocab_size, int64_t vocab_size,
                     std::string_view origin) {
  if (d2t.shape != std::vector<int64_t>{draft_vocab_size}) {
    return make_error(Code::mismatch, "{}: tensor 'd2t' has shape {}, expected [{}]", origin, to_string(d2t.shape),
                      draft_vocab_size);
  }
  if (t2d != nullptr && (t2d->dtype != DType::boolean || t2d->shape != std::vector<int64_t>{vocab_size})) {
    return make_error(Code::mismatch, "{}: tensor 't2d' is {} {}, expected BOOL [{}]", origin, name_of(t2d->dtype),
                      to_string(t2d->shape), vocab_size);
  }
  if (d2t.dtype == DType::i64 || d2t.dtype == DType::i32) return {};
  return make_error(Code::unsupported, "{}: tensor 'd2t' has type {}, expected I64 or I32", origin, name_of(d2t.dtype));
}

// Whether the ids are exactly those that t2d marks.
bool matches(const std::vector<int64_t>& ids, const StoredTensor& t2d) {
  size_t next = 0;
  for (int64_t id = 0; id < t2d.num_elements(); ++id) {
    const bool marked = std::to_integer<int>(t2d.data[id]) != 0;
    const bool listed = next < ids.size() && ids[next] == id;
    if (marked != listed) return false;
    if (listed) ++next;
  }
  return next == ids.size();
}

}  // namespace

Result<std::vector<int32_t>> read_draft_vocabulary(const StoredTensor& d2t, const StoredTensor* t2d,
                                                   int64_t draft_vocab_size, int64_t vocab_size,
                                                   std::string_view origin, bool read_values) {
  BLOCKDRAFT_TRY(check_tensors(d2t, t2d, draft_vocab_size, vocab_size, origin));
  if (!read_values) return std::vector<int32_t>();
  const std::vector<int64_t> absolute = integers(d2t);
  std::vector<int64_t> offset = absolute;
  for (size_t i = 0; i < offset.size(); ++i) {
    // The bound keeps a hostile value from overflowing the sum; such an id is refused below.
    offset[i] = std::clamp<int64_t>(offset[i], -vocab_size - 1, vocab_size) + static_cast<int64_t>(i);
  }
  const auto usable = [&](const std::vector<int64_t>& ids) {
    return is_id_list(ids, vocab_size) && (t2d == nullptr || matches(ids, *t2d));
  };
  const std::vector<int64_t>* ids = usable(offset) ? &offset : usable(absolute) ? &absolute : nullptr;
  if (ids == nullptr) {
    return make_error(Code::corrupt_file,
                      "{}: tensor 'd2t' gives ids that are not increasing and below {}{}, read as offsets or as ids",
                      origin, vocab_size, t2d == nullptr ? "" : " or not those that 't2d' marks");
  }
  return std::vector<int32_t>(ids->begin(), ids->end());
}

}  // namespace blockdraft
