// blockdraft-attention-speed: time and bytes a second of attention on a card, in replays of a CUDA graph over K/V
// larger than the cache.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "gpu_suite/card.h"
#include "ops/attention.h"

namespace blockdraft::test {
namespace {

struct Case {
  int32_t sequences;
  int32_t rows;  // of each
  int32_t context;
  int32_t num_heads = 32;
  int32_t num_kv_heads = 8;
  int32_t head_dim = 128;
};

constexpr int64_t kCacheBytes = int64_t{150} << 20;  // read between two uses of the same bytes

template <class T>
T* on_card(std::vector<Buffer>& memory, const std::vector<T>& values) {
  memory.push_back(Buffer::allocate_on(Card::device(), values.size() * sizeof(T), "speed").value());
  Card::device().copy_to_device(memory.back().data(), values.data(), values.size() * sizeof(T), "speed");
  return static_cast<T*>(memory.back().data());
}

std::vector<uint16_t> random_codes(int64_t count) {
  std::mt19937 generator(static_cast<uint32_t>(count));
  std::vector<uint16_t> codes(static_cast<size_t>(count));
  for (auto& code : codes) {  // about +-[0.25, 4)
    const auto bits = static_cast<uint32_t>(generator());
    code = static_cast<uint16_t>((bits & 0x8000) | ((125 + (bits >> 16) % 4) << 7) | (bits & 0x7f));
  }
  return codes;
}

void measure(const Case& c) {
  std::vector<Buffer> memory;
  CudaDevice& device = Card::device();
  const int32_t end = c.context + c.rows;
  const int32_t stride = (end + kPageSize - 1) / kPageSize;
  const int64_t page = int64_t{c.num_kv_heads} * kPageSize * c.head_dim;
  const int64_t bytes = int64_t{c.sequences} * stride * page * 2 * 2;
  const auto copies = static_cast<int32_t>(kCacheBytes / bytes + 1);
  const int32_t pages = stride * c.sequences * copies;

  memory.push_back(Buffer::allocate_on(device, static_cast<size_t>(pages * page * 2), "k").value());
  memory.push_back(Buffer::allocate_on(device, static_cast<size_t>(pages * page * 2), "v").value());
  PagedKvView kv{memory[0].data(), memory[1].data(), pages, c.num_kv_heads, c.head_dim, DType::bf16};
  const std::vector<uint16_t> some = random_codes(std::min<int64_t>(pages * page, 1 << 22));
  for (int64_t at = 0; at < pages * page; at += static_cast<int64_t>(some.size())) {
    const auto count = std::min<int64_t>(static_cast<int64_t>(some.size()), pages * page - at);
    device.copy_to_device(static_cast<uint16_t*>(kv.k) + at, some.data(), static_cast<size_t>(count) * 2, "k");
    device.copy_to_device(static_cast<uint16_t*>(kv.v) + at, some.data(), static_cast<size_t>(count) * 2, "v");
  }
  std::vector<int32_t> order(static_cast<size_t>(pages));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::mt19937 generator(1);
  std::shuffle(order.begin(), order.end(), generator);
  const int32_t* tables = on_card(memory, order);

  std::vector<int32_t> positions;
  std::vector<int32_t> first_row{0};
  for (int32_t s = 0; s < c.sequences; ++s) {
    for (int32_t r = 0; r < c.rows; ++r) positions.push_back(c.context + r);
    first_row.push_back(static_cast<int32_t>(positions.size()));
  }
  const auto rows = static_cast<int32_t>(positions.size());
  const Matrix q = Matrix::random(generator, rows, int64_t{c.num_heads} * c.head_dim);
  std::vector<float> values(q.row(0), q.row(0) + q.rows() * q.columns());
  float* q_on_card = on_card(memory, values);
  float* out = on_card(memory, values);
  Arena arena(Buffer::allocate_on(device, size_t{512} << 20, "arena").value());
  Context context{.arena = &arena, .cuda = &device};
  AttentionArgs args{.out = view_f32(out, q.view().shape),
                     .q = view_f32(q_on_card, q.view().shape),
                     .kv = kv,
                     .batch = {.num_rows = rows,
                               .num_sequences = c.sequences,
                               .positions = on_card(memory, positions),
                               .first_row = on_card(memory, first_row),
                               .page_tables = tables,
                               .page_table_stride = stride},
                     .num_heads = c.num_heads,
                     .scale = 0.088f};
  const auto status = device.synchronize();
  if (!status) std::printf("%s\n", status.error().message.c_str());

  // A graph goes through all copies, a few times if they are few.
  const int32_t calls = std::max(copies, 20) / copies * copies;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal);
  for (int32_t i = 0; i < calls; ++i) {
    args.batch.page_tables = tables + int64_t{i % copies} * c.sequences * stride;
    attention(context, args);
  }
  cudaStreamEndCapture(device.stream(), &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaEvent_t begin;
  cudaEvent_t done;
  cudaEventCreate(&begin);
  cudaEventCreate(&done);
  std::vector<float> times;
  for (int i = 0; i < 12; ++i) {
    cudaEventRecord(begin, device.stream());
    cudaGraphLaunch(executable, device.stream());
    cudaEventRecord(done, device.stream());
    const auto replay = device.synchronize();
    if (!replay) std::printf("%s\n", replay.error().message.c_str());
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, done);
    if (i >= 2) times.push_back(ms * 1000.0f / static_cast<float>(calls));
  }
  std::sort(times.begin(), times.end());
  const double us = static_cast<double>(times[times.size() / 2]);
  const double kv_bytes = 4.0 * c.sequences * end * c.num_kv_heads * c.head_dim;
  std::printf("%4d x %3d rows, context %6d, heads %d/%d of %d: %8.2f us, %6.2f MB, %7.1f GB/s\n", c.sequences, c.rows,
              c.context, c.num_heads, c.num_kv_heads, c.head_dim, us, kv_bytes / 1e6, kv_bytes / us / 1e3);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace blockdraft::test

int main(int argc, char** argv) {
  using blockdraft::test::Card;
  if (const auto status = Card::open(); !status) {
    std::printf("skipped: %s\n", status.error().message.c_str());
    return 77;
  }
  if (argc >= 4) {  // one case: sequences, rows, context
    blockdraft::test::measure({std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])});
    Card::close();
    return 0;
  }
  for (const int32_t rows : {1, 4, 16}) {
    for (const int32_t context : {256, 1024, 4096, 8192, 16384, 32768, 65536}) {
      blockdraft::test::measure({1, rows, context});
    }
  }
  for (const int32_t sequences : {4, 8, 16}) blockdraft::test::measure({sequences, 16, 1024});
  blockdraft::test::measure({8, 8, 8192});
  blockdraft::test::measure({64, 1, 1024});
  blockdraft::test::measure({1, 256, 4096});
  blockdraft::test::measure({1, 16, 32768, 32, 8, 64});
  blockdraft::test::measure({1, 16, 32768, 32, 8, 256});
  Card::close();
  return 0;
}
