// Random data, a read of memory and a comparison, on a card.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"

namespace blockdraft::bench {

// Words of random bits, of which `keep` stay and `set` are ones.
void fill_codes(Context& context, void* memory, size_t size_bytes, uint64_t seed, uint32_t keep, uint32_t set);
// In [-1, 1).
void fill_uniform(Context& context, float* values, int64_t count, uint64_t seed);

// Reads all of it: how fast memory is.
void read_all(Context& context, const void* memory, size_t size_bytes, uint32_t* sink);

// *differing += the number of words that differ.
void count_differing(Context& context, const void* a, const void* b, size_t size_bytes, int32_t* differing);

}  // namespace blockdraft::bench
