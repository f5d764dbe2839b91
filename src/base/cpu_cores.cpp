#include "base/cpu_cores.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace blockdraft {

namespace {

#if defined(__linux__)
constexpr int kMostProcessors = 8192;

// An affinity mask of any size that a kernel may want.
class Mask {
 public:
  Mask() : set_(CPU_ALLOC(kMostProcessors)) { CPU_ZERO_S(size(), set_); }
  ~Mask() { CPU_FREE(set_); }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;

  cpu_set_t* set() { return set_; }
  static size_t size() { return CPU_ALLOC_SIZE(kMostProcessors); }
  void add(int processor) { CPU_SET_S(static_cast<size_t>(processor), size(), set_); }
  bool has(int processor) const { return CPU_ISSET_S(static_cast<size_t>(processor), size(), set_) != 0; }

 private:
  cpu_set_t* set_;
};

std::vector<int> affinity() {
  std::vector<int> processors;
  Mask mask;
  if (sched_getaffinity(0, Mask::size(), mask.set()) != 0) return processors;
  for (int i = 0; i < kMostProcessors; ++i) {
    if (mask.has(i)) processors.push_back(i);
  }
  return processors;
}
#else
std::vector<int> affinity() { return {}; }
#endif

std::vector<int> all_processors() {
  std::vector<int> processors(std::max(1u, std::thread::hardware_concurrency()));
  for (size_t i = 0; i < processors.size(); ++i) processors[i] = static_cast<int>(i);
  return processors;
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The text that names the processors of a core is the same for all of them, and a processor's own name if there is
// none.
std::string core_of(const CoreFiles& files, int processor) {
  const std::filesystem::path topology =
      files.sys / "devices/system/cpu" / ("cpu" + std::to_string(processor)) / "topology";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    std::string siblings = first_line(topology / name);
    if (!siblings.empty()) return siblings;
  }
  return "cpu" + std::to_string(processor);
}

// The directory of the group that /proc/self/cgroup names in its line "0::/some/group"; empty if there is none.
std::filesystem::path own_group(const CoreFiles& files) {
  std::ifstream file(files.proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

// "max 100000", or the microseconds of processor time in each so many microseconds.
std::optional<int> quota_of(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  int64_t quota = 0;
  int64_t period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<int64_t>(quota / period, 1, 1 << 20));
}

}  // namespace

std::vector<Core> available_cores(const CoreFiles& files) {
  std::vector<int> processors = files.allowed ? *files.allowed : affinity();
  if (processors.empty()) processors = all_processors();
  std::ranges::sort(processors);
  std::vector<Core> cores;
  std::map<std::string, size_t> index_of;
  for (const int processor : processors) {
    const auto [place, is_new] = index_of.try_emplace(core_of(files, processor), cores.size());
    if (is_new) cores.emplace_back();
    cores[place->second].push_back(processor);
  }
  return cores;
}

std::optional<int> processor_quota(const CoreFiles& files) {
  const std::filesystem::path root = files.sys / "fs/cgroup";
  std::optional<int> smallest = quota_of(root);
  std::filesystem::path group = root;
  for (const std::filesystem::path& part : own_group(files)) {
    group /= part;
    const std::optional<int> quota = quota_of(group);
    if (quota) smallest = std::min(*quota, smallest.value_or(*quota));
  }
  return smallest;
}

void pin([[maybe_unused]] std::thread& thread, [[maybe_unused]] const Core& core) {
#if defined(__linux__)
  Mask mask;
  for (const int processor : core) mask.add(processor);
  pthread_setaffinity_np(thread.native_handle(), Mask::size(), mask.set());
#endif
}

}  // namespace blockdraft
