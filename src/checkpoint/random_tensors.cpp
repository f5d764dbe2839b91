#include "checkpoint/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

constexpr int64_t kValuesOfBlock = 8;            // 16 bits of each of four words
constexpr int64_t kBlocksOfTask = 1 << 13;       // 128 KiB
constexpr float kVectorSpread = 0.1f;            // of what has one dimension
constexpr float kUnit = 1.0f / (INT16_MAX + 1);  // 16 bits as a number from -1 to 1

struct Law {
  float center;
  float spread;  // values lie in center +- spread
};

Law law_of(std::string_view name, const Shape& shape) {
  if (shape.rank() <= 1) return {name.ends_with(".bias") ? 0.0f : 1.0f, kVectorSpread};
  const int64_t in_features = shape.dims().back();
  return {0.0f, std::sqrt(3.0f / static_cast<float>(std::max<int64_t>(1, in_features)))};
}

struct Stream {
  uint64_t seed;
  uint32_t tensor;  // its number
};

void fill_blocks(const Stream& stream, const Law& law, int64_t first_block, std::span<uint16_t> out) {
  const PhiloxKey key = {static_cast<uint32_t>(stream.seed), static_cast<uint32_t>(stream.seed >> 32)};
  for (size_t done = 0; done < out.size(); done += kValuesOfBlock, ++first_block) {
    const auto block = static_cast<uint64_t>(first_block);
    const PhiloxCounter words =
        philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream.tensor, 0}, key);
    const size_t count = std::min<size_t>(kValuesOfBlock, out.size() - done);
    for (size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<int16_t>(words[i / 2] >> (16 * (i % 2)));
      out[done + i] = bf16_from_float(law.center + law.spread * kUnit * static_cast<float>(bits));
    }
  }
}

void fill(const Stream& stream, const Law& law, std::span<uint16_t> out) {
  constexpr int64_t kValuesOfTask = kBlocksOfTask * kValuesOfBlock;
  const int64_t tasks = (static_cast<int64_t>(out.size()) + kValuesOfTask - 1) / kValuesOfTask;
  ThreadPool pool(tasks > 1 ? 0 : 1);
  pool.parallel_for(tasks, [&](int64_t task, int) {
    const auto first = static_cast<size_t>(task * kValuesOfTask);
    const size_t count = std::min(static_cast<size_t>(kValuesOfTask), out.size() - first);
    fill_blocks(stream, law, task * kBlocksOfTask, out.subspan(first, count));
  });
}

}  // namespace

Status RandomTensors::make(const std::string& name, const Shape& shape) {
  if (tensors_.contains(name)) return {};
  const auto count = static_cast<size_t>(shape.num_elements());
  BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(count * sizeof(uint16_t), name.c_str()));
  fill({seed_, static_cast<uint32_t>(tensors_.size())}, law_of(name, shape),
       {static_cast<uint16_t*>(memory.data()), count});
  StoredTensor tensor{
      .dtype = DType::bf16, .data = static_cast<const std::byte*>(memory.data()), .size_bytes = memory.size_bytes()};
  tensor.shape.assign(shape.dims().begin(), shape.dims().end());
  tensors_.emplace(name, std::move(tensor));
  memory_.push_back(std::move(memory));
  return {};
}

size_t RandomTensors::size_bytes() const {
  size_t total = 0;
  for (const Buffer& memory : memory_) total += memory.size_bytes();
  return total;
}

void RandomTensors::forget_values() {
  for (auto& [name, tensor] : tensors_) tensor.data = nullptr;
  memory_.clear();
}

}  // namespace blockdraft
