#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "tensor/shape.h"

namespace blockdraft {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxRank = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

template <class... Args>
Error corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(Code::corrupt_file, format, std::forward<Args>(args)...);
}

uint64_t load_little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) value = (value << 8) | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

// The text of the header, padding included. Only lengths are checked here.
Result<std::string_view> header_text(std::span<const std::byte> bytes, size_t file_size_bytes,
                                     std::string_view origin) {
  if (file_size_bytes < kLengthBytes || bytes.size() < kLengthBytes) {
    return corrupt("{}: the file has {} bytes, expected at least the {} of the header length", origin,
                   std::min(file_size_bytes, bytes.size()), kLengthBytes);
  }
  const uint64_t length = load_little_endian(bytes);
  const size_t available = std::min(file_size_bytes, bytes.size()) - kLengthBytes;
  if (length > kMaxHeaderBytes) {
    return corrupt("{}: header length is {} bytes, expected at most {}", origin, length, kMaxHeaderBytes);
  }
  if (length > available) {
    return corrupt("{}: header length is {} bytes, but only {} bytes follow it in the file", origin, length, available);
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (text.empty() || text.front() != '{') {
    return corrupt("{}: the header does not begin with '{{': not a safetensors file", origin);
  }
  return text;
}

Status check_metadata(const Json& metadata, std::string_view origin) {
  if (!metadata.is_object()) {
    return corrupt("{}: {} is {}, expected an object of strings", origin, kMetadataKey, json_type_name(metadata));
  }
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      return corrupt("{}: {} entry '{}' is {}, expected a string", origin, kMetadataKey, printable(key),
                     json_type_name(value));
    }
  }
  return {};
}

// The entry of one tensor while it is read; every error names file and tensor.
class EntryReader {
 public:
  EntryReader(const Json& fields, std::string_view origin, const std::string& name)
      : fields_(fields), origin_(origin), name_(name) {}

  Result<TensorEntry> read() const {
    BLOCKDRAFT_TRY(check_keys());
    TensorEntry entry;
    BLOCKDRAFT_ASSIGN(entry.dtype, read_dtype());
    BLOCKDRAFT_ASSIGN(entry.shape, read_shape());
    BLOCKDRAFT_TRY(read_offsets(entry));
    BLOCKDRAFT_TRY(check_size(entry));
    return entry;
  }

 private:
  std::string where() const { return fmt::format("{}: tensor '{}'", origin_, printable(name_)); }

  Status check_keys() const {
    if (!fields_.is_object()) return corrupt("{} is {}, expected an object", where(), json_type_name(fields_));
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(key)) return corrupt("{} has no '{}'", where(), key);
    }
    for (const auto& [key, value] : fields_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return corrupt("{} has the unknown key '{}', expected dtype, shape and data_offsets only", where(),
                       printable(key));
      }
    }
    return {};
  }

  Result<DType> read_dtype() const {
    const Json& value = fields_.at("dtype");
    if (!value.is_string()) return corrupt("{} has {} as dtype, expected a string", where(), json_type_name(value));
    const auto& text = value.get_ref<const std::string&>();
    if (const std::optional<DType> dtype = dtype_from_name(text)) return *dtype;
    return make_error(Code::unsupported,
                      "{} has dtype '{}', expected F32, F16, BF16, F8_E4M3, F64, BOOL or an integer type that "
                      "blockdraft reads (I64, I32, I16, I8, U8)",
                      where(), printable(text));
  }

  Result<std::vector<int64_t>> read_shape() const {
    const Json& list = fields_.at("shape");
    if (!list.is_array()) return corrupt("{} has {} as shape, expected a list", where(), json_type_name(list));
    if (list.size() > kMaxRank) {
      return corrupt("{} has {} dimensions, expected at most {}", where(), list.size(), kMaxRank);
    }
    std::vector<int64_t> shape;
    for (const Json& extent : list) {
      BLOCKDRAFT_ASSIGN(const uint64_t value, read_unsigned(extent, "shape"));
      shape.push_back(static_cast<int64_t>(value));
    }
    return shape;
  }

  Status read_offsets(TensorEntry& entry) const {
    const Json& list = fields_.at("data_offsets");
    if (!list.is_array() || list.size() != 2) {
      return corrupt("{} has data_offsets {}, expected a list of two integers", where(), json_excerpt(list));
    }
    BLOCKDRAFT_ASSIGN(entry.begin, read_unsigned(list[0], "data_offsets"));
    BLOCKDRAFT_ASSIGN(entry.end, read_unsigned(list[1], "data_offsets"));
    if (entry.begin > entry.end) {
      return corrupt("{} has data_offsets [{}, {}]: the end comes before the beginning", where(), entry.begin,
                     entry.end);
    }
    return {};
  }

  // No larger than int64_t holds, so that extents and offsets fit both signs.
  Result<uint64_t> read_unsigned(const Json& value, const char* key) const {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMax) {
      return corrupt("{} has {} in {}, expected an integer from 0 to {}", where(), json_excerpt(value), key, kMax);
    }
    return value.get<uint64_t>();
  }

  Status check_size(const TensorEntry& entry) const {
    const std::optional<uint64_t> expected = byte_count(entry);
    if (!expected) {
      return corrupt("{} has shape {} of {}: its size overflows", where(), to_string(entry.shape),
                     name_of(entry.dtype));
    }
    if (entry.end - entry.begin != *expected) {
      return corrupt("{} has {} bytes in data_offsets [{}, {}], expected {} for shape {} of {}", where(),
                     entry.end - entry.begin, entry.begin, entry.end, *expected, to_string(entry.shape),
                     name_of(entry.dtype));
    }
    return {};
  }

  // An extent of 0 does not excuse the others: whoever multiplies a part of the extents must not overflow either.
  static std::optional<uint64_t> byte_count(const TensorEntry& entry) {
    int64_t product = static_cast<int64_t>(size_of(entry.dtype));
    bool empty = false;
    for (const int64_t extent : entry.shape) {
      empty = empty || extent == 0;
      if (__builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product)) return std::nullopt;
    }
    return empty ? 0 : static_cast<uint64_t>(product);
  }

  const Json& fields_;
  std::string_view origin_;
  const std::string& name_;
};

