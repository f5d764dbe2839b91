// Input: a first byte that chooses, then the text of a tokenizer.json (even) or text for the demo's tokenizer (odd).
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "blockdraft/tokenizer.h"
#include "expect.h"
#include "text/tokenizer_model.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr std::string_view kText =
    "def f(x):\n    return  x**2 # caf\u00E9 e\u0301 \u4E2D\u6587 123 <s> it's\r\n\xFF aaaaaaaaaaaaaaa!";

std::string joined(const TokenizerModel& model, const std::vector<int32_t>& ids) {
  std::string bytes;
  for (const int32_t id : ids) bytes.append(model.visible_bytes(id, false));
  return bytes;
}

// Whatever the file is: an error in one line, or a tokenizer whose ids are tokens.
void parse_file(std::string_view text) {
  const auto model = parse_tokenizer(text, "tokenizer.json");
  if (!model) return check_message(model.error());
  const std::vector<int32_t> ids = (*model)->encode(kText, {});
  for (const int32_t id : ids) CHECK((*model)->bpe.vocabulary.has(id));
  const std::string decoded = (*model)->decode(ids, false);
  CHECK(is_utf8(decoded));
  std::string expected;
  append_as_utf8(expected, joined(**model, ids));
  CHECK(decoded == expected);
}

const Tokenizer& demo() {
  static const Tokenizer tokenizer = [] {
    auto opened = Tokenizer::open(BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m");
    CHECK(opened.ok());
    return *std::move(opened);
  }();
  return tokenizer;
}

// Decoding undoes encoding, in one piece and streamed.
void encode_text(std::string_view text) {
  std::string valid;
  append_as_utf8(valid, text);
  for (const bool parse_special : {true, false}) {
    const std::vector<int32_t> ids =
        demo().encode(text, {.add_special_tokens = false, .parse_special_tokens = parse_special});
    CHECK(demo().decode(ids, false) == valid);
    Detokenizer detokenizer(demo(), false);
    std::string streamed;
    for (const int32_t id : ids) {
      const std::string piece = detokenizer.push(id);
      CHECK(is_utf8(piece));
      streamed += piece;
    }
    CHECK(streamed + detokenizer.finish() == valid);
  }
}

}  // namespace
}  // namespace blockdraft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] % 2 == 0 ? blockdraft::parse_file(text) : blockdraft::encode_text(text);
  return 0;
}
