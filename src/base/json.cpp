#include "base/json.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"

namespace blockdraft {
namespace {

// Builds the document like nlohmann's own handler, and stops at what that one lets pass: depth and duplicate keys.
class StrictHandler : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;
  explicit StrictHandler(Json& document) : Base(document, false) {}

  bool start_object(std::size_t elements) {
    keys_.emplace_back();
    return enter() && Base::start_object(elements);
  }
  bool end_object() {
    keys_.pop_back();
    --depth_;
    return Base::end_object();
  }
  bool start_array(std::size_t elements) { return enter() && Base::start_array(elements); }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }
  bool key(std::string& name) {
    if (!keys_.back().insert(name).second) {
      problem_ = fmt::format("key '{}' occurs twice in one object", printable(name));
      return false;
    }
    return Base::key(name);
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    problem_ = fmt::format("not valid JSON at byte {} ({})", position, reason(error.what()));
    return false;
  }

  const std::string& problem() const { return problem_; }

 private:
  bool enter() {
    if (++depth_ <= kMaxJsonDepth) return true;
    problem_ = fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth);
    return false;
  }

  // The library's text is "[json.exception...] parse error at line 1, column 2: syntax error ...": keep the end.
  static std::string reason(std::string_view what) {
    const size_t colon = what.find(": ");
    std::string text = printable(colon == std::string_view::npos ? what : what.substr(colon + 2));
    // It quotes the text as it stands, invalid UTF-8 included: a message must be text itself.
    for (char& c : text) {
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
    return text;
  }

  int depth_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view origin) {
  // The library takes a NUL for the end of the text and would let anything follow it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return make_error(Code::corrupt_file, "{}: not valid JSON at byte {} (a NUL byte)", origin, nul);
  }
  Json document;
  StrictHandler handler(document);
  if (!Json::sax_parse(text, &handler)) {
    return make_error(Code::corrupt_file, "{}: {}", origin, handler.problem());
  }
  return document;
}

const char* json_type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "not a JSON value";
}

std::string printable(std::string_view text) {
  const bool cut = text.size() > kMaxExcerpt;
  if (cut) {
    size_t end = kMaxExcerpt;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
    text = text.substr(0, end);
  }
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (cut) line += "...";
  return line;
}

std::string json_excerpt(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) {
    std::string list = "[";
    for (size_t i = 0; i < value.size() && list.size() <= kMaxExcerpt; ++i) {
      list += (i == 0 ? "" : ", ") + json_excerpt(value[i]);
    }
    return printable(list + "]");
  }
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace blockdraft
