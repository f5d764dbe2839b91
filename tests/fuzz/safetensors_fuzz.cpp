// Input: 8 bytes little-endian, the size that the file claims to have; then the beginning of the file.
#include <cstring>

#include "checkpoint/safetensors.h"
#include "expect.h"

namespace blockdraft {
namespace {

uint64_t load(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = (value << 8) | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

void store(std::span<std::byte> bytes, uint64_t value) {
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xffu);
}

// Whatever is accepted must be safe to use: every tensor inside the data, sizes as the shapes say, no byte unused.
void check_entries(const TensorEntries& entries, uint64_t data_bytes) {
  uint64_t total = 0;
  for (const auto& [name, entry] : entries) {
    CHECK(entry.begin <= entry.end && entry.end <= data_bytes);
    int64_t size = static_cast<int64_t>(size_of(entry.dtype));
    for (const int64_t extent : entry.shape) {
      CHECK(extent >= 0);
      CHECK(!__builtin_mul_overflow(size, extent, &size));
    }
    CHECK(entry.end - entry.begin == static_cast<uint64_t>(size));
    total += static_cast<uint64_t>(size);
  }
  CHECK(total == data_bytes);
}

void check(std::span<const std::byte> file, uint64_t claimed_size) {
  const auto headers = parse_safetensors_header(file, claimed_size, "file", TensorData::optional);
  if (!headers) check_message(headers.error());
  const auto entries = parse_safetensors_header(file, claimed_size, "file");
  if (!entries) return check_message(entries.error());
  CHECK(headers.ok());  // what can be loaded can be looked at
  check_entries(*entries, claimed_size - 8 - load(file));
}

}  // namespace
}  // namespace blockdraft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blockdraft;
  const auto input = std::as_bytes(std::span(data, size));
  if (size < 8) return 0;
  const uint64_t claimed_size = load(input);
  const auto file = input.subspan(8);
  check(file, claimed_size);
  if (file.size() < 8) return 0;
  // Once more with a length that fits: otherwise every change of the header's size would end at the first check.
  std::vector<std::byte> fitted(file.begin(), file.end());
  const uint64_t data_bytes = claimed_size - 8 - load(file);
  store(fitted, file.size() - 8);
  check(fitted, file.size() + data_bytes);
  return 0;
}
