// Which processor cores this process may use.
#pragma once

#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

namespace blockdraft {

// One physical core: its logical processors (hyperthreads), ascending.
using Core = std::vector<int>;

// Where the kernel says so; other places are for tests.
struct CoreFiles {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
  std::optional<std::vector<int>> allowed = {};  // logical processors; not given: the calling thread's affinity mask
};

// The cores with an allowed logical processor, in order of their first one, and of each only what is allowed. A
// processor of which the kernel does not say with which others it shares a core counts as a core. Never empty.
std::vector<Core> available_cores(const CoreFiles& files = {});

// How many processors' time the control groups (version 2) that the process is in leave it: the smallest quota of
// them, rounded down, 1 at least; nothing if none has one.
std::optional<int> processor_quota(const CoreFiles& files = {});

// Lets a thread run on this core only. Speed is all that depends on it: what the kernel refuses stays as it was.
void pin(std::thread& thread, const Core& core);

}  // namespace blockdraft
