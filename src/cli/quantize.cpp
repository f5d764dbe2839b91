#include "blockdraft/quantize.h"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples =
    R"(The linear weights of the layers become 8 bits (fp8: E4M3 with a scale a row; int8: a scale for 32 numbers) or 4 bits
(nvfp4: E2M1 with a scale for 16 numbers); everything else is copied as it is. OUT must not exist; it appears when it is
complete.

Example:
  blockdraft quantize models/Qwen3-8B-DFlash models/Qwen3-8B-DFlash-FP8 --format fp8
)";

struct QuantizeFlags {
  CommonFlags common;
  std::string in;
  std::string out;
  std::string format;
};

Result<int> run_quantize(const QuantizeFlags& flags) {
  BLOCKDRAFT_TRY(apply_on_cpu(flags.common, "quantize"));
  const auto format = quantized_format_from_name(flags.format);
  if (!format) {
    return make_error(Code::invalid_argument, "--format: '{}' is not known, expected fp8, nvfp4 or int8", flags.format);
  }
  BLOCKDRAFT_TRY(quantize_folder(flags.in, flags.out, *format));
  if (flags.common.json) {
    write_json({{"in", flags.in}, {"out", flags.out}, {"format", flags.format}});
  } else {
    write_out(fmt::format("{} is written\n", flags.out));
  }
  return kExitOk;
}

}  // namespace

Command add_quantize(CLI::App& program) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* app = program.add_subcommand("quantize", "Make a smaller copy of a model folder, target or drafter");
  app->add_option("IN", flags->in, "The folder to read, in BF16, F16 or F32")->required();
  app->add_option("OUT", flags->out, "The folder to write")->required();
  app->add_option("--format", flags->format, "fp8, nvfp4 or int8")->required();
  add_common_flags(*app, flags->common);
  app->footer(kExamples);
  return {app, [flags] { return run_quantize(*flags); }};
}

}  // namespace blockdraft
