#include "text/regex.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

constexpr uint32_t kHeapLimitKib = 64 << 10;  // of the interpreter, for one match

struct CompileContextFree {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

PCRE2_SPTR code_units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string error_text(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Regex::Compiled {
  ~Compiled() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
  bool has_jit = false;
  std::string origin;
};

struct MatchScratch::State {
  std::unique_ptr<pcre2_match_data, MatchDataFree> data;
};

MatchScratch::MatchScratch() : state_(std::make_unique<State>()) {
  state_->data.reset(pcre2_match_data_create(1, nullptr));  // one pair of offsets: the whole match
  CHECK(state_->data != nullptr);
}
MatchScratch::~MatchScratch() = default;

Result<Regex> Regex::compile(std::string_view pattern, std::string_view origin) {
  BLOCKDRAFT_ASSIGN(const std::string translated, translate_regex(pattern, origin));
  return compile_translated(translated, origin);
}

Result<Regex> Regex::word_character() {
  return compile_translated("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]", "word characters");
}

Result<Regex> Regex::compile_translated(std::string_view pattern, std::string_view origin) {
  const std::unique_ptr<pcre2_compile_context, CompileContextFree> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // what '.' does not match
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto compiled = std::make_shared<Compiled>();
  compiled->origin = origin;
  compiled->code = pcre2_compile(code_units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                 &error, &offset, context.get());
  if (compiled->code == nullptr) {
    return make_error(Code::unsupported, "{} is {}, which does not compile ({}), expected a regular expression", origin,
                      in_quotes(pattern), error_text(error));
  }
  compiled->has_jit = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
  compiled->limits = pcre2_match_context_create(nullptr);
  CHECK(compiled->limits != nullptr);
  pcre2_set_match_limit(compiled->limits, kMatchLimit);
  pcre2_set_heap_limit(compiled->limits, kHeapLimitKib);
  return Regex(std::move(compiled));
}

namespace {

// PCRE2's answer. The JIT's stack is small and fixed; what does not fit there goes to the interpreter, which has the
// heap up to its limit.
int match(const pcre2_code* code, bool has_jit, std::string_view text, size_t from, pcre2_match_data* data,
          pcre2_match_context* limits) {
  if (has_jit) {
    const int found = pcre2_jit_match(code, code_units(text), text.size(), from, PCRE2_NO_UTF_CHECK, data, limits);
    if (found != PCRE2_ERROR_JIT_STACKLIMIT) return found;
  }
  return pcre2_match(code, code_units(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, limits);
}

}  // namespace

void Regex::split(std::string_view text, MatchScratch& scratch,
                  const std::function<void(std::string_view piece)>& piece) const {
  pcre2_match_data* data = scratch.state_->data.get();
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data);
  const auto emit = [&](size_t begin, size_t end) {
    if (begin < end) piece(text.substr(begin, end - begin));
  };
  size_t done = 0;           // everything before is in pieces
  size_t from = 0;           // where the next search starts
  bool after_match = false;  // an empty match is no match where another one has just ended
  while (from <= text.size()) {
    const int found = match(compiled_->code, compiled_->has_jit, text, from, data, compiled_->limits);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      log_warning("{}: given up on a text of {} bytes ({}); its rest is one pre-token", compiled_->origin, text.size(),
                  error_text(found));
      break;
    }
    const size_t begin = offsets[0];
    const size_t end = offsets[1];
    if (begin == end && after_match && begin == done) {
      from = done + (done < text.size() ? utf8_step(text, done).length : 1);
      continue;
    }
    emit(done, begin);
    emit(begin, end);
    done = from = end;
    after_match = true;
  }
  emit(done, text.size());
}

bool Regex::matches_at_start(std::string_view text, MatchScratch& scratch) const {
  pcre2_match_data* data = scratch.state_->data.get();
  const int found = match(compiled_->code, compiled_->has_jit, text, 0, data, compiled_->limits);
  return found >= 0 && pcre2_get_ovector_pointer(data)[0] == 0;
}

}  // namespace blockdraft
