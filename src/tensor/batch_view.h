// The rows of one forward pass: several sequences, flattened. A single sequence is a batch of one.
#pragma once

#include <cstdint>

namespace blockdraft {

// Rows of sequence i are first_row[i] .. first_row[i + 1] - 1; their positions are consecutive. Sequences have
// different numbers of rows and start at different positions. All arrays are borrowed and lie in device memory, so
// that a captured graph can be replayed with new contents.
struct BatchView {
  int32_t num_rows = 0;
  int32_t num_sequences = 0;
  const int32_t* token_ids = nullptr;    // [num_rows]
  const int32_t* positions = nullptr;    // [num_rows], absolute, 0-based
  const int32_t* first_row = nullptr;    // [num_sequences + 1]
  const int32_t* page_tables = nullptr;  // [num_sequences, page_table_stride]; entry j holds positions 16j .. 16j + 15
  int32_t page_table_stride = 0;
};

}  // namespace blockdraft
