// Text in, text out: a target, usually with a drafter, on this machine's CPU or a CUDA card.
//
//   auto engine = blockdraft::Engine::open({.target = "demo/pycode-14m", .drafter = "demo/pycode-14m-dflash"});
//   if (!engine) return fail(engine.error().message);
//   auto text = engine->generate({.prompt = "def main():", .max_tokens = 64}, [](const blockdraft::Piece& piece) {
//     std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
//     return true;
//   });
//
// The text is the target's own, greedy or drawn with the request's seed: with and without a drafter, for every width
// and whatever else is in the batch, token for token (docs/architecture.md, "Why drafting changes no bit").
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/device.h"
#include "blockdraft/drafter_files.h"
#include "blockdraft/result.h"
#include "blockdraft/sampling.h"
#include "blockdraft/tokenizer.h"

namespace blockdraft {

// Drafts asked of a sequence in a cycle: a number, or one of the two constants below.
struct DraftWidth {
  enum class Kind { count, trained, adaptive };
  Kind kind = Kind::trained;
  int32_t count = 0;  // of Kind::count

  constexpr DraftWidth() = default;
  constexpr DraftWidth(int32_t number) : kind(Kind::count), count(number) {}  // implicit: .draft_tokens = 4
  constexpr explicit DraftWidth(Kind of) : kind(of) {}
  friend constexpr bool operator==(const DraftWidth&, const DraftWidth&) = default;
};
// As many as the drafter was trained for.
inline constexpr DraftWidth kTrainedWidth{DraftWidth::Kind::trained};
// From cycle to cycle and sequence to sequence what promises most tokens a second, from none (plain decoding) to the
// trained width: by the times that cycles take here, measured in the first call of each kind of sampling and
// followed from then on, and by the drafts accepted of late. That measurement takes about 0.1 s, or four cycles on at
// most 64 positions of the prompt where these take longer; the call's first_token_s and total_s include it. Widths
// depend on times and may differ from run to run; the text does not. With ratio acceptance, whose texts depend on the
// width, it is refused.
inline constexpr DraftWidth kAdaptiveWidth{DraftWidth::Kind::adaptive};

// Cycles whose intermediate tensors are written to files, counted from 0 over all texts of an engine.
struct DumpOptions {
  struct Range {
    int64_t first = 0;
    int64_t last = 0;  // included
  };
  std::filesystem::path folder;  // empty: nothing is written. Made if it is not there
  std::vector<Range> cycles;     // empty: all
};

struct EngineOptions {
  std::filesystem::path target;             // folder in Hugging Face layout
  std::filesystem::path drafter;            // the same; empty: plain decoding
  DraftWidth draft_tokens = kTrainedWidth;  // 1 to the trained width, kTrainedWidth or kAdaptiveWidth
  Device device = Device::cpu();            // a card needs a build with CUDA (docs/architecture.md, "CUDA")
  int32_t threads = 0;                      // 0: one per physical core (docs/architecture.md, "Threads")
  std::string cpu_isa;        // kernels to use: "portable", "avx2", "avx512" or "avx512_bf16"; empty: what the
                              // variable BLOCKDRAFT_CPU_ISA says, or the last that the processor has
  int32_t max_sequences = 1;  // decoded at once; more requests wait for their turn
  int64_t max_positions = 0;  // prompt and text of a sequence together; 0: the smaller of
                              // max_position_embeddings and kDefaultMaxPositions

  // Random weights in place of files, to measure speed by config.json alone: folders must hold no weights and need no
  // tokenizer. Prompts are ids then, and texts are empty. The same seed gives the same weights.
  bool random_weights = false;
  uint64_t random_seed = 0;

  // A tied head becomes a copy of its own; the table of embeddings stays as stored.
  WeightFormat target_weights = WeightFormat::as_stored;

