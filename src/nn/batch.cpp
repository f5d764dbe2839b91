#include "nn/batch.h"

#include "base/check.h"
#include "tensor/host_link.h"

namespace blockdraft {

Batch::Batch(int32_t max_rows, int32_t max_sequences, int32_t page_table_stride) : stride_(page_table_stride) {
  token_ids_.reserve(static_cast<size_t>(max_rows));
  positions_.reserve(static_cast<size_t>(max_rows));
  first_row_.reserve(static_cast<size_t>(max_sequences) + 1);
  page_tables_.reserve(static_cast<size_t>(max_sequences) * static_cast<size_t>(page_table_stride));
  clear();
}

void Batch::clear() {
  token_ids_.clear();
  positions_.clear();
  first_row_.assign(1, 0);
  page_tables_.clear();
}

void Batch::add(int32_t first_position, int32_t num_rows, const int32_t* token_ids, const int32_t* page_table) {
  CHECK(positions_.size() + static_cast<size_t>(num_rows) <= positions_.capacity());
  CHECK(first_row_.size() < first_row_.capacity());
  for (int32_t row = 0; row < num_rows; ++row) {
    token_ids_.push_back(token_ids == nullptr ? 0 : token_ids[row]);
    positions_.push_back(first_position + row);
  }
  first_row_.push_back(static_cast<int32_t>(positions_.size()));
  page_tables_.insert(page_tables_.end(), page_table, page_table + stride_);
}

void Batch::pad(int32_t rows) {
  CHECK(static_cast<size_t>(rows) >= positions_.size() && static_cast<size_t>(rows) <= positions_.capacity());
  token_ids_.resize(static_cast<size_t>(rows), 0);
  positions_.resize(static_cast<size_t>(rows), 0);
}

BatchView Batch::view(const Context& context) const {
  return {.num_rows = static_cast<int32_t>(positions_.size()),
          .num_sequences = static_cast<int32_t>(first_row_.size()) - 1,
          .token_ids = on_device(context, std::span(token_ids_)),
          .positions = on_device(context, std::span(positions_)),
          .first_row = on_device(context, std::span(first_row_)),
          .page_tables = on_device(context, std::span(page_tables_)),
          .page_table_stride = stride_};
}

}  // namespace blockdraft
