#include "text/tokenizer_file.h"

#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

// Passes events on to the builder of the document, save those inside model.vocab and model.merges.
class Handler : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;
  explicit Handler(TokenizerFile& file) : Base(file.document, false), file_(file) {}

  std::string problem;  // why a function returned false

  bool null() { return in_table() ? wrong("null") : Base::null(); }
  bool boolean(bool value) { return in_table() ? wrong("a boolean") : Base::boolean(value); }
  bool number_integer(int64_t value) {
    return in_table() ? wrong(fmt::format("{}", value)) : Base::number_integer(value);
  }
  bool number_float(double value, const std::string& text) {
    return in_table() ? wrong(text) : Base::number_float(value, text);
  }

  bool number_unsigned(uint64_t value) {
    if (!in_table()) return Base::number_unsigned(value);
    if (table_ != Table::vocab || value > static_cast<uint64_t>(kMaxTokenId)) return wrong(fmt::format("{}", value));
    const Status added = file_.vocabulary.add(token_, static_cast<int32_t>(value));
    return added.ok() || fail(fmt::format("key 'model.vocab' {}", added.error().message));
  }

  bool string(std::string& value) {
    if (!in_table()) return Base::string(value);
    if (table_ == Table::vocab) return wrong(in_quotes(value));
    if (!in_pair_) return merge_line(value);
    if (pair_size_ < 2) pair_[pair_size_] = value;
    ++pair_size_;
    return true;
  }

  bool key(std::string& name) {
    if (in_table()) {
      token_ = name;  // only model.vocab is an object; it checks for twins itself
      return true;
    }
    if (!keys_.back().insert(name).second)
      return fail(fmt::format("key {} occurs twice in one object", in_quotes(name)));
    if (depth_ == 1) top_key_ = name;
    if (depth_ == 2) model_key_ = name;
    return Base::key(name);
  }

  bool start_object(std::size_t count) {
    if (in_table()) return wrong("an object");
    if (at_model() && model_key_ == "vocab") return start(Table::vocab);
    if (!enter()) return false;
    keys_.emplace_back();
    return Base::start_object(count);
  }
  bool end_object() {
    if (in_table()) {
      table_ = Table::none;
      return true;
    }
    --depth_;
    keys_.pop_back();
    return Base::end_object();
  }

  bool start_array(std::size_t count) {
    if (in_table()) {
      if (table_ != Table::merges || in_pair_) return wrong("a list");
      in_pair_ = true;
      pair_size_ = 0;
      return true;
    }
    if (at_model() && model_key_ == "merges") return start(Table::merges);
    return enter() && Base::start_array(count);
  }
  bool end_array() {
    if (in_pair_) {
      in_pair_ = false;
      if (pair_size_ != 2) return wrong(fmt::format("a list of {}", pair_size_));
      return add_merge(pair_[0], pair_[1]);
    }
    if (in_table()) {
      table_ = Table::none;
      return true;
    }
    --depth_;
    return Base::end_array();
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    return fail(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  enum class Table { none, vocab, merges };

  bool in_table() const { return table_ != Table::none; }
  bool at_model() const { return depth_ == 2 && top_key_ == "model" && keys_.size() == 2; }

  bool start(Table table) {
    table_ = table;
    (table == Table::vocab ? file_.has_vocabulary : file_.has_merges) = true;
    return Base::null();
  }

  bool enter() {
    return ++depth_ <= kMaxJsonDepth || fail(fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth));
  }

  bool merge_line(const std::string& line) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) return wrong(in_quotes(line));
    return add_merge(std::string_view(line).substr(0, space), std::string_view(line).substr(space + 1));
  }

  bool add_merge(std::string_view left, std::string_view right) {
    if (file_.merges.size() == kMaxMerges)
      return fail(fmt::format("key 'model.merges' has over {} merges", kMaxMerges));
    file_.merges.add(left, right);
    return true;
  }

  bool fail(std::string text) {
    problem = std::move(text);
    return false;
  }

  bool wrong(std::string_view found) {
    if (table_ == Table::vocab) {
      return fail(fmt::format("key 'model.vocab' has {} for token {}, expected an id from 0 to {}", found,
                              in_quotes(token_), kMaxTokenId));
    }
    return fail(fmt::format("key 'model.merges' has {} as merge {}, expected two tokens", found, file_.merges.size()));
  }

  TokenizerFile& file_;
  int depth_ = 0;  // open objects and lists
  std::vector<std::unordered_set<std::string>> keys_;
  std::string top_key_;
  std::string model_key_;
  Table table_ = Table::none;
  std::string token_;
  bool in_pair_ = false;
  size_t pair_size_ = 0;
  std::string pair_[2];
};

}  // namespace

void MergeList::add(std::string_view left, std::string_view right) {
  text_.append(left).append(right);
  sizes_.push_back({static_cast<uint32_t>(left.size()), static_cast<uint32_t>(right.size())});
}

Result<TokenizerFile> parse_tokenizer_file(std::string_view text, std::string_view origin) {
  if (text.size() > kMaxTokenizerFileBytes) {
    return make_error(Code::limit_exceeded, "{}: has {} bytes, expected at most {}", origin, text.size(),
                      kMaxTokenizerFileBytes);
  }
  // The library takes a NUL for the end of the text and would let anything follow it.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return make_error(Code::corrupt_file, "{}: not valid JSON at byte {} (a NUL byte)", origin, nul);
  }
  TokenizerFile file;
  Handler handler(file);
  if (!Json::sax_parse(text, &handler)) return make_error(Code::corrupt_file, "{}: {}", origin, handler.problem);
  return file;
}

}  // namespace blockdraft
