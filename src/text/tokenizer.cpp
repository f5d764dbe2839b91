#include "blockdraft/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "text/nfc.h"
#include "text/tokenizer_model.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr std::string_view kFileName = "tokenizer.json";

// The way of one text through the model: memory that its parts share.
class Encoding {
 public:
  Encoding(const TokenizerModel& model, bool parse_special, std::vector<int32_t>& ids)
      : model_(model), parse_special_(parse_special), ids_(ids), words_(model.bpe) {}

  void add_text(std::string_view text) {
    model_.added_tokens.split(text, false, parse_special_, [&](const AddedTokens::Part& part) {
      part.id >= 0 ? ids_.push_back(part.id) : add_unnormalized(part.text);
    });
  }

 private:
  void add_unnormalized(std::string_view text) {
    std::string storage;
    const std::string_view normalized = model_.nfc ? to_nfc(text, storage) : text;
    model_.added_tokens.split(normalized, true, parse_special_, [&](const AddedTokens::Part& part) {
      part.id >= 0 ? ids_.push_back(part.id) : add_plain(part.text);
    });
  }

  void add_plain(std::string_view text) {
    model_.pre_tokenizer.cut(text, scratch_, [&](std::string_view word) { words_.encode(word, ids_); });
  }

  const TokenizerModel& model_;
  bool parse_special_;
  std::vector<int32_t>& ids_;
  WordEncoder words_;
  MatchScratch scratch_;
};

}  // namespace

std::vector<int32_t> TokenizerModel::encode(std::string_view text, const Tokenizer::EncodeOptions& options) const {
  if (bpe.vocabulary.size() == 0) return {};
  std::string valid;
  if (!is_utf8(text)) {
    append_as_utf8(valid, text);
    text = valid;
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + template_prefix.size() + template_suffix.size());
  if (options.add_special_tokens) ids = template_prefix;
  Encoding(*this, options.parse_special_tokens, ids).add_text(text);
  if (options.add_special_tokens) ids.insert(ids.end(), template_suffix.begin(), template_suffix.end());
  return ids;
}

std::string TokenizerModel::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) bytes.append(visible_bytes(id, skip_special));
  if (is_utf8(bytes)) return bytes;
  std::string text;
  append_as_utf8(text, bytes);
  return text;
}

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kFileName;
  BLOCKDRAFT_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  BLOCKDRAFT_ASSIGN(std::shared_ptr<const TokenizerModel> model, parse_tokenizer(text, path.string()));
  return Tokenizer(std::move(model));
}

Tokenizer Tokenizer::empty() { return Tokenizer(std::make_shared<const TokenizerModel>()); }

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return model_->encode(text, options);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return model_->encode(text, EncodeOptions()); }

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  return model_->decode(ids, skip_special);
}

std::string_view Tokenizer::token_bytes(int32_t id) const { return model_->bpe.vocabulary.bytes(id); }

bool Tokenizer::is_special(int32_t id) const { return model_->added_tokens.is_special(id); }

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  const Vocabulary& vocabulary = model_->bpe.vocabulary;
  for (const int32_t id : {model_->added_tokens.find(token), vocabulary.find(token), vocabulary.find_literal(token)}) {
    if (id >= 0) return id;
  }
  return std::nullopt;
}

int32_t Tokenizer::vocab_size() const { return model_->bpe.vocabulary.size(); }

}  // namespace blockdraft
