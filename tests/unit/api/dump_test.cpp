// Dumped cycles of the demo pair, recomputed from what the files hold by the definitions of the operators.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "blockdraft/engine.h"
#include "checkpoint/config_reader.h"
#include "checkpoint/safetensors.h"
#include "support/decoder.h"
#include "support/naive_target.h"
#include "support/naive_weights.h"
#include "support/op_context.h"
#include "support/reference_ops.h"
#include "support/take.h"
#include "support/temp_dir.h"
#include "tensor/recorder.h"

namespace blockdraft::test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::string kTarget = BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m";
constexpr int64_t kHidden = 384;
constexpr int64_t kVocab = 4160;
constexpr int64_t kRealIds = 4096;
constexpr int64_t kMaskId = 4100;
constexpr int64_t kHeads = 2;  // of keys and values
constexpr int64_t kHeadDim = 64;
constexpr double kEps = 1e-6;
constexpr double kTolerance = 1e-4;  // of a row's largest magnitude
const std::vector<int32_t> kTapLayers = {1, 4, 6};

std::string drafter_of(const std::string& family) { return kTarget + "-" + family; }
bool is_shifted(const std::string& family) { return family == "dspark"; }

std::set<std::string> file_names(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// One dumped cycle.
class Dumped {
 public:
  Dumped(const std::filesystem::path& folder, const std::string& name)
      : file_(take(SafetensorsFile::open(folder / (name + ".safetensors")))),
        json_(take(read_json_file(folder / (name + ".json")))) {}

  const Json& operator[](const char* key) const { return json_[key]; }
  const SafetensorsFile& file() const { return file_; }
  int64_t position() const { return json_["position"].get<int64_t>(); }
  std::vector<int64_t> shape(const std::string& name) const { return file_.find(name)->shape; }
  int64_t first_position(const std::string& name) const {
    return json_["tensors"][name]["first_position"].get<int64_t>();
  }
  std::vector<int32_t> ids(const std::string& name) const { return numbers<int32_t>(name, DType::i32); }
  // Row `index` of a matrix; the row of a tensor of higher rank is flat.
  std::vector<float> row(const std::string& name, int64_t index) const {
    const std::vector<float> all = numbers<float>(name, DType::f32);
    const auto columns = static_cast<int64_t>(all.size()) / shape(name)[0];
    return {all.begin() + index * columns, all.begin() + (index + 1) * columns};
  }

 private:
  template <class T>
  std::vector<T> numbers(const std::string& name, DType dtype) const {
    const StoredTensor* tensor = file_.find(name);
    if (tensor == nullptr || tensor->dtype != dtype) throw std::runtime_error("no tensor " + name);
    std::vector<T> values(static_cast<size_t>(tensor->num_elements()));
    std::memcpy(values.data(), tensor->data, tensor->size_bytes);
    return values;
  }

  SafetensorsFile file_;
  Json json_;
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

void expect_near(const std::vector<float>& found, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double magnitude = 0;
  double error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    magnitude = std::max(magnitude, std::abs(expected[i]));
    error = std::max(error, std::abs(static_cast<double>(found[i]) - expected[i]));
  }
  EXPECT_LE(error, kTolerance * magnitude) << what;
}

std::vector<double> normed(const std::vector<double>& x, const NaiveMatrix& weight) {
  return reference_rms_norm(x.data(), weight.values.data(), static_cast<int64_t>(x.size()), kEps);
}

template <class T>
int64_t best(const std::vector<T>& values, int64_t count) {
  return std::max_element(values.begin(), values.begin() + count) - values.begin();
}

class Dump : public ::testing::TestWithParam<std::string> {
 protected:
  Dump() : weights_(naive_weights(drafter_of(GetParam()))), target_(naive_weights(kTarget)) {}

  Generation decode(std::vector<DumpOptions::Range> cycles, int64_t max_tokens) {
    Engine engine = take(Engine::open({.target = kTarget,
                                       .drafter = drafter_of(GetParam()),
                                       .threads = 2,
                                       .cpu_isa = name_of(float32_isa()),
                                       .dump = {.folder = folder_.path(), .cycles = std::move(cycles)}}));
    prompt_ids_ = engine.tokenizer().encode(kPrompt);
    return take(engine.generate({.prompt = kPrompt, .max_tokens = max_tokens}));
  }

  void expect_facts(const Dumped& dumped, const Generation& generation, size_t cycle);
  void expect_names_and_shapes(const Dumped& dumped, int64_t width);
  void expect_context(const Dumped& dumped);
  void expect_block(const Dumped& dumped);
  void expect_choices(const Dumped& dumped);

  static constexpr const char* kPrompt = "def merge_sort(items):\n";
  TempDir folder_;
  std::map<std::string, NaiveMatrix> weights_;  // of the drafter
  std::map<std::string, NaiveMatrix> target_;
  std::vector<int32_t> prompt_ids_;
};

// The text up to the anchor, and what became of the drafts.
void Dump::expect_facts(const Dumped& dumped, const Generation& generation, size_t cycle) {
  std::vector<int32_t> text = prompt_ids_;
  text.insert(text.end(), generation.ids.begin(), generation.ids.end());
  const auto length = static_cast<size_t>(dumped.position()) + 1;
  const std::vector<int32_t> committed = dumped.ids("committed");
  EXPECT_THAT(dumped.ids("tokens"), ElementsAreArray(std::span(text).first(length)));
  EXPECT_THAT(committed, ElementsAreArray(std::span(text).subspan(length, committed.size())));
  EXPECT_EQ(dumped["anchor_id"], text[length - 1]);
  const CycleRecord& record = generation.cycles[cycle];
  EXPECT_EQ(dumped["cycle"], cycle);
  EXPECT_EQ(dumped["asked"], record.asked);
  EXPECT_EQ(dumped["width"], record.width);
  EXPECT_EQ(dumped["accepted"], record.accepted);
  EXPECT_EQ(committed.size(), static_cast<size_t>(record.produced));
  std::vector<int32_t> drafts = dumped.ids("drafts");
  ASSERT_EQ(drafts.size(), static_cast<size_t>(record.asked));
  const auto accepted = static_cast<size_t>(record.accepted);
  EXPECT_THAT(std::span(drafts).first(accepted), ElementsAreArray(std::span(committed).first(accepted)));
  if (accepted < drafts.size()) {
    EXPECT_NE(drafts[accepted], committed[accepted]);
  }
}

void Dump::expect_names_and_shapes(const Dumped& dumped, int64_t width) {
  struct Expected {
    std::vector<int64_t> shape;
    int64_t first_position;
  };
  const int64_t s = dumped.position();
  const int64_t block = is_shifted(GetParam()) ? width : width + 1;
  const int64_t new_rows = dumped.shape("taps")[0];
  std::map<std::string, Expected> expected{{"tokens", {{s + 1}, 0}},
                                           {"committed", {dumped.shape("committed"), s + 1}},
                                           {"taps", {{new_rows, 3 * kHidden}, s - new_rows}},
                                           {"context_features", {{new_rows, kHidden}, s - new_rows}},
                                           {"block_input", {{block, kHidden}, s}},
                                           {"hidden", {{block, kHidden}, s}},
                                           {"logits", {{width, kVocab}, s + 1}},
                                           {"drafts", {{width}, s + 1}}};
  for (const char* layer : {"0", "1"}) {
    expected[std::string("context_k.") + layer] = {{s, kHeads, kHeadDim}, 0};
    expected[std::string("context_v.") + layer] = {{s, kHeads, kHeadDim}, 0};
    expected[std::string("layer_output.") + layer] = {{block, kHidden}, s};
  }
  if (GetParam() == "dflash2") {
    const Json config = take(read_config_json(drafter_of(GetParam())));
    const auto k = config["dflash_config"]["selector_top_k"].get<int64_t>();
    expected["candidates"] = {{width, k}, s + 1};
    expected["selector_scores"] = {{width, k}, s + 1};
  }
  if (GetParam() == "dspark") {
    expected["corrected_logits"] = {{width, kVocab}, s + 1};
    expected["confidence_logits"] = {{width, 1}, s + 1};
  }
  EXPECT_EQ(dumped.file().tensors().size(), expected.size());
  EXPECT_EQ(dumped["tensors"].size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_NE(dumped.file().find(name), nullptr) << name;
    const Json& described = dumped["tensors"][name];
    EXPECT_EQ(dumped.shape(name), values.shape) << name;
    EXPECT_EQ(described["shape"].get<std::vector<int64_t>>(), values.shape) << name;
    EXPECT_EQ(described["dtype"], name_of(dumped.file().find(name)->dtype)) << name;
    EXPECT_EQ(described["first_position"], values.first_position) << name;
    EXPECT_FALSE(described["op"].get<std::string>().empty()) << name;
    EXPECT_THAT(described["spec"].get<std::string>(), ::testing::MatchesRegex("[1-6]\\.[0-9]")) << name;
  }
}

// Taps from a naive target; features, keys and values from the taps.
void Dump::expect_context(const Dumped& dumped) {
  const std::vector<int32_t> tokens = dumped.ids("tokens");
  const std::vector<Rows> stream = NaiveTarget(kTarget).residual_stream(tokens);
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < kHeadDim / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(1e4, -2.0 * static_cast<double>(i) / kHeadDim)));
  }
  for (int64_t r = 0; r < dumped.shape("taps")[0]; ++r) {
    const int64_t position = dumped.first_position("taps") + r;
    SCOPED_TRACE("position " + std::to_string(position));
    std::vector<double> taps;
    for (const int32_t layer : kTapLayers) {
      const auto& row = stream[static_cast<size_t>(layer) + 1][static_cast<size_t>(position)];
      taps.insert(taps.end(), row.begin(), row.end());
    }
    const std::vector<float> u = dumped.row("taps", r);
    expect_near(u, taps, "taps");
    const std::vector<double> c =
        normed(naive_product(weights_.at("fc.weight"), doubles(u)), weights_.at("hidden_norm.weight"));
    expect_near(dumped.row("context_features", r), c, "context_features");
    for (const std::string layer : {"0", "1"}) {
      const std::string attention = "layers." + layer + ".self_attn.";
      expect_near(dumped.row("context_v." + layer, position),
                  naive_product(weights_.at(attention + "v_proj.weight"), c), "context_v");
      const std::vector<double> k = naive_product(weights_.at(attention + "k_proj.weight"), c);
      std::vector<double> expected;
      for (int64_t head = 0; head < kHeads; ++head) {
        const std::vector<double> one(k.begin() + head * kHeadDim, k.begin() + (head + 1) * kHeadDim);
        const std::vector<double> n = normed(one, weights_.at(attention + "k_norm.weight"));
        const std::vector<double> turned = reference_rope(n.data(), inv_freq.data(), kHeadDim / 2, position, 1.0);
        expected.insert(expected.end(), turned.begin(), turned.end());
      }
      expect_near(dumped.row("context_k." + layer, position), expected, "context_k");
    }
  }
}