Status refuse_header_alone(const TensorEntries& entries, size_t data_bytes, std::string_view origin) {
  size_t expected = 0;
  for (const auto& [name, entry] : entries) expected = std::max(expected, entry.end);
  if (data_bytes > 0 || expected == 0) return {};
  return corrupt(
      "{}: the file ends behind its header, expected {} bytes of tensor data: it can be inspected, not loaded", origin,
      expected);
}

// The byte ranges must tile [0, data_bytes): neither overlap nor gap, nothing after the last. A file that may end
// early may be shorter than that.
Status check_layout(const TensorEntries& entries, size_t data_bytes, std::string_view origin, TensorData data) {
  const bool may_end_early = data == TensorData::optional;
  if (!may_end_early) BLOCKDRAFT_TRY(refuse_header_alone(entries, data_bytes, origin));
  std::vector<const TensorEntries::value_type*> order;
  order.reserve(entries.size());
  for (const auto& item : entries) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  size_t position = 0;
  const std::string* previous = nullptr;
  for (const auto* item : order) {
    const auto& [name, entry] = *item;
    if (entry.end > data_bytes && !may_end_early) {
      return corrupt("{}: tensor '{}' ends at byte {} of the data, the file has {}", origin, printable(name), entry.end,
                     data_bytes);
    }
    if (entry.begin < position) {
      return corrupt("{}: tensor '{}' begins at byte {} of the data and overlaps tensor '{}', which ends at {}", origin,
                     printable(name), entry.begin, printable(*previous), position);
    }
    if (entry.begin > position) {
      return corrupt("{}: tensor '{}' begins at byte {} of the data, expected {}: no tensor holds the bytes between",
                     origin, printable(name), entry.begin, position);
    }
    position = entry.end;
    previous = &name;
  }
  if (position < data_bytes || (position > data_bytes && !may_end_early)) {
    return corrupt("{}: the tensors end at byte {} of the data, the file has {}", origin, position, data_bytes);
  }
  return {};
}

}  // namespace

int64_t StoredTensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Result<TensorEntries> parse_safetensors_header(std::span<const std::byte> bytes, size_t file_size_bytes,
                                               std::string_view origin, TensorData data) {
  BLOCKDRAFT_ASSIGN(const std::string_view text, header_text(bytes, file_size_bytes, origin));
  BLOCKDRAFT_ASSIGN(const Json header, parse_json(text, origin));
  TensorEntries entries;
  for (const auto& [name, fields] : header.items()) {
    if (name == kMetadataKey) {
      BLOCKDRAFT_TRY(check_metadata(fields, origin));
      continue;
    }
    BLOCKDRAFT_ASSIGN(TensorEntry entry, EntryReader(fields, origin, name).read());
    entries.emplace_hint(entries.end(), name, std::move(entry));
  }
  BLOCKDRAFT_TRY(check_layout(entries, file_size_bytes - kLengthBytes - text.size(), origin, data));
  return entries;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path, TensorData data) {
  BLOCKDRAFT_ASSIGN(MappedFile mapping, MappedFile::open(path));
  const std::span<const std::byte> bytes = mapping.bytes();
  BLOCKDRAFT_ASSIGN(TensorEntries entries, parse_safetensors_header(bytes, bytes.size(), path.string(), data));
  SafetensorsFile file(path, std::move(mapping));
  file.header_bytes_ = kLengthBytes + load_little_endian(bytes);
  const size_t data_bytes = bytes.size() - file.header_bytes_;
  file.has_data_ = std::ranges::all_of(entries, [&](const auto& item) { return item.second.end <= data_bytes; });
  const std::byte* first = file.has_data_ ? bytes.data() + file.header_bytes_ : nullptr;
  for (auto& [name, entry] : entries) {
    const std::byte* begin = first == nullptr ? nullptr : first + entry.begin;
    StoredTensor tensor{entry.dtype, std::move(entry.shape), begin, entry.end - entry.begin};
    file.tensors_.emplace_hint(file.tensors_.end(), name, std::move(tensor));
  }
  return file;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace blockdraft