  // Of the drafter; without one they keep their defaults.
  WeightFormat drafter_weights = WeightFormat::as_stored;
  DrafterLayout drafter_layout = DrafterLayout::as_stated;
  float confidence_threshold = 0.0f;  // 0 to 1; drafts from the first with less confidence on are not verified. Above 0
                                      // the drafter must have a confidence head
  // For timing models whose weights are random, in which real acceptance says nothing: draft i of a block is accepted
  // with chance i of the list, each 0 to 1, if those before it are; drafts behind the list never. The text is then NOT
  // the target's. Empty: drafts are compared with the target's choice, as they should be.
  std::vector<float> accept_pattern;
  DumpOptions dump;  // needs a drafter and max_sequences 1; a folder that holds a dump already is an io_error
};
inline constexpr int64_t kDefaultMaxPositions = 4096;

struct LogitBias {
  int32_t id = 0;
  float bias = 0.0f;  // -100 to 100, added to the logit
};

// The next token is drawn from the softmax of logits / temperature, after top_k, top_p and min_p in this order. Before
// the temperature come logit_bias, repetition_penalty, frequency_penalty and presence_penalty, in this order.
struct Request {
  std::string prompt;
  std::vector<int32_t> prompt_ids;  // used instead of `prompt` if not empty
  int64_t max_tokens = 128;         // at least 0
  std::vector<std::string> stop;    // the text ends before the first of these; none may be empty
  bool ignore_eos = false;          // do not end at the target's stop tokens

  float temperature = 0.0f;  // 0 to 100; below kGreedyTemperature the most likely token is taken, nothing is drawn
  int32_t top_k = 0;         // only the so many most likely ids; 0: all
  float top_p = 1.0f;        // above 0: only the most likely ids, before which there is less than this probability
  float min_p = 0.0f;        // 0 to 1: only ids with this part of the most likely one's probability
  uint64_t seed = 0;         // the same seed gives the same text
  Acceptance acceptance = Acceptance::coupled;

  // Fills CycleRecord::expected_accepted: what the laws of target and drafter allow. Costs a pass over both for every
  // draft, changes no token, and needs a temperature above 0.
  bool expect_acceptance = false;

  // For ids in prompt or text: divides logits above 0, multiplies others. Above 0, to 100.
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;   // -2 to 2: taken off logits of ids that the text holds
  float frequency_penalty = 0.0f;  // -2 to 2: the same for each time that the text holds the id
  std::vector<LogitBias> logit_bias;
};

// A part of a text as it becomes certain. Pieces of one request, joined, are its Generation::text. `text` never splits
// a UTF-8 character, and holds back what may be the beginning of a stop text.
struct Piece {
  size_t request = 0;  // index in the call
  std::string_view text;
};
// Called on the thread that called generate. Returning false cancels that request.
using OnPiece = std::function<bool(const Piece&)>;

enum class FinishReason {
  stop,      // a stop token or stop text
  length,    // max_tokens, or the engine's max_positions
  canceled,  // the callback said so
};
const char* name_of(FinishReason reason);  // "stop", "length", "canceled"

// One propose + verify round of one sequence. Plain decoding has width 0 and produces one token.
struct CycleRecord {
  int32_t width = 0;     // drafts verified
  int32_t accepted = 0;  // of those
  int32_t produced = 0;  // tokens committed, the target's own one included
  int32_t asked = 0;     // drafts asked for: more than `width` if the confidence threshold dropped some
  // Accepted drafts that were to be expected, given the drafts: the probabilities of all that were reached, the first
  // that was not kept included. Over many cycles its sum and that of `accepted` agree. 0 unless asked for.
  double expected_accepted = 0;
};

struct Generation {
  std::string text;
  std::vector<int32_t> ids;  // generated tokens; a stop token is the last one. May run past a stop text
  FinishReason finish_reason = FinishReason::length;
  int64_t prompt_tokens = 0;
  // The first token comes out of the prompt's own pass; each cycle is one target pass more.
  std::vector<CycleRecord> cycles;
};

// Where the time of a call went. One entry a cycle in each list; microseconds.
struct CallTimes {
  double total_s = 0;
  double prefill_s = 0;
  double first_token_s = 0;  // from the call to the first token of any request
  std::vector<float> context_us, propose_us, verify_us, accept_us;
  int64_t hand_offs = 0;  // of work to the threads, in all cycles together
};

struct MemoryPlanItem {
  std::string name;  // "target pages", "scratch", "taps", "target weights", "drafter weights", ...
  int64_t size_bytes = 0;
};

// What is open, and what a pass has to read.
struct EngineInfo {
  std::string target_kind;   // "Qwen3ForCausalLM"
  std::string drafter_kind;  // "DFlash", "DFlash2" or "DSpark"; empty without a drafter
  int32_t trained_width = 0;
  int32_t draft_tokens = 0;  // in use, or the most with kAdaptiveWidth; 0 without a drafter
  bool adapts_width = false;
  Device device;
  std::string device_name;  // "cpu", or what the card calls itself: "NVIDIA H200"
  int32_t threads = 0;
  std::string cpu_isa;  // "portable", "avx2", "avx512" or "avx512_bf16"
  int32_t max_sequences = 0;
  int64_t max_positions = 0;
  std::vector<std::string> config_warnings;  // what the configs leave open or say twice, one line each
  std::vector<MemoryPlanItem> memory_plan;   // what the engine allocates beside the mapped weights
  int64_t mapped_bytes = 0;                  // weights, mapped from their files or made up
  int64_t vocab_size = 0;                    // ids of a prompt lie below it

