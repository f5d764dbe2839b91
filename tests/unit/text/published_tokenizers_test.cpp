// Ids and texts that the Hugging Face implementation gives for real tokenizers. That of the demo is in the repository;
// those of Qwen3 and Llama 3.1 were published by others and are read from a folder of their own, where there is one:
// BLOCKDRAFT_TOKENIZER_DATA, with expected.json and NAME.tokenizer.json.gz.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/json.h"
#include "blockdraft/tokenizer.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = BLOCKDRAFT_SOURCE_DIR;

fs::path data_folder() {
  const char* chosen = std::getenv("BLOCKDRAFT_TOKENIZER_DATA");
  return chosen != nullptr ? fs::path(chosen) : kSource / "../shared/data/tokenizers";
}

std::string gunzip(const fs::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path.string());
  std::string text;
  std::string buffer(1 << 20, 0);
  int count = 0;
  while ((count = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    text.append(buffer, 0, static_cast<size_t>(count));
  }
  gzclose(file);
  if (count < 0) throw std::runtime_error("cannot decompress " + path.string());
  return text;
}

// Every text, with and without what the template adds, and back.
void expect_cases(const Tokenizer& tokenizer, const Json& cases) {
  ASSERT_FALSE(cases.empty());
  for (const Json& entry : cases) {
    const auto text = entry.at("text").get<std::string>();
    SCOPED_TRACE(text);
    const auto ids = entry.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(tokenizer.encode(text, {.add_special_tokens = false}),
              entry.at("ids_no_special").get<std::vector<int32_t>>());
    // The texts of the file were decoded without leaving special tokens out, from the ids without the template's.
    EXPECT_EQ(tokenizer.decode(entry.at("ids_no_special").get<std::vector<int32_t>>(), false),
              entry.at("decoded").get<std::string>());
  }
}

Json parse_file(const fs::path& path) {
  auto document = parse_json(read_file(path), path.string());
  if (!document) throw std::runtime_error(document.error().message);
  return *std::move(document);
}

TEST(PublishedTokenizers, Demo) {
  const auto tokenizer = Tokenizer::open(kSource / "demo/pycode-14m");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_cases(*tokenizer, parse_file(kSource / "tests/unit/text/data/pycode_expected.json"));
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
}

struct Published {
  const char* name;
  int32_t vocab_size;
};

class PublishedTokenizer : public testing::TestWithParam<Published> {};

TEST_P(PublishedTokenizer, GivesTheExpectedIds) {
  const std::string name = GetParam().name;
  const fs::path folder = data_folder();
  const fs::path file = folder / (name + ".tokenizer.json.gz");
  if (!fs::exists(file)) {
    GTEST_SKIP() << file << " is not there; BLOCKDRAFT_TOKENIZER_DATA names the folder of published tokenizers";
  }
  const TempDir model;
  write_file(model / "tokenizer.json", gunzip(file));
  const auto tokenizer = Tokenizer::open(model.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_cases(*tokenizer, parse_file(folder / "expected.json").at(name));
  EXPECT_EQ(tokenizer->vocab_size(), GetParam().vocab_size);
}

INSTANTIATE_TEST_SUITE_P(All, PublishedTokenizer,
                         testing::Values(Published{"qwen3", 151669}, Published{"llama3_1", 128256}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace blockdraft
