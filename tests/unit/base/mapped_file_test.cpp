#include "base/mapped_file.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, GivesTheBytes) {
  const TempDir folder;
  write_file(folder / "a", std::string("x\0y", 3));
  const auto file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(text_of(*file), std::string("x\0y", 3));
}

TEST(MappedFile, MovesWithItsBytes) {
  const TempDir folder;
  write_file(folder / "a", "first");
  write_file(folder / "b", "second");
  MappedFile a = MappedFile::open(folder / "a").value();
  MappedFile b = MappedFile::open(folder / "b").value();
  const std::byte* address = b.bytes().data();
  a = std::move(b);
  EXPECT_EQ(text_of(a), "second");
  EXPECT_EQ(a.bytes().data(), address);
  const MappedFile c = std::move(a);
  EXPECT_EQ(text_of(c), "second");
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move)
}

TEST(MappedFile, OutlivesThePath) {
  const TempDir folder;
  write_file(folder / "a", "still here");
  const auto file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(text_of(*file), "still here");
}

TEST(MappedFile, RefusalsNameThePath) {
  const TempDir folder;
  expect_error(MappedFile::open(folder / "absent"), Code::not_found, {(folder / "absent").string(), "No such file"});
  write_file(folder / "empty", "");
  expect_error(MappedFile::open(folder / "empty"), Code::corrupt_file, {(folder / "empty").string(), "empty"});
  expect_error(MappedFile::open(folder.path()), Code::io_error, {folder.path().string(), "not a regular file"});
  expect_error(MappedFile::open(folder / "empty" / "below"), Code::io_error, {"below", "Not a directory"});
  expect_error(MappedFile::open("/dev/null"), Code::io_error, {"/dev/null", "not a regular file"});
}

// Nobody will ever write to it: opening must not wait.
TEST(MappedFile, ANamedPipeIsRefusedAtOnce) {
  const TempDir folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(MappedFile::open(folder / "pipe"), Code::io_error, {"pipe", "not a regular file"});
}

TEST(MappedFile, AFileWithoutPermissionIsAnIoError) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read every file";
  const TempDir folder;
  write_file(folder / "secret", "x");
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  expect_error(MappedFile::open(folder / "secret"), Code::io_error, {"secret", "Permission denied"});
}

}  // namespace
}  // namespace blockdraft