void Dump::expect_block(const Dumped& dumped) {
  const NaiveMatrix& embeddings = target_.at("model.embed_tokens.weight");
  const int64_t rows = dumped.shape("hidden")[0];
  const int64_t skipped = is_shifted(GetParam()) ? 0 : 1;
  for (int64_t r = 0; r < rows; ++r) {
    SCOPED_TRACE("block row " + std::to_string(r));
    const float* row = embeddings.row(r == 0 ? dumped["anchor_id"].get<int64_t>() : kMaskId);
    EXPECT_THAT(dumped.row("block_input", r), ElementsAreArray(row, static_cast<size_t>(kHidden)));
    expect_near(dumped.row("hidden", r), normed(doubles(dumped.row("layer_output.1", r)), weights_.at("norm.weight")),
                "hidden");
    if (r < skipped) continue;
    expect_near(dumped.row("logits", r - skipped), naive_product(embeddings, doubles(dumped.row("hidden", r))),
                "logits");
  }
}

void Dump::expect_choices(const Dumped& dumped) {
  const std::vector<int32_t> drafts = dumped.ids("drafts");
  int64_t previous = dumped["anchor_id"].get<int64_t>();
  for (int64_t i = 0; i < static_cast<int64_t>(drafts.size()); ++i) {
    SCOPED_TRACE("draft " + std::to_string(i));
    const int32_t draft = drafts[static_cast<size_t>(i)];
    const std::vector<float> logits = dumped.row("logits", i);
    if (GetParam() == "dflash") {
      EXPECT_EQ(draft, best(logits, kRealIds));
    } else if (GetParam() == "dflash2") {
      const std::vector<float> scores = dumped.row("selector_scores", i);
      const std::vector<int32_t> all = dumped.ids("candidates");
      const auto k = static_cast<int64_t>(scores.size());
      EXPECT_EQ(all[static_cast<size_t>(i * k)], best(logits, kRealIds));
      EXPECT_EQ(draft, all[static_cast<size_t>(i * k + best(scores, k))]);
    } else {
      const std::vector<float> corrected = dumped.row("corrected_logits", i);
      const float* embedded = weights_.at("markov_head.markov_w1.weight").row(previous);
      const NaiveMatrix& w2 = weights_.at("markov_head.markov_w2.weight");
      std::vector<double> expected = naive_product(w2, {embedded, embedded + w2.columns});
      for (size_t v = 0; v < expected.size(); ++v) expected[v] += static_cast<double>(logits[v]);
      expect_near(corrected, expected, "corrected_logits");
      EXPECT_EQ(draft, best(corrected, kRealIds));
    }
    previous = draft;
  }
}

