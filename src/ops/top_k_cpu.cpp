#include <algorithm>
#include <cmath>

#include "ops/argmax.h"
#include "ops/cpu/parallel.h"
#include "ops/top_k.h"

namespace blockdraft::cpu {

namespace {

// A sorted list that the best candidates so far are inserted into. Ids come in ascending order, so an equal logit goes
// behind those that are there.
struct Best {
  int32_t* ids;
  float* values;
  int64_t size;
  int64_t capacity;

  void offer(int32_t id, float value) {
    if (size == capacity && value <= values[size - 1]) return;
    int64_t place = size == capacity ? size - 1 : size++;
    for (; place > 0 && value > values[place - 1]; --place) {
      ids[place] = ids[place - 1];
      values[place] = values[place - 1];
    }
    ids[place] = id;
    values[place] = value;
  }
};

}  // namespace

void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices) {
  const int64_t k = values.dim(1);
  for_each_row(context, logits.dim(0), num_choices, [&](int64_t r) {
    Best best{ids + r * k, values.row(r), 0, k};
    const float* row = logits.row(r);
    bool has_nan = false;
    for (int64_t id = 0; id < num_choices; ++id) {
      has_nan |= std::isnan(row[id]);
      best.offer(static_cast<int32_t>(id), row[id]);
    }
    if (has_nan) std::fill_n(best.ids, k, kNotANumber);
  });
}

}  // namespace blockdraft::cpu
