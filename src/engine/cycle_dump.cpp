#include "engine/cycle_dump.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "checkpoint/safetensors_writer.h"

namespace blockdraft {
namespace {

constexpr const char* kFilePrefix = "cycle-";

// Which positions the rows of a tensor belong to; they are consecutive.
enum class Rows {
  text,     // from the first token on
  context,  // up to the position before the anchor
  block,    // from the anchor on
  drafts,   // from the position after the anchor on
};

struct Meaning {
  std::string_view name;  // without the layer
  Rows rows;
  const char* spec;  // section, as comments in the sources name them
  const char* op;
};

constexpr std::array kMeanings{
    Meaning{"tokens", Rows::text, "1.1", "ids of prompt and text up to the anchor, which is the last"},
    Meaning{"taps", Rows::context, "1.3", "u, outputs of the target's layers side by side, of the newest positions"},
    Meaning{"context_features", Rows::context, "1.4", "c = RMSNorm(fc u; hidden_norm)"},
    Meaning{"context_k", Rows::context, "1.4",
            "RoPE(RMSNorm_head(k_proj c; k_norm)) of the layer, as held in its pages"},
    Meaning{"context_v", Rows::context, "1.4", "v_proj c of the layer, as held in its pages"},
    Meaning{"block_input", Rows::block, "1.5", "embeddings of anchor and mask tokens, scaled"},
    Meaning{"layer_output", Rows::block, "1.6", "h after the layer"},
    Meaning{"hidden", Rows::block, "1.6", "RMSNorm(h; norm) after the last layer"},
    Meaning{"logits", Rows::drafts, "1.9", "softcap(output_multiplier * head h)"},
    Meaning{"candidates", Rows::drafts, "4.2", "target ids of the largest logits"},
    Meaning{"selector_scores", Rows::drafts, "4.2", "logit + A[previous] * (hidden_projection h) * S[candidate]"},
    Meaning{"corrected_logits", Rows::drafts, "5.2", "logits + W2 code(previous, h)"},
    Meaning{"confidence_logits", Rows::drafts, "5.4", "proj f, before the sigmoid"},
    Meaning{"drafts", Rows::drafts, "1.8", "target ids proposed"},
    Meaning{"committed", Rows::drafts, "6.5",
            "ids that the cycle added to the text: accepted drafts, the target's own"},
};

const Meaning& meaning_of(std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('.'));
  const auto place = std::ranges::find(kMeanings, stem, &Meaning::name);
  CHECK(place != kMeanings.end());  // a tensor is recorded that nobody explains
  return *place;
}

int64_t first_position(Rows rows, int64_t count, int64_t anchor) {
  switch (rows) {
    case Rows::text:
      return 0;
    case Rows::context:
      return anchor - count;
    case Rows::block:
      return anchor;
    case Rows::drafts:
      break;
  }
  return anchor + 1;
}

Json json_tensors(const Recorder& recorder, int32_t position) {
  Json tensors = Json::object();
  for (const auto& [name, tensor] : recorder.tensors()) {
    const Meaning& meaning = meaning_of(name);
    tensors[name] = {{"shape", tensor.shape()},
                     {"dtype", name_of(tensor.dtype)},
                     {"first_position", first_position(meaning.rows, tensor.rows(), position)},
                     {"spec", meaning.spec},
                     {"op", meaning.op}};
  }
  return tensors;
}

Status write_tensors(const std::filesystem::path& path, const Recorder& recorder) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : recorder.tensors()) specs.push_back({name, tensor.dtype, tensor.shape()});
  BLOCKDRAFT_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(path, specs));
  for (const auto& [name, tensor] : recorder.tensors()) BLOCKDRAFT_TRY(writer.append(tensor.bytes()));
  return writer.finish();
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return make_error(Code::io_error, "{}: cannot be written", path.string());
  return {};
}

}  // namespace

Result<CycleDump> CycleDump::create(std::filesystem::path folder, std::vector<CycleRange> cycles) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return make_error(Code::io_error, "{}: cannot be made: {}", folder.string(), error.message());
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kFilePrefix)) continue;
    return make_error(Code::io_error, "{}: holds a dump already ({}), expected a folder without one", folder.string(),
                      name);
  }
  if (error) return make_error(Code::io_error, "{}: cannot be read: {}", folder.string(), error.message());
  return CycleDump(std::move(folder), std::move(cycles));
}

bool CycleDump::is_chosen(int64_t cycle) const {
  return cycles_.empty() || std::ranges::any_of(cycles_, [cycle](const CycleRange& range) {
           return range.first <= cycle && cycle <= range.last;
         });
}

Status CycleDump::end_cycle(const Sequence& sequence) {
  if (recorder() != nullptr) {
    const SequenceCycle& cycle = sequence.result.cycles.back();
    const std::span<const int32_t> tokens = sequence.tokens;
    const auto produced = static_cast<size_t>(cycle.produced);
    const std::span<const int32_t> before = tokens.first(tokens.size() - produced);
    const Context to_recorder{.recorder = &recorder_};
    record(to_recorder, "tokens", before);
    record(to_recorder, "committed", tokens.last(produced));
    BLOCKDRAFT_TRY(write(cycle, static_cast<int32_t>(before.size()) - 1, before.back()));
  }
  recorder_.clear();
  ++next_cycle_;
  return {};
}

Status CycleDump::write(const SequenceCycle& cycle, int32_t position, int32_t anchor_id) const {
  const std::filesystem::path stem = folder_ / fmt::format("{}{:06}", kFilePrefix, next_cycle_);
  BLOCKDRAFT_TRY(write_tensors(stem.string() + ".safetensors", recorder_));
  const Json description = {{"cycle", next_cycle_},       {"position", position},
                            {"anchor_id", anchor_id},     {"asked", cycle.asked},
                            {"width", cycle.width},       {"accepted", cycle.accepted},
                            {"produced", cycle.produced}, {"tensors", json_tensors(recorder_, position)}};
  return write_text(stem.string() + ".json", description.dump(2) + "\n");
}

}  // namespace blockdraft
