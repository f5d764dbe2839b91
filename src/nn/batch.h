// Building the flattened rows of a forward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/batch_view.h"
#include "tensor/context.h"

namespace blockdraft {

// Rows of one sequence: tokens at consecutive positions.
struct SequenceRows {
  int32_t slot = 0;
  int32_t first_position = 0;
  std::span<const int32_t> token_ids;
};

// Owns the arrays of a BatchView, sized once: refilling it allocates nothing.
class Batch {
 public:
  Batch(int32_t max_rows, int32_t max_sequences, int32_t page_table_stride);

  void clear();
  // `page_table` has page_table_stride entries. Without ids (context rows) token_ids may be null: 0 is stored.
  void add(int32_t first_position, int32_t num_rows, const int32_t* token_ids, const int32_t* page_table);
  // Empty rows of no sequence, until there are `rows`: a card's ops pass over them, whatever the graph they are in was
  // made for.
  void pad(int32_t rows);
  // Where the ops of the context find it: until it is cleared, on a card until the link begins anew.
  BatchView view(const Context& context) const;

 private:
  int32_t stride_;
  std::vector<int32_t> token_ids_, positions_, first_row_, page_tables_;
};

}  // namespace blockdraft