TEST_P(Dump, IsWhatTheDefinitionsGive) {
  const Generation generation = decode({{2, 3}, {5, 5}}, 40);
  ASSERT_GT(generation.cycles.size(), 6u);
  std::set<std::string> expected;
  for (const std::string cycle : {"000002", "000003", "000005"}) {
    for (const std::string kind : {".safetensors", ".json"}) expected.insert("cycle-" + cycle + kind);
  }
  EXPECT_EQ(file_names(folder_.path()), expected);
  for (const size_t cycle : {size_t{2}, size_t{5}}) {
    SCOPED_TRACE("cycle " + std::to_string(cycle));
    const Dumped dumped(folder_.path(), "cycle-00000" + std::to_string(cycle));
    expect_facts(dumped, generation, cycle);
    expect_names_and_shapes(dumped, generation.cycles[cycle].width);
    expect_context(dumped);
    expect_block(dumped);
    expect_choices(dumped);
  }
}

TEST_P(Dump, TheFirstCycleHoldsThePrompt) {
  const Generation generation = decode({}, 4);
  EXPECT_EQ(file_names(folder_.path()).size(), 2 * generation.cycles.size());
  const Dumped dumped(folder_.path(), "cycle-000000");
  EXPECT_EQ(dumped.position(), static_cast<int64_t>(prompt_ids_.size()));
  EXPECT_EQ(dumped.shape("taps")[0], dumped.position());
  expect_facts(dumped, generation, 0);
  expect_context(dumped);
}

