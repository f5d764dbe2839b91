// Sequences over paged K/V, built from dense random keys and values, with physical pages in random order.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "support/op_context.h"
#include "tensor/batch_view.h"
#include "tensor/paged_kv.h"

namespace blockdraft::test {

// A sequence in a batch: rows at first_position, first_position + 1, ...; all earlier positions are stored.
struct SequenceSpec {
  uint32_t seed;  // decides its keys, values and queries, wherever it stands in a batch
  int32_t first_position;
  int32_t rows;
  int32_t freed_pages = 0;  // page table entries at the beginning that are -1
  int32_t end() const { return first_position + rows; }
};

// Element of a sequence's keys, values or queries at a position: the same in every batch.
inline Matrix dense(uint32_t seed, int64_t positions, int64_t columns) {
  std::mt19937 generator(seed);
  return Matrix::random(generator, positions, columns);
}
inline Matrix dense_keys(const SequenceSpec& spec, int64_t columns) {
  return dense(3 * spec.seed, spec.end(), columns);
}
inline Matrix dense_values(const SequenceSpec& spec, int64_t columns) {
  return dense(3 * spec.seed + 1, spec.end(), columns);
}
inline Matrix dense_queries(const SequenceSpec& spec, int64_t columns) {
  return dense(3 * spec.seed + 2, spec.end(), columns);
}

// The batch, its page tables, and a pool in which everything that no sequence stores is NaN.
class PagedSequences {
 public:
  PagedSequences(std::vector<SequenceSpec> specs, int32_t num_kv_heads, int32_t head_dim, uint32_t page_order_seed)
      : specs_(std::move(specs)) {
    build_tables(page_order_seed);
    const size_t size = static_cast<size_t>(num_pages_) * static_cast<size_t>(num_kv_heads * kPageSize * head_dim);
    k_.assign(size, std::nanf(""));
    v_.assign(size, std::nanf(""));
    kv_ = {k_.data(), v_.data(), num_pages_, num_kv_heads, head_dim};
    first_row_ = {0};
    for (const SequenceSpec& spec : specs_) {
      for (int32_t r = 0; r < spec.rows; ++r) positions_.push_back(spec.first_position + r);
      first_row_.push_back(static_cast<int32_t>(positions_.size()));
    }
  }
  PagedSequences(const PagedSequences&) = delete;
  PagedSequences& operator=(const PagedSequences&) = delete;

  // Stores the keys and values of all positions of all sequences.
  void fill() {
    const int64_t columns = static_cast<int64_t>(kv_.num_kv_heads) * kv_.head_dim;
    for (size_t s = 0; s < specs_.size(); ++s) {
      const Matrix keys = dense_keys(specs_[s], columns);
      const Matrix values = dense_values(specs_[s], columns);
      for (int32_t p = specs_[s].freed_pages * kPageSize; p < specs_[s].end(); ++p) {
        for (int32_t head = 0; head < kv_.num_kv_heads; ++head) {
          std::copy_n(keys.row(p) + head * kv_.head_dim, kv_.head_dim, k_.data() + offset(s, p, head));
          std::copy_n(values.row(p) + head * kv_.head_dim, kv_.head_dim, v_.data() + offset(s, p, head));
        }
      }
    }
  }

  int64_t offset(size_t sequence, int32_t position, int32_t head) const {
    const int32_t page = tables_[sequence * static_cast<size_t>(stride_) + static_cast<size_t>(position / kPageSize)];
    return kv_.offset(page, head, position % kPageSize);
  }

  const std::vector<SequenceSpec>& specs() const { return specs_; }
  const PagedKvView& kv() const { return kv_; }
  BatchView batch() const {
    return {.num_rows = static_cast<int32_t>(positions_.size()),
            .num_sequences = static_cast<int32_t>(specs_.size()),
            .positions = positions_.data(),
            .first_row = first_row_.data(),
            .page_tables = tables_.data(),
            .page_table_stride = stride_};
  }

 private:
  void build_tables(uint32_t page_order_seed) {
    for (const SequenceSpec& spec : specs_) stride_ = std::max(stride_, spec.end() / kPageSize + 2);
    const auto entries = static_cast<size_t>(stride_) * specs_.size();
    num_pages_ = static_cast<int32_t>(entries) + 3;
    std::vector<int32_t> pages(static_cast<size_t>(num_pages_));
    std::iota(pages.begin(), pages.end(), 0);
    std::mt19937 generator(page_order_seed);
    std::shuffle(pages.begin(), pages.end(), generator);
    tables_.assign(entries, -1);
    size_t next = 0;
    for (size_t s = 0; s < specs_.size(); ++s) {
      for (int32_t j = specs_[s].freed_pages; j * kPageSize < specs_[s].end(); ++j) {
        tables_[s * static_cast<size_t>(stride_) + static_cast<size_t>(j)] = pages[next++];
      }
    }
  }

  std::vector<SequenceSpec> specs_;
  std::vector<int32_t> tables_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> first_row_;
  std::vector<float> k_;
  std::vector<float> v_;
  PagedKvView kv_;
  int32_t stride_ = 0;
  int32_t num_pages_ = 0;
};

}  // namespace blockdraft::test
