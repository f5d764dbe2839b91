// blockdraft-golden [--device cpu|cuda[:N]] DIR...: runs fixture cases and compares with what the reference
// implementation recorded.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "blockdraft/device.h"
#include "golden/case.h"
#include "tensor/open_device.h"

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

struct Where {
  CudaDevice* card;  // null: the CPU
  ThreadPool& threads;
  CpuIsa isa;
};

struct Totals {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

// Its inputs on the card are given back with its context.
Result<Comparison> run_case(const Where& where, const std::filesystem::path& folder) {
  BLOCKDRAFT_ASSIGN(const auto device,
                    test::DeviceContext::create(where.card, where.threads, where.isa, kScratchBytes));
  auto fixture = read_case(folder);
  if (!fixture) return fixture.error();
  const std::string kind = fixture->description.value("kind", "");
  if (kind == "drafter") return run_drafter_case(*device, *fixture);
  if (kind == "target") return run_target_case(*device, *fixture);
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

Result<Totals> run_all(const std::vector<std::string>& roots, Device device, int threads) {
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa());
  std::shared_ptr<CudaDevice> card;
  if (device.kind == Device::Kind::cuda) {
    BLOCKDRAFT_ASSIGN(card, open_cuda_device(device.index));
  }
  ThreadPool pool(threads);
  const Where where{card.get(), pool, isa};
  Totals totals;
  for (const std::filesystem::path& folder : find_cases(roots)) report(totals, folder, run_case(where, folder));
  return totals;
}

int run(const std::vector<std::string>& roots, Device device, int threads) {
  const auto totals = run_all(roots, device, threads);
  if (!totals) {
    fmt::print(stderr, "blockdraft-golden: {}\n", totals.error().message);
    return 1;
  }
  fmt::print("{} passed, {} failed, {} skipped\n", totals->passed, totals->failed, totals->skipped);
  return totals->failed == 0 && totals->passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace blockdraft::golden

int main(int argc, char** argv) {
  CLI::App app("Runs fixture cases: a line each, then the totals. Exit 1 if one fails or none passes.");
  std::vector<std::string> roots;
  std::string device = "cpu";
  int threads = 0;
  app.add_option("DIR", roots, "Folders with cases, searched to any depth")->required()->check(CLI::ExistingDirectory);
  const auto is_device = [](const std::string& name) -> std::string {
    if (blockdraft::device_from_name(name)) return {};
    return fmt::format("'{}' is no device, expected cpu or cuda[:N]", name);
  };
  app.add_option("--device", device, "Where to run: cpu or cuda[:N]")->check(is_device)->capture_default_str();
  app.add_option("--threads", threads, "0: one per core")->check(CLI::Range(0, 1024))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return blockdraft::golden::run(roots, *blockdraft::device_from_name(device), threads);
}
