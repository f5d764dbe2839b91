#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/json.h"
#include "blockdraft/tokenizer.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples = R"(Examples:
  printf 'def main():' | blockdraft tokenize --target demo/pycode-14m
  printf '0 326 286' | blockdraft tokenize --target demo/pycode-14m --decode
)";

struct TokenizeFlags {
  CommonFlags common;
  ModelFlags models;
  bool decode = false;
  bool no_special = false;
};

std::string read_stdin() { return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}; }

// As whitespace-separated numbers become a JSON list, one reader serves both ways of writing ids.
std::string as_json_list(const std::string& text) {
  std::string list = "[";
  bool in_number = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space && !in_number && list.size() > 1) list += ',';
    if (!space) list += c;
    in_number = !space;
  }
  return list + "]";
}

Result<int32_t> id_from(const Json& value, int32_t vocab_size) {
  const bool known = value.is_number_integer() && value >= 0 && value < vocab_size;
  if (known) return value.get<int32_t>();
  return make_error(Code::invalid_argument, "stdin: {} is no token id, expected a whole number from 0 to {}",
                    json_excerpt(value), vocab_size - 1);
}

Result<std::vector<int32_t>> parse_ids(const std::string& text, int32_t vocab_size) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && (text[first] == '[' || text[first] == '{');
  auto parsed = parse_json(is_json ? text : as_json_list(text), "stdin");
  if (!parsed) {
    return make_error(Code::invalid_argument,
                      "{}; --decode takes ids separated by spaces, a JSON list or {{\"ids\": [...]}}",
                      parsed.error().message);
  }
  const Json& list = parsed->is_object() && parsed->contains("ids") ? (*parsed)["ids"] : *parsed;
  if (!list.is_array()) {
    return make_error(Code::invalid_argument, "stdin: found {}, expected a list of ids or {{\"ids\": [...]}}",
                      json_type_name(list));
  }
  std::vector<int32_t> ids;
  for (const Json& value : list) {
    BLOCKDRAFT_ASSIGN(const int32_t id, id_from(value, vocab_size));
    ids.push_back(id);
  }
  return ids;
}

Result<int> decode_ids(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  BLOCKDRAFT_ASSIGN(const std::vector<int32_t> ids, parse_ids(read_stdin(), tokenizer.vocab_size()));
  const std::string text = tokenizer.decode(ids);
  if (flags.common.json) {
    write_json({{"text", text}});
  } else {
    write_out(text);
  }
  return kExitOk;
}

Result<int> encode_text(const TokenizeFlags& flags, const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = tokenizer.encode(read_stdin(), {.add_special_tokens = !flags.no_special});
  if (flags.common.json) {
    write_json({{"ids", ids}});
    return kExitOk;
  }
  std::string line;
  for (const int32_t id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
  write_out(line + "\n");
  return kExitOk;
}

Result<int> run_tokenize(const TokenizeFlags& flags) {
  BLOCKDRAFT_TRY(apply_on_cpu(flags.common, "tokenize"));
  BLOCKDRAFT_ASSIGN(const Tokenizer tokenizer, Tokenizer::open(flags.models.target));
  return flags.decode ? decode_ids(flags, tokenizer) : encode_text(flags, tokenizer);
}

}  // namespace

Command add_tokenize(CLI::App& program) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* app = program.add_subcommand("tokenize", "Turn text on stdin into the target's token ids, or back");
  add_target_flag(*app, flags->models);
  CLI::Option* decode = app->add_flag(
      "--decode", flags->decode, "Ids on stdin (separated by spaces, or JSON) into text; special tokens give none");
  app->add_flag("--no-special", flags->no_special, "Without the tokens that the template adds, such as begin-of-text")
      ->excludes(decode);
  add_common_flags(*app, flags->common);
  app->footer(kExamples);
  return {app, [flags] { return run_tokenize(*flags); }};
}

}  // namespace blockdraft
