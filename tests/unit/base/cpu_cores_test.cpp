#include "base/cpu_cores.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace blockdraft {
namespace {

using ::testing::ElementsAre;

class CpuCores : public ::testing::Test {
 protected:
  void write(const std::string& name, std::string_view text) {
    std::filesystem::create_directories((dir_ / name).parent_path());
    write_file(dir_ / name, text);
  }
  void write_core(int processor, const char* file, std::string_view siblings) {
    write("sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/" + file, siblings);
  }
  CoreFiles files(std::vector<int> allowed) const { return {dir_ / "sys", dir_ / "proc", std::move(allowed)}; }

  TempDir dir_;
};

TEST_F(CpuCores, HyperthreadsAreOneCore) {
  for (const int processor : {0, 4}) write_core(processor, "core_cpus_list", "0,4\n");
  for (const int processor : {1, 5}) write_core(processor, "core_cpus_list", "1,5\n");
  EXPECT_THAT(available_cores(files({0, 1, 4, 5})), ElementsAre(Core{0, 4}, Core{1, 5}));
  EXPECT_THAT(available_cores(files({5, 0, 4})), ElementsAre(Core{0, 4}, Core{5}));
  EXPECT_THAT(available_cores(files({4})), ElementsAre(Core{4}));
}

TEST_F(CpuCores, OlderKernelsCallThemSiblings) {
  for (const int processor : {0, 1}) write_core(processor, "thread_siblings_list", "0-1\n");
  EXPECT_THAT(available_cores(files({0, 1})), ElementsAre(Core{0, 1}));
}

TEST_F(CpuCores, WithoutAWordOfTheKernelEachProcessorIsACore) {
  EXPECT_THAT(available_cores(files({2, 3})), ElementsAre(Core{2}, Core{3}));
  EXPECT_GE(available_cores({.sys = dir_ / "sys", .proc = dir_ / "proc"}).size(), 1u);
}

TEST_F(CpuCores, TheSmallestQuotaOfTheGroupsCounts) {
  EXPECT_EQ(processor_quota(files({})), std::nullopt);
  write("proc/self/cgroup", "1:name=systemd:/x\n0::/pods/mine\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(processor_quota(files({})), std::nullopt);
  write("sys/fs/cgroup/pods/cpu.max", "350000 100000\n");
  EXPECT_EQ(processor_quota(files({})), 3);
  write("sys/fs/cgroup/pods/mine/cpu.max", "800000 100000\n");
  EXPECT_EQ(processor_quota(files({})), 3);
  write("sys/fs/cgroup/pods/mine/cpu.max", "50000 100000\n");
  EXPECT_EQ(processor_quota(files({})), 1);
  write("sys/fs/cgroup/pods/mine/cpu.max", "nonsense\n");
  EXPECT_EQ(processor_quota(files({})), 3);
}

#if defined(__linux__)
TEST(PinnedThread, RunsOnItsCoreOnly) {
  const Core core = available_cores().back();
  std::atomic<bool> end = false;
  std::thread thread([&] {
    while (!end) std::this_thread::yield();
  });
  pin(thread, core);
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(pthread_getaffinity_np(thread.native_handle(), sizeof(set), &set), 0);
  EXPECT_EQ(static_cast<size_t>(CPU_COUNT(&set)), core.size());
  for (const int processor : core) EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(processor), &set));
  end = true;
  thread.join();
}
#endif

}  // namespace
}  // namespace blockdraft
