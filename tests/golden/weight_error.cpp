// blockdraft-weight-error TARGET PROMPTS: what another weight format changes in a target's logits.
//
// The text is each prompt and what the reference weights write after it, greedily. Both targets read it, so that every
// position has the same tokens before it in both; compared are the choice and the logits after each position.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "blockdraft/tokenizer.h"
#include "engine/token_engine.h"
#include "golden/teacher_force.h"
#include "nn/weight_store.h"

namespace blockdraft::golden {
namespace {

constexpr size_t kRowsOfPass = 64;
constexpr int64_t kMaxPositions = 2048;

struct Options {
  std::string target, prompts;
  std::string weights = "int8", against = "stored";
  int64_t tokens = 96;
  size_t first = 0;  // 0: all prompts
  double at_least = 0;
  int threads = 0;
};

const std::map<std::string, LoadFormat> kFormats{{"stored", LoadFormat::stored},
                                                 {"bf16", LoadFormat::bf16},
                                                 {"fp8", LoadFormat::fp8},
                                                 {"nvfp4", LoadFormat::nvfp4},
                                                 {"int8", LoadFormat::int8}};

// What was found over all positions.
struct Errors {
  int64_t positions = 0, agreeing = 0;
  double error = 0;      // sum over positions and ids of |difference|
  double deviation = 0;  // sum over positions of the standard deviation of the reference's logits
  double largest = 0;

  void add(const float* expected, const float* found, int64_t count) {
    ++positions;
    if (std::max_element(expected, expected + count) - expected == std::max_element(found, found + count) - found) {
      ++agreeing;
    }
    double sum = 0, squares = 0, errors = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(expected[i]);
      const double difference = std::abs(static_cast<double>(found[i]) - value);
      sum += value;
      squares += value * value;
      errors += difference;
      largest = std::max(largest, difference);
    }
    const auto n = static_cast<double>(count);
    error += errors / n;
    deviation += std::sqrt(squares / n - sum / n * (sum / n));
  }
  double agreement() const { return static_cast<double>(agreeing) / static_cast<double>(positions); }
};

Result<std::vector<std::string>> read_prompts(const Options& options) {
  std::ifstream file(options.prompts);
  std::vector<std::string> prompts;
  for (std::string line; std::getline(file, line) && (options.first == 0 || prompts.size() < options.first);) {
    if (line.empty()) continue;
    BLOCKDRAFT_ASSIGN(const Json object, parse_json(line, options.prompts));
    if (!object.is_object() || !object.contains("prompt") || !object["prompt"].is_string()) {
      return make_error(Code::corrupt_file, "{}: a line has no string 'prompt'", options.prompts);
    }
    prompts.push_back(object["prompt"].get<std::string>());
  }
  if (prompts.empty()) return make_error(Code::not_found, "{}: no prompts", options.prompts);
  return prompts;
}

Result<std::unique_ptr<Target>> load(const Options& options, const std::string& format, ThreadPool& threads) {
  BLOCKDRAFT_ASSIGN(const TargetConfig config, read_target_config(options.target));
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa());
  return load_target({options.target}, config,
                     {.max_sequences = 1, .max_positions = kMaxPositions, .max_rows = kPrefillRows},
                     {.format = kFormats.at(format), .isa = isa, .threads = &threads});
}

// Prompts and greedy continuations, by the reference.
Result<std::vector<std::vector<int32_t>>> texts_of(const Options& options, Target& target, CpuIsa isa,
                                                   int64_t num_choices, const Tokenizer& tokenizer) {
  BLOCKDRAFT_ASSIGN(const auto prompts, read_prompts(options));
  std::vector<TokenRequest> requests;
  for (const std::string& prompt : prompts) {
    TokenRequest& request = requests.emplace_back();
    request.prompt_ids = tokenizer.encode(prompt);
    request.max_tokens = options.tokens;
    request.stop_ids = target.config().eos_token_ids;
  }
  BLOCKDRAFT_ASSIGN(
      const auto engine,
      TokenEngine::open(
          target, nullptr,
          {.threads = options.threads, .isa = isa, .max_positions = kMaxPositions, .num_choices = num_choices}));
  BLOCKDRAFT_ASSIGN(const std::vector<TokenResult> results, engine->run(requests));
  std::vector<std::vector<int32_t>> texts;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<int32_t>& text = texts.emplace_back(requests[i].prompt_ids);
    text.insert(text.end(), results[i].ids.begin(), results[i].ids.end());
  }
  return texts;
}

