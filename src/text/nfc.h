// Unicode normalization form C.
#pragma once

#include <string>
#include <string_view>

namespace blockdraft {

// `text` (valid UTF-8) in NFC. Returns `text` itself where it is in that form as seen at a glance, otherwise a view of
// `storage`, which must outlive the result. Time n log n at worst, also for long runs of combining marks. Thread-safe.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace blockdraft
