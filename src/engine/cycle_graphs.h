// Cycles of a card as graphs: what a cycle of the same shape queued before is launched at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "blockdraft/result.h"
#include "tensor/context.h"
#include "tensor/cuda_graph.h"

namespace blockdraft {

// A cycle's work reads what differs from cycle to cycle (ids, positions, page tables, noise) from arrays that the link
// sends, so cycles that agree in their numbers of rows are the same graph. A shape is captured when it comes for the
// second time: ends of texts have shapes of their own, most of which never come again. Builds with CUDA only.
class CycleGraphs {
 public:
  static constexpr size_t kMostGraphs = 64;  // then the one that was not used for longest goes

  // All that decides what work queues: number of rows, sequences, kinds of choices. Empty: nothing like it will come
  // again.
  using Shape = std::vector<int32_t>;

  // Queues the work of a cycle, or goes through it for what it does on the CPU and launches its graph.
  Status run(Context& context, const Shape& shape, const std::function<Status()>& work);

  int64_t num_captured() const { return num_captured_; }  // in all

 private:
  struct Entry {
    std::optional<CudaGraph> graph;
    bool is_refused = false;
    size_t sent_bytes = 0;
    int64_t newest_use = 0;
  };
  Status capture(Context& context, Entry& entry, const std::function<Status()>& work);
  static void queue(Context& context, const Entry& entry, const std::function<Status()>& work);
  void make_room();

  std::map<Shape, Entry> entries_;
  int64_t uses_ = 0;
  int64_t num_captured_ = 0;
};

}  // namespace blockdraft
