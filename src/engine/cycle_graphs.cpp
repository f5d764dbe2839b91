#include "engine/cycle_graphs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "tensor/cuda_device.h"
#include "tensor/host_link.h"

namespace blockdraft {
namespace {

// While it exists, the card skips what a graph has.
class Repeating {
 public:
  explicit Repeating(CudaDevice& device) : device_(device) { device_.set_repeats(true); }
  ~Repeating() { device_.set_repeats(false); }
  Repeating(const Repeating&) = delete;
  Repeating& operator=(const Repeating&) = delete;

 private:
  CudaDevice& device_;
};

}  // namespace

Status CycleGraphs::run(Context& context, const Shape& shape, const std::function<Status()>& work) {
  // While nothing is queued anyway, there is nothing to capture.
  if (shape.empty() || context.cuda->skips()) return work();
  const auto place = entries_.find(shape);
  if (place == entries_.end()) {
    BLOCKDRAFT_TRY(work());
    make_room();
    Entry& entry = entries_[shape];
    entry.sent_bytes = context.link->sent_bytes();
    entry.newest_use = ++uses_;
    return {};
  }
  Entry& entry = place->second;
  entry.newest_use = ++uses_;
  if (entry.is_refused) return work();
  if (!entry.graph) {
    BLOCKDRAFT_TRY(capture(context, entry, work));
  } else {
    const Repeating repeating(*context.cuda);
    queue(context, entry, work);
  }
  entry.graph->launch(*context.cuda);
  return {};
}

// All that the link sends goes ahead of the work, in one copy.
void CycleGraphs::queue(Context& context, const Entry& entry, const std::function<Status()>& work) {
  context.link->let_sending_wait();
  context.link->queue_sending(entry.sent_bytes);
  const Status queued = work();
  context.link->queue_receiving();
  context.link->send_no_more();
  CHECK(queued.ok());  // what can fail is no graph
  CHECK(context.link->sent_bytes() == entry.sent_bytes);
}

// A cycle that cannot be made a graph (the card may be full) is an error; the next of its shape is queued as it is.
Status CycleGraphs::capture(Context& context, Entry& entry, const std::function<Status()>& work) {
  entry.is_refused = true;
  CudaGraph::begin(*context.cuda);
  queue(context, entry, work);
  BLOCKDRAFT_ASSIGN(entry.graph, CudaGraph::end(*context.cuda));
  entry.is_refused = false;
  ++num_captured_;
  return {};
}

void CycleGraphs::make_room() {
  while (entries_.size() >= kMostGraphs) {
    entries_.erase(std::ranges::min_element(entries_, {}, [](const auto& item) { return item.second.newest_use; }));
  }
}

}  // namespace blockdraft
