// blockdraft-golden DIR...: runs fixture cases and compares with what the reference implementation recorded.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "golden/case.h"

namespace blockdraft::golden {
namespace {

constexpr size_t kScratchBytes = size_t{256} << 20;

std::vector<std::filesystem::path> find_cases(const std::vector<std::string>& roots) {
  std::vector<std::filesystem::path> folders;
  for (const std::string& root : roots) {
    if (std::filesystem::exists(std::filesystem::path(root) / "case.json")) folders.emplace_back(root);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.is_directory() && std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

struct Totals {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

Result<Comparison> run_case(Context& context, const std::filesystem::path& folder) {
  auto fixture = read_case(folder);
  if (!fixture) return fixture.error();
  const std::string kind = fixture->description.value("kind", "");
  if (kind == "drafter") return run_drafter_case(context, *fixture);
  if (kind == "target") return run_target_case(context, *fixture);
  return Error{Code::corrupt_file,
               fmt::format("{}/case.json: kind is '{}', expected 'drafter' or 'target'", folder.string(), kind)};
}

void report(Totals& totals, const std::filesystem::path& folder, const Result<Comparison>& result) {
  const std::string name = folder.filename().string();
  if (!result && result.error().code == Code::unsupported) {
    ++totals.skipped;
    fmt::print("skip  {}: {}\n", name, result.error().message);
  } else if (!result || !result->passed()) {
    ++totals.failed;
    fmt::print("FAIL  {}: {}\n", name, result ? result->summary() : result.error().message);
  } else {
    ++totals.passed;
    fmt::print("pass  {}: {}\n", name, result->summary());
  }
}

int run(const std::vector<std::string>& roots, int threads) {
  auto scratch = Buffer::allocate(kScratchBytes, "scratch");
  if (!scratch) {
    fmt::print(stderr, "blockdraft-golden: {}\n", scratch.error().message);
    return 1;
  }
  const auto isa = choose_cpu_isa();
  if (!isa) {
    fmt::print(stderr, "blockdraft-golden: {}\n", isa.error().message);
    return 1;
  }
  ThreadPool pool(threads);
  Arena arena(std::move(*scratch));
  Context context{&pool, &arena, *isa};
  Totals totals;
  for (const std::filesystem::path& folder : find_cases(roots)) report(totals, folder, run_case(context, folder));
  fmt::print("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace blockdraft::golden

int main(int argc, char** argv) {
  CLI::App app("Runs fixture cases: a line each, then the totals. Exit 1 if one fails or none passes.");
  std::vector<std::string> roots;
  std::string device = "cpu";
  int threads = 0;
  app.add_option("DIR", roots, "Folders with cases, searched to any depth")->required()->check(CLI::ExistingDirectory);
  app.add_option("--device", device, "Where to run")->check(CLI::IsMember({"cpu"}))->capture_default_str();
  app.add_option("--threads", threads, "0: one per core")->check(CLI::Range(0, 1024))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return blockdraft::golden::run(roots, threads);
}
