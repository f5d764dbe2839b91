// How tokens are chosen: the fields of Request. The engine checks the ranges: they are the same for everyone who asks
// it.
#include <limits>
#include <string>
#include <vector>

#include "cli/flag_checks.h"
#include "cli/options.h"

namespace blockdraft {
namespace {

constexpr const char* kSampling = "Sampling";
constexpr const char* kPenalties = "Penalties and bias";

CLI::Option* add_number(CLI::App& app, const char* name, float& value, const char* type, const char* help,
                        const char* group) {
  return app.add_option(name, value, help)->type_name(type)->check(number_check())->capture_default_str()->group(group);
}

void add_filter_flags(CLI::App& app, TextFlags& flags) {
  add_number(app, "--temperature", flags.temperature, "T",
             "Draw tokens, the more freely the higher; 0: take the likeliest", kSampling);
  app.add_option("--top-k", flags.top_k, "Draw from the K likeliest tokens only; 0: from all")
      ->type_name("K")
      ->check(range_check(0, std::numeric_limits<int32_t>::max()))
      ->capture_default_str()
      ->group(kSampling);
  add_number(app, "--top-p", flags.top_p, "P", "Draw from the likeliest tokens that reach probability P together",
             kSampling);
  add_number(app, "--min-p", flags.min_p, "P", "Draw from tokens with P times the likeliest one's probability at least",
             kSampling);
}

void add_acceptance_flag(CLI::App& app, TextFlags& flags) {
  add_choice<Acceptance>(app, "--acceptance", flags.acceptance,
                         "How drafts are accepted when tokens are drawn: coupled gives the text of plain decoding with "
                         "the seed, ratio another text of the same law",
                         {{"coupled", Acceptance::coupled}, {"ratio", Acceptance::ratio}})
      ->default_str("coupled")
      ->group(kSampling);
}

void add_bias_flag(CLI::App& app, TextFlags& flags) {
  const auto set = [&flags](const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const size_t sign = entry.find('=');
      flags.logit_bias.push_back(
          {static_cast<int32_t>(whole_number(entry.substr(0, sign)).value()), number(entry.substr(sign + 1)).value()});
    }
  };
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias", set, "Add BIAS, -100 to 100, to the logit of token ID; may be given several times")
      ->type_name("ID=BIAS")
      ->allow_extra_args(false)
      ->check(bias_check())
      ->group(kPenalties);
}

void add_penalty_flags(CLI::App& app, TextFlags& flags) {
  add_number(app, "--repetition-penalty", flags.repetition_penalty, "X",
             "Above 1: tokens of prompt and text become less likely (logits above 0 are divided by it, others "
             "multiplied); 1: off",
             kPenalties);
  add_number(app, "--presence-penalty", flags.presence_penalty, "X",
             "Taken off the logits of tokens that the text holds, -2 to 2", kPenalties);
  add_number(app, "--frequency-penalty", flags.frequency_penalty, "X",
             "The same for each time that the text holds the token, -2 to 2", kPenalties);
}

}  // namespace

void add_sampling_flags(CLI::App& app, TextFlags& flags) {
  add_filter_flags(app, flags);
  app.add_option("--seed", flags.seed, "The same seed gives the same text")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(kSampling);
  add_acceptance_flag(app, flags);
  add_penalty_flags(app, flags);
  add_bias_flag(app, flags);
}

}  // namespace blockdraft