Result<Errors> measure(const Options& options) {
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa());
  BLOCKDRAFT_ASSIGN(const Tokenizer tokenizer, Tokenizer::open(options.target));
  ThreadPool threads(options.threads);
  BLOCKDRAFT_ASSIGN(const auto reference, load(options, options.against, threads));
  BLOCKDRAFT_ASSIGN(const auto target, load(options, options.weights, threads));
  const int64_t columns = reference->lm_head().out_features;
  const int64_t num_choices = std::min<int64_t>(columns, tokenizer.vocab_size());
  BLOCKDRAFT_ASSIGN(const auto texts, texts_of(options, *reference, isa, num_choices, tokenizer));

  constexpr auto kRows = static_cast<int64_t>(kRowsOfPass);
  const size_t of_rows = arena_bytes_f32(kRows * (columns + 2 * reference->config().transformer.hidden_size));
  BLOCKDRAFT_ASSIGN(const auto device,
                    test::DeviceContext::create(nullptr, threads, isa,
                                                2 * of_rows + reference->scratch_bytes(threads.num_threads())));
  Errors errors;
  for (const std::vector<int32_t>& text : texts) {
    BLOCKDRAFT_ASSIGN(const Outputs expected, teacher_force(*device, *reference, text, {}, kRowsOfPass));
    BLOCKDRAFT_ASSIGN(const Outputs found, teacher_force(*device, *target, text, {}, kRowsOfPass));
    for (size_t row = 0; row < text.size(); ++row) {
      const size_t at = row * static_cast<size_t>(columns);
      errors.add(expected.logits.data() + at, found.logits.data() + at, num_choices);
    }
  }
  return errors;
}

int run(const Options& options) {
  const auto errors = measure(options);
  if (!errors) {
    fmt::print(stderr, "blockdraft-weight-error: {}\n", errors.error().message);
    return 1;
  }
  const auto n = static_cast<double>(errors->positions);
  fmt::print(
      "{} against {}: {} positions, greedy choice agrees at {:.2f} %, mean |logit error| {:.4f} ({:.2f} % of the "
      "logits' standard deviation, {:.3f}), largest {:.3f}\n",
      options.weights, options.against, errors->positions, 100 * errors->agreement(), errors->error / n,
      100 * errors->error / errors->deviation, errors->deviation / n, errors->largest);
  if (options.weights != options.against && errors->error == 0) {
    fmt::print(stderr, "blockdraft-weight-error: no logit differs, so both were the same weights\n");
    return 1;
  }
  return errors->agreement() >= options.at_least ? 0 : 1;
}

}  // namespace
}  // namespace blockdraft::golden

int main(int argc, char** argv) {
  using blockdraft::golden::kFormats;
  CLI::App app("What another weight format changes in a target's greedy choices and logits, on texts of its own.");
  blockdraft::golden::Options options;
  std::vector<std::string> names;
  for (const auto& [name, format] : kFormats) names.push_back(name);
  app.add_option("TARGET", options.target, "The target's folder")->required()->check(CLI::ExistingDirectory);
  app.add_option("PROMPTS", options.prompts, "A JSON object with \"prompt\" a line")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--weights", options.weights, "The format to look at")->check(CLI::IsMember(names));
  app.add_option("--against", options.against, "The reference's format")->check(CLI::IsMember(names));
  app.add_option("--tokens", options.tokens, "Tokens after each prompt")->check(CLI::Range(0, 1024));
  app.add_option("--first", options.first, "Only so many prompts; 0: all");
  app.add_option("--at-least", options.at_least, "Exit 1 if a smaller part of the choices agrees");
  app.add_option("--threads", options.threads, "0: one per physical core")->check(CLI::Range(0, 1024));
  CLI11_PARSE(app, argc, argv);
  return blockdraft::golden::run(options);
}