// What a batch records is what each of its sequences records alone, one after the other.
TEST_P(Dump, SequencesOfABatchAreRecordedInOrder) {
  constexpr int32_t kPositions = 20;
  const TokenEngineOptions options{.max_sequences = 2, .max_positions = 64, .num_choices = kRealIds};
  const auto target = open_target(kTarget, options);
  const auto drafter = open_drafter(drafter_of(GetParam()), *target, options);
  OpContext context(2, drafter->scratch_bytes(2));
  std::mt19937 generator(5);
  const Matrix taps = Matrix::random(generator, 2 * kPositions, 3 * kHidden);
  const std::vector<TapRows> rows = {{0, 0, 0, kPositions}, {1, 0, kPositions, kPositions}};
  drafter->extend_context(context, taps.view(), rows);
  const std::vector<DraftRequest> requests = {
      {.slot = 0, .anchor_id = 326, .position = kPositions, .width = 3},
      {.slot = 1, .anchor_id = 286, .position = kPositions, .width = drafter->trained_width()}};
  const auto propose = [&](std::span<const DraftRequest> asked, Recorder* recorder) {
    context->recorder = recorder;
    int32_t total = 0;
    for (const DraftRequest& request : asked) total += request.width;
    std::vector<int32_t> ids(static_cast<size_t>(total));
    std::vector<int32_t> widths(asked.size());
    EXPECT_TRUE(drafter->propose(context, asked, {.ids = ids, .widths = widths}));
    return ids;
  };
  Recorder together, first, second;
  const std::vector<int32_t> drafts = propose(requests, &together);
  EXPECT_EQ(propose(requests, nullptr), drafts) << "recording changed the drafts";
  propose(std::span(requests).first(1), &first);
  propose(std::span(requests).last(1), &second);
  EXPECT_EQ(together.find("drafts")->integers, drafts);
  const auto joined = [](auto values, const auto& more) {
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  for (const auto& [name, tensor] : together.tensors()) {
    EXPECT_EQ(tensor.row_shape, first.find(name)->row_shape) << name;
    EXPECT_EQ(tensor.floats, joined(first.find(name)->floats, second.find(name)->floats)) << name;
    EXPECT_EQ(tensor.integers, joined(first.find(name)->integers, second.find(name)->integers)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Dump, ::testing::Values("dflash", "dflash2", "dspark"),
                         [](const auto& suite) { return suite.param; });

TEST(DumpOptions, AreChecked) {
  const TempDir folder;
  EngineOptions options{.target = kTarget, .threads = 2, .dump = {.folder = folder / "dump"}};
  const auto message = [&] {
    const auto engine = Engine::open(options);
    return engine ? std::string() : engine.error().message;
  };
  EXPECT_THAT(message(), HasSubstr("no drafter is open"));
  options.drafter = drafter_of("dflash");
  options.max_sequences = 2;
  EXPECT_EQ(message(), "option max_sequences is 2, expected 1 with dump");
  options.max_sequences = 1;
  EXPECT_EQ(message(), "");
  std::filesystem::create_directories(folder / "full");
  write_file(folder / "full/cycle-000007.json", "{}");
  options.dump.folder = folder / "full";
  EXPECT_THAT(message(), HasSubstr("holds a dump already (cycle-000007.json)"));
  write_file(folder / "file", "");
  options.dump.folder = folder / "file/dump";
  EXPECT_THAT(message(), HasSubstr("cannot be made"));
}

// A text that ends with its first token leaves nothing behind for the next one.
TEST(DumpOptions, TextsWithoutACycleLeaveNoTrace) {
  const TempDir folder;
  Engine engine = take(Engine::open({.target = kTarget,
                                     .drafter = drafter_of("dflash"),
                                     .threads = 2,
                                     .dump = {.folder = folder.path(), .cycles = {{0, 0}}}}));
  take(engine.generate({.prompt = "import os\n", .max_tokens = 1}));
  EXPECT_TRUE(file_names(folder.path()).empty());
  take(engine.generate({.prompt = "def main():\n", .max_tokens = 4}));
  const Dumped dumped(folder.path(), "cycle-000000");
  EXPECT_EQ(dumped.shape("taps")[0], dumped.position());
  EXPECT_EQ(file_names(folder.path()).size(), 2u);
}

}  // namespace
}  // namespace blockdraft::test
