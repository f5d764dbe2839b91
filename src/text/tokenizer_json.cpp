// From tokenizer.json to TokenizerModel: every key is read, checked or refused; none is passed over.
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/json_part.h"
#include "text/nfc.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_model.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr size_t kMaxSteps = 32;             // of a Sequence
constexpr size_t kMaxAddedTokens = 1 << 16;  // published files have up to some thousands

template <class T>
Status status_of(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

// ByteLevel has the same three keys wherever it stands.
struct ByteLevelKeys {
  bool add_prefix_space = false;
  bool use_regex = true;
};

Result<ByteLevelKeys> read_byte_level(const JsonPart& part) {
  BLOCKDRAFT_TRY(part.expect_object({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  ByteLevelKeys keys;
  BLOCKDRAFT_ASSIGN(keys.add_prefix_space, part.at("add_prefix_space").boolean());
  if (!part.at("trim_offsets").is_absent()) BLOCKDRAFT_TRY(status_of(part.at("trim_offsets").boolean()));
  if (!part.at("use_regex").is_absent()) {
    BLOCKDRAFT_ASSIGN(keys.use_regex, part.at("use_regex").boolean());
  }
  return keys;
}

// The parts of a Sequence under `list_key`, or the part itself.
Result<std::vector<JsonPart>> steps_of(const JsonPart& part, std::string_view list_key) {
  BLOCKDRAFT_ASSIGN(const std::string type, part.at("type").string());
  if (type != "Sequence") return std::vector<JsonPart>{part};
  BLOCKDRAFT_TRY(part.expect_object({"type", list_key}));
  const JsonPart list = part.at(list_key);
  BLOCKDRAFT_ASSIGN(const size_t size, list.list_size());
  if (size > kMaxSteps) {
    return make_error(Code::limit_exceeded, "{} has {} steps, expected at most {}", list.origin(), size, kMaxSteps);
  }
  std::vector<JsonPart> steps;
  for (size_t i = 0; i < size; ++i) steps.push_back(list.at(i));
  return steps;
}

Result<bool> read_normalizer(const JsonPart& part) {
  if (part.is_null()) return false;
  BLOCKDRAFT_ASSIGN(const std::vector<JsonPart> steps, steps_of(part, "normalizers"));
  for (const JsonPart& step : steps) {
    BLOCKDRAFT_ASSIGN(const std::string type, step.at("type").string());
    if (type != "NFC") return step.at("type").wrong("'NFC'", Code::unsupported);
    BLOCKDRAFT_TRY(step.expect_object({"type"}));
  }
  return !steps.empty();
}

Status read_split(const JsonPart& part, PreTokenizer& out) {
  BLOCKDRAFT_TRY(part.expect_object({"type", "pattern", "behavior", "invert"}));
  BLOCKDRAFT_ASSIGN(const std::string behavior, part.at("behavior").string());
  if (behavior != "Isolated") return part.at("behavior").wrong("'Isolated'", Code::unsupported);
  BLOCKDRAFT_ASSIGN(const bool invert, part.at("invert").boolean());
  if (invert) return part.at("invert").wrong("false", Code::unsupported);
  const JsonPart pattern = part.at("pattern");
  BLOCKDRAFT_TRY(pattern.expect_object({"Regex"}));
  BLOCKDRAFT_ASSIGN(const std::string regex, pattern.at("Regex").string());
  BLOCKDRAFT_ASSIGN(Regex compiled, Regex::compile(regex, pattern.at("Regex").origin()));
  out.splits.push_back(std::move(compiled));
  return {};
}

Status read_digits(const JsonPart& part, PreTokenizer& out) {
  BLOCKDRAFT_TRY(part.expect_object({"type", "individual_digits"}));
  BLOCKDRAFT_ASSIGN(const bool individual, part.at("individual_digits").boolean());
  BLOCKDRAFT_ASSIGN(Regex compiled, Regex::compile(individual ? "\\p{N}" : "\\p{N}+", part.origin()));
  out.splits.push_back(std::move(compiled));
  return {};
}

Result<PreTokenizer> read_pre_tokenizer(const JsonPart& part) {
  if (part.is_null()) return part.wrong("a pre-tokenizer that ends with ByteLevel", Code::unsupported);
  BLOCKDRAFT_ASSIGN(const std::vector<JsonPart> steps, steps_of(part, "pretokenizers"));
  PreTokenizer out;
  for (size_t i = 0; i < steps.size(); ++i) {
    const JsonPart& step = steps[i];
    BLOCKDRAFT_ASSIGN(const std::string type, step.at("type").string());
    const bool is_last = i + 1 == steps.size();
    if (is_last != (type == "ByteLevel")) {
      return step.at("type").wrong(
          is_last ? "'ByteLevel' as the last step" : "'Split' or 'Digits' before the last step", Code::unsupported);
    }
    if (type == "Split") {
      BLOCKDRAFT_TRY(read_split(step, out));
    } else if (type == "Digits") {
      BLOCKDRAFT_TRY(read_digits(step, out));
    } else if (type == "ByteLevel") {
      BLOCKDRAFT_ASSIGN(const ByteLevelKeys keys, read_byte_level(step));
      out.add_prefix_space = keys.add_prefix_space;
      out.prefix_space_after = out.splits.size();
      if (!keys.use_regex) continue;
      BLOCKDRAFT_ASSIGN(Regex pattern, Regex::compile(kByteLevelPattern, step.origin()));
      out.splits.push_back(std::move(pattern));
    } else {
      return step.at("type").wrong("'Split', 'Digits' or 'ByteLevel'", Code::unsupported);
    }
  }
  if (steps.empty()) return part.wrong("a pre-tokenizer that ends with ByteLevel", Code::unsupported);
  return out;
}

Status read_decoder(const JsonPart& part) {
  if (part.is_null()) return part.wrong("the decoder 'ByteLevel'", Code::unsupported);
  BLOCKDRAFT_ASSIGN(const std::string type, part.at("type").string());
  if (type != "ByteLevel") return part.at("type").wrong("'ByteLevel'", Code::unsupported);
  return status_of(read_byte_level(part));  // its keys say nothing about decoding
}

Status read_model_keys(const JsonPart& model, TokenizerModel& out) {
  BLOCKDRAFT_TRY(model.expect_object({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                      "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  // Files from before the key "type" are all BPE.
  if (!model.at("type").is_absent()) {
    BLOCKDRAFT_ASSIGN(const std::string type, model.at("type").string());
    if (type != "BPE") return model.at("type").wrong("'BPE'", Code::unsupported);
  }
  BLOCKDRAFT_TRY(model.at("dropout").expect_inactive(0.0, "null"));
  BLOCKDRAFT_TRY(model.at("unk_token").expect_inactive("", "null"));
  BLOCKDRAFT_TRY(model.at("continuing_subword_prefix").expect_inactive("", "null or an empty string"));
  BLOCKDRAFT_TRY(model.at("end_of_word_suffix").expect_inactive("", "null or an empty string"));
  BLOCKDRAFT_TRY(model.at("fuse_unk").expect_inactive(false, "false"));
  BLOCKDRAFT_TRY(model.at("byte_fallback").expect_inactive(false, "false"));
  if (!model.at("ignore_merges").is_null()) {
    BLOCKDRAFT_ASSIGN(out.bpe.ignore_merges, model.at("ignore_merges").boolean());
  }
  return {};
}

bool occurs_in_utf8(int byte) { return byte != 0xC0 && byte != 0xC1 && byte < 0xF5; }

Status set_byte_ids(const JsonPart& vocab, BpeModel& bpe) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    int32_t& id = bpe.byte_ids[static_cast<size_t>(byte)];
    id = bpe.vocabulary.find(std::string_view(&c, 1));
    if (id < 0 && occurs_in_utf8(byte)) {
      return make_error(Code::unsupported, "{} has no token for byte 0x{:02X}, expected {}, as byte-level BPE needs",
                        vocab.origin(), byte, in_quotes(byte_spelling(static_cast<unsigned char>(byte))));
    }
  }
  return {};
}

Status set_merges(const JsonPart& merges, const MergeList& list, BpeModel& bpe) {
  bpe.merges.reserve(list.size());
  uint32_t rank = 0;
  return list.for_each([&](const MergeList::Entry& entry) -> Status {
    std::array<int32_t, 3> ids{};
    const std::array<std::string_view, 3> tokens = {entry.left, entry.right, entry.both};
    for (size_t i = 0; i < tokens.size(); ++i) {
      ids[i] = bpe.vocabulary.find_spelling(tokens[i]);
      if (ids[i] >= 0) continue;
      return make_error(Code::corrupt_file,
                        "{} has {} and {} as merge {}, and {} is not in model.vocab, expected tokens", merges.origin(),
                        in_quotes(entry.left), in_quotes(entry.right), rank, in_quotes(tokens[i]));
    }
    if (!bpe.merges.add(ids[0], ids[1], {rank, ids[2]})) {
      return make_error(Code::corrupt_file, "{} has {} and {} as merge {} and earlier, expected unique merges",
                        merges.origin(), in_quotes(entry.left), in_quotes(entry.right), rank);
    }
    ++rank;
    return {};
  });
}

Result<AddedToken> read_added_token(const JsonPart& part) {
  BLOCKDRAFT_TRY(part.expect_object({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  BLOCKDRAFT_ASSIGN(const int64_t id, part.at("id").integer(0, kMaxTokenId));
  token.id = static_cast<int32_t>(id);
  BLOCKDRAFT_ASSIGN(token.content, part.at("content").string());
  if (token.content.empty() || token.content.size() > AddedTokens::kMaxContentBytes) {
    return part.at("content").wrong(fmt::format("1 to {} bytes", AddedTokens::kMaxContentBytes), Code::unsupported);
  }
  BLOCKDRAFT_ASSIGN(token.single_word, part.at("single_word").boolean());
  BLOCKDRAFT_ASSIGN(token.lstrip, part.at("lstrip").boolean());
  BLOCKDRAFT_ASSIGN(token.rstrip, part.at("rstrip").boolean());
  BLOCKDRAFT_ASSIGN(token.normalized, part.at("normalized").boolean());
  BLOCKDRAFT_ASSIGN(token.special, part.at("special").boolean());
  return token;
}

// An added token is one of the vocabulary, with its id, or a new one with an id of its own.
Status add_to_vocabulary(const JsonPart& part, const AddedToken& token, Vocabulary& vocabulary) {
  const int32_t listed = vocabulary.find_spelling(token.content);
  if (listed == token.id) return {};
  if (listed >= 0) {
    return part.at("id").wrong(fmt::format("{}, the id of {} in model.vocab", listed, in_quotes(token.content)),
                               Code::mismatch);
  }
  if (vocabulary.has(token.id)) {
    return part.at("id").wrong(fmt::format("an id other than that of {}", in_quotes(vocabulary.bytes(token.id))),
                               Code::mismatch);
  }
  vocabulary.add_unlisted(token.content, token.id);
  return {};
}

Status read_added_tokens(const JsonPart& list, TokenizerModel& out) {
  if (!list.is_null()) {
    BLOCKDRAFT_ASSIGN(const size_t size, list.list_size());
    if (size > kMaxAddedTokens) {
      return make_error(Code::limit_exceeded, "{} has {} tokens, expected at most {}", list.origin(), size,
                        kMaxAddedTokens);
    }
    for (size_t i = 0; i < size; ++i) {
      BLOCKDRAFT_ASSIGN(const AddedToken token, read_added_token(list.at(i)));
      std::string storage;
      const std::string_view pattern = token.normalized && out.nfc ? to_nfc(token.content, storage) : token.content;
      const Status added = out.added_tokens.add(token, pattern);
      if (!added) return make_error(added.error().code, "{} {}", list.origin(), added.error().message);
      BLOCKDRAFT_TRY(add_to_vocabulary(list.at(i), token, out.bpe.vocabulary));
    }
  }
  return out.added_tokens.finish();
}

// Appends the ids of one special token of a template.
Status append_template_ids(const JsonPart& special_tokens, const JsonPart& name_part, const Vocabulary& vocabulary,
                           std::vector<int32_t>& out) {
  BLOCKDRAFT_ASSIGN(const std::string name, name_part.string());
  const JsonPart token = special_tokens.at(name);
  if (token.is_absent()) return name_part.wrong("a key of special_tokens");
  BLOCKDRAFT_TRY(token.expect_object({"id", "ids", "tokens"}));
  const JsonPart ids = token.at("ids");
  BLOCKDRAFT_ASSIGN(const size_t size, ids.list_size());
  if (size > kMaxSteps) return ids.wrong(fmt::format("at most {} ids", kMaxSteps), Code::limit_exceeded);
  for (size_t i = 0; i < size; ++i) {
    BLOCKDRAFT_ASSIGN(const int64_t id, ids.at(i).integer(0, kMaxTokenId));
    if (!vocabulary.has(static_cast<int32_t>(id))) return ids.at(i).wrong("the id of a token", Code::mismatch);
    out.push_back(static_cast<int32_t>(id));
  }
  return {};
}

// Only `single` is for a text of its own; `pair` joins two texts, which nothing here does.
Status read_template(const JsonPart& part, TokenizerModel& out) {
  BLOCKDRAFT_TRY(part.expect_object({"type", "single", "pair", "special_tokens"}));
  const JsonPart single = part.at("single");
  BLOCKDRAFT_ASSIGN(const size_t size, single.list_size());
  if (size > kMaxSteps) return single.wrong(fmt::format("at most {} pieces", kMaxSteps), Code::limit_exceeded);
  bool has_text = false;
  for (size_t i = 0; i < size; ++i) {
    const JsonPart piece = single.at(i);
    BLOCKDRAFT_TRY(piece.expect_object({"SpecialToken", "Sequence"}));
    const JsonPart special = piece.at("SpecialToken");
    const JsonPart sequence = piece.at("Sequence");
    if (special.is_absent() == sequence.is_absent()) return piece.wrong("one of SpecialToken and Sequence");
    if (!special.is_absent()) {
      BLOCKDRAFT_TRY(special.expect_object({"id", "type_id"}));
      BLOCKDRAFT_TRY(append_template_ids(part.at("special_tokens"), special.at("id"), out.bpe.vocabulary,
                                         has_text ? out.template_suffix : out.template_prefix));
      continue;
    }
    BLOCKDRAFT_TRY(sequence.expect_object({"id", "type_id"}));
    BLOCKDRAFT_ASSIGN(const std::string id, sequence.at("id").string());
    if (id != "A" || has_text) return sequence.at("id").wrong("'A', once", Code::unsupported);
    has_text = true;
  }
  if (!has_text) return single.wrong("a list with the Sequence 'A'", Code::unsupported);
  return {};
}

Status read_post_processor(const JsonPart& part, TokenizerModel& out) {
  if (part.is_null()) return {};
  BLOCKDRAFT_ASSIGN(const std::vector<JsonPart> steps, steps_of(part, "processors"));
  bool has_template = false;
  for (const JsonPart& step : steps) {
    BLOCKDRAFT_ASSIGN(const std::string type, step.at("type").string());
    if (type == "ByteLevel") {
      BLOCKDRAFT_TRY(status_of(read_byte_level(step)));  // about offsets only
    } else if (type == "TemplateProcessing" && !has_template) {
      BLOCKDRAFT_TRY(read_template(step, out));
      has_template = true;
    } else {
      return step.at("type").wrong("'ByteLevel' or one 'TemplateProcessing'", Code::unsupported);
    }
  }
  return {};
}

Status read_root(const JsonPart& root, TokenizerFile& file, TokenizerModel& out) {
  BLOCKDRAFT_TRY(root.expect_object({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                     "post_processor", "decoder", "model"}));
  BLOCKDRAFT_TRY(root.at("version").expect_inactive("1.0", "'1.0'"));
  BLOCKDRAFT_TRY(root.at("truncation").expect_inactive(nullptr, "null"));
  BLOCKDRAFT_TRY(root.at("padding").expect_inactive(nullptr, "null"));
  const JsonPart model = root.at("model");
  BLOCKDRAFT_TRY(read_model_keys(model, out));
  if (!file.has_vocabulary) return model.at("vocab").wrong("an object");
  if (!file.has_merges) return model.at("merges").wrong("a list");
  out.bpe.vocabulary = std::move(file.vocabulary);
  BLOCKDRAFT_TRY(set_byte_ids(model.at("vocab"), out.bpe));
  BLOCKDRAFT_TRY(set_merges(model.at("merges"), file.merges, out.bpe));
  BLOCKDRAFT_ASSIGN(out.nfc, read_normalizer(root.at("normalizer")));
  BLOCKDRAFT_TRY(read_added_tokens(root.at("added_tokens"), out));
  BLOCKDRAFT_ASSIGN(out.pre_tokenizer, read_pre_tokenizer(root.at("pre_tokenizer")));
  BLOCKDRAFT_TRY(read_post_processor(root.at("post_processor"), out));
  return read_decoder(root.at("decoder"));
}

}  // namespace

Result<std::shared_ptr<const TokenizerModel>> parse_tokenizer(std::string_view text, std::string_view origin) {
  BLOCKDRAFT_ASSIGN(TokenizerFile file, parse_tokenizer_file(text, origin));
  auto model = std::make_shared<TokenizerModel>();
  const Json document = std::move(file.document);
  if (!document.is_object()) {
    return make_error(Code::corrupt_file, "{}: is {}, expected an object", origin, json_type_name(document));
  }
  BLOCKDRAFT_TRY(read_root(JsonPart(&document, std::string(origin), ""), file, *model));
  return std::shared_ptr<const TokenizerModel>(std::move(model));
}

}  // namespace blockdraft