  // Bytes that one pass reads: weights once, whatever the number of rows, and K/V of each position in the context.
  int64_t verify_weight_bytes = 0, verify_kv_bytes_per_position = 0;
  int64_t propose_weight_bytes = 0, propose_kv_bytes_per_position = 0;
  int64_t context_weight_bytes = 0;
  int64_t head_weight_bytes = 0;  // part of verify_weight_bytes; over a prompt only its last row needs it
  // Multiplications and additions of one row of each pass, attention not counted.
  int64_t verify_flops_per_row = 0, propose_flops_per_row = 0, context_flops_per_row = 0;
  int64_t head_flops_per_row = 0;  // part of verify_flops_per_row
  // A block of w drafts has w + propose_extra_rows rows; w of them need the head and what chooses tokens, whose
  // arithmetic is this part of propose_flops_per_row.
  int32_t propose_extra_rows = 0;
  int64_t choice_flops_per_row = 0;
  int32_t prefill_rows = 0;  // positions of a prompt that one pass reads
};

// Owns models, memory and threads. Moves only. One call at a time; different engines are independent.
class Engine {
 public:
  // Errors name the file or option: what does not load, and a drafter that does not fit the target.
  static Result<Engine> open(const EngineOptions& options);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Blocks until the text is complete. Errors before anything is generated: a prompt that is empty after
  // tokenization or does not fit max_positions, a request field out of range. During generation: numeric;
  // out_of_memory for the laws that the first request for ratio acceptance needs; io_error of a dump.
  Result<Generation> generate(const Request& request, const OnPiece& on_piece = {});
  // All requests, up to max_sequences at once; results in the order of the requests.
  Result<std::vector<Generation>> generate(std::span<const Request> requests, const OnPiece& on_piece = {});

  // From the next call on: see EngineOptions. Without a drafter: mismatch. kAdaptiveWidth: out_of_memory for the taps
  // that wait, which the memory plan has from then on.
  Status set_draft_tokens(DraftWidth draft_tokens);

  // What no drafter in order does, over all calls: drafts never or always accepted, mask ids only. A sentence each;
  // nothing is concluded before 32 cycles.
  std::vector<std::string> warnings() const;
  const CallTimes& last_call() const;  // of the newest generate call
  const EngineInfo& info() const;
  const Tokenizer& tokenizer() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace blockdraft
