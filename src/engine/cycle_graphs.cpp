#include "engine/cycle_graphs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "tensor/cuda_device.h"
#include "tensor/host_link.h"

namespace blockdraft {

Status CycleGraphs::run(Context& context, const Shape& shape, const std::function<Status()>& work) {
  // While nothing is queued anyway, there is nothing to capture.
  if (shape.empty() || context.cuda->skips()) return work();
  const auto [place, is_new] = entries_.try_emplace(shape);
  Entry& entry = place->second;
  entry.newest_use = ++uses_;
  if (is_new) {
    make_room();
    return work();
  }
  context.link->let_sending_wait();
  if (!entry.graph) {
    BLOCKDRAFT_TRY(capture(context, entry, work));
  } else {
    BLOCKDRAFT_TRY(replay(context, entry, work));
  }
  context.link->send_waiting();
  entry.graph->launch(*context.cuda);
  return {};
}

Status CycleGraphs::capture(Context& context, Entry& entry, const std::function<Status()>& work) {
  CudaGraph::begin(*context.cuda);
  const Status queued = work();
  Result<CudaGraph> graph = CudaGraph::end(*context.cuda);
  CHECK(queued.ok());  // what can fail is not captured
  if (!graph) return graph.error();
  entry.graph = std::move(*graph);
  entry.sent_bytes = context.link->sent_bytes();
  ++num_captured_;
  return {};
}

Status CycleGraphs::replay(Context& context, const Entry& entry, const std::function<Status()>& work) {
  context.cuda->set_repeats(true);
  const Status done = work();
  context.cuda->set_repeats(false);
  CHECK(done.ok() && context.link->sent_bytes() == entry.sent_bytes);
  return {};
}

void CycleGraphs::make_room() {
  while (entries_.size() > kMostGraphs) {
    entries_.erase(std::ranges::min_element(entries_, {}, [](const auto& item) { return item.second.newest_use; }));
  }
}

}  // namespace blockdraft
