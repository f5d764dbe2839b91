// Runs a fuzz target without libFuzzer:
//   TARGET [--seconds=N] [--seed=N] [--failure=FILE] [--timeout=N] FILE_OR_FOLDER...
// Runs every input given, then random mutations of them for N seconds (default 0). The same seed gives the same
// sequence of mutations. On a crash, a sanitizer report, or an input that takes longer than the timeout (default 10 s),
// the input is written to FILE (default fuzz_failure.bin); running the target on that file reproduces it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Present only when a sanitizer is linked in.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace blockdraft {
namespace {

struct Options {
  double seconds = 0;
  uint64_t seed = 1;
  double timeout_s = 10;
  std::string failure = "fuzz_failure.bin";
  std::vector<std::filesystem::path> inputs;
};

// What a signal handler and the watchdog need: no memory that they would have to allocate or lock.
struct Running {
  std::atomic<const uint8_t*> data{nullptr};
  std::atomic<size_t> size{0};
  std::atomic<uint64_t> number{0};  // of the run
  char failure[4096] = {};
};
Running running;

void say(const char* text) { static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text))); }

// Called from signal handlers too: system calls only.
void save_input() {
  // Taken away: an abort after a sanitizer's report comes here again.
  const uint8_t* data = running.data.exchange(nullptr);
  const size_t size = running.size;
  if (data == nullptr) return;
  const int fd = ::open(running.failure, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  size_t written = 0;
  while (fd >= 0 && written < size) {
    const ssize_t count = ::write(fd, data + written, size - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  if (fd >= 0) ::close(fd);
  say(fd >= 0 && written == size ? "\nfuzz: FAILED, the input is in " : "\nfuzz: FAILED, cannot write ");
  say(running.failure);
  say("\n");
}

void on_crash(int signal) {
  save_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// A thread, for a timer's signal may never reach a loop that calls nothing (ThreadSanitizer holds it back). Counts the
// time that the process has used: a busy machine is no hang.
void watch(double timeout_s) {
  uint64_t number = 0;
  double begin = cpu_seconds();
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (running.number != number || running.data == nullptr) {
      number = running.number;
      begin = cpu_seconds();
    } else if (cpu_seconds() - begin > timeout_s) {
      say("\nfuzz: the input takes too long");
      save_input();
      ::_exit(1);
    }
  }
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_RESTART;  // of its own stack: the other one may have overflowed
  ::sigaction(signal, &action, nullptr);
}

void install_handlers(const Options& options) {
  static char stack[1 << 16];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  ::sigaltstack(&alternative, nullptr);
  std::snprintf(running.failure, sizeof(running.failure), "%s", options.failure.c_str());
  handle(SIGABRT, on_crash);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_input);  // it handles the other signals itself, with a better report
  } else {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) handle(signal, on_crash);
  }
}

void run(std::string_view input) {
  // A block of exactly this size, so that a sanitizer sees the first byte read beyond it.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
  std::copy(input.begin(), input.end(), copy.get());
  running.size = input.size();
  ++running.number;
  running.data = copy.get();
  LLVMFuzzerTestOneInput(copy.get(), input.size());
  running.data = nullptr;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    if (argument.starts_with("--seconds=")) {
      options.seconds = std::atof(value.c_str());
    } else if (argument.starts_with("--seed=")) {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (argument.starts_with("--timeout=")) {
      options.timeout_s = std::atof(value.c_str());
    } else if (argument.starts_with("--failure=")) {
      options.failure = value;
    } else if (argument.starts_with("--")) {
      return false;
    } else {
      options.inputs.emplace_back(argument);
    }
  }
  return !options.inputs.empty();
}

// Folders are read in the order of their names: the mutations of a seed must not depend on the file system.
std::vector<std::filesystem::path> files_of(const std::vector<std::filesystem::path>& inputs) {
  std::vector<std::filesystem::path> files;
  for (const auto& input : inputs) {
    if (!std::filesystem::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    for (const auto& item : std::filesystem::directory_iterator(input)) files.push_back(item.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool read_inputs(const Options& options, std::vector<std::string>& corpus) {
  for (const auto& path : files_of(options.inputs)) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      fmt::print(stderr, "fuzz: cannot read {}\n", path.string());
      return false;
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) fmt::print(stderr, "fuzz: no inputs in {}\n", options.inputs[0].string());
  return !corpus.empty();
}

uint64_t run_mutations(const Options& options, const std::vector<std::string>& corpus) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  Mutator mutator(options.seed);
  uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) run(mutator.next(corpus));
  return runs;
}

}  // namespace
}  // namespace blockdraft

int main(int argc, char** argv) {
  using namespace blockdraft;
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(stderr, "usage: {} [--seconds=N] [--seed=N] [--failure=FILE] [--timeout=N] FILE_OR_FOLDER...\n",
               argv[0]);
    return 2;
  }
  std::vector<std::string> corpus;
  if (!read_inputs(options, corpus)) return 2;
  install_handlers(options);
  std::thread(watch, options.timeout_s).detach();
  fmt::print("fuzz: {} inputs, then {} s of mutations with seed {}\n", corpus.size(), options.seconds, options.seed);
  std::fflush(stdout);
  for (const std::string& input : corpus) run(input);
  fmt::print("fuzz: {} mutations, no failure\n", run_mutations(options, corpus));
  return 0;
}
