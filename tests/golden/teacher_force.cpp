#include "golden/teacher_force.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "nn/output_head.h"

namespace blockdraft::golden {

Result<Outputs> teacher_force(test::DeviceContext& device, Target& target, const std::vector<int32_t>& ids,
                              const std::vector<int32_t>& tap_layer_ids, size_t piece) {
  Context& context = device.context();
  const int64_t hidden_size = target.config().transformer.hidden_size;
  const OutputHead head{.weight = target.lm_head(), .num_choices = target.lm_head().out_features};
  const auto tap_size = static_cast<int64_t>(tap_layer_ids.size()) * hidden_size;
  Outputs outputs;
  target.reset(0);
  for (size_t first = 0; first < ids.size(); first += piece) {
    const ArenaScope scope(*context.arena);
    const auto rows = static_cast<int32_t>(std::min(piece, ids.size() - first));
    std::vector<int32_t> all_rows(static_cast<size_t>(rows));
    std::iota(all_rows.begin(), all_rows.end(), 0);
    const SequenceRows sequence{0, static_cast<int32_t>(first), std::span(ids).subspan(first, all_rows.size())};
    const TensorView hidden = context.arena->take_f32({rows, hidden_size});
    const TensorView taps = context.arena->take_f32({rows, tap_size});
    const TensorView logits = context.arena->take_f32({rows, head.weight.out_features});
    BLOCKDRAFT_TRY(device.begin_pass());
    target.reserve(0, rows);
    target.forward(context, {.sequences = {&sequence, 1},
                             .hidden_rows = all_rows,
                             .hidden = hidden,
                             .tap_layer_ids = tap_layer_ids,
                             .taps = taps});
    target.commit(0, rows);
    head_logits(context, logits, hidden, head);
    BLOCKDRAFT_TRY(device.finish_pass());
    BLOCKDRAFT_TRY(device.append(outputs.logits, logits));
    BLOCKDRAFT_TRY(device.append(outputs.taps, taps));
  }
  return outputs;
}

}  // namespace blockdraft::golden
