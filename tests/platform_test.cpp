// What src/platform promises on every system.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "folder_test.h"
#include "platform/console.h"
#include "platform/files.h"
#include "platform/machine.h"
#include "platform/processes.h"

namespace ungrain::platform {
namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) { EXPECT_GE(number, 0) << std::strerror(errno); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int number() const { return number_; }
  void close() {
    if (number_ >= 0) {
      EXPECT_TRUE(close_file(number_));
    }
    number_ = -1;
  }

 private:
  int number_;
};

std::string read_to_end(int descriptor) {
  std::string text;
  char block[4096];
  for (;;) {
    while (!wait_readable(descriptor, 50)) {
    }
    const std::ptrdiff_t got = read_some(descriptor, block, sizeof block);
    EXPECT_GE(got, 0);
    if (got <= 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

using PlatformFiles = testing::FolderTest;

TEST_F(PlatformFiles, BytesAreWrittenAndReadAtAnyPlace) {
  // Line ends and the byte that ends text files on Windows stay as they are; so does a name beyond ASCII.
  const fs::path name = folder_ / fs::path(u8"grün \u65e5.bin");
  const std::string bytes("a\nb\r\nc\x1a\0d", 9);
  {
    const Descriptor file(open_file(name, {.write = true, .create = true, .must_be_new = true}));
    EXPECT_EQ(write_at(file.number(), bytes.data(), bytes.size(), 5), 9);
    EXPECT_EQ(write_at(file.number(), "01234", 5, 0), 5);
    EXPECT_TRUE(flush_to_disk(file.number()));
    char back[20] = {};
    EXPECT_EQ(read_at(file.number(), back, sizeof back, 3), 11);
    EXPECT_EQ(std::string(back, 11), "34" + bytes);
    EXPECT_EQ(read_at(file.number(), back, sizeof back, 14), 0);
    EXPECT_EQ(status_of(file.number())->size, 14U);
    EXPECT_TRUE(resize_file(file.number(), 4));
  }
  EXPECT_EQ(bytes_of(name), "0123");
  EXPECT_EQ(open_file(name, {.write = true, .create = true, .must_be_new = true}), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(open_file(path("none"), {}), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(PlatformFiles, AppendedLinesGoToTheEnd) {
  for (const char* line : {"one\n", "two\n"}) {
    const Descriptor file(open_file(path("log"), {.write = true, .create = true, .append = true}));
    EXPECT_EQ(write_some(file.number(), line, 4), 4);
  }
  EXPECT_EQ(bytes_of(path("log")), "one\ntwo\n");
}

TEST_F(PlatformFiles, StatusTellsFilesApart) {
  const auto a = status_of(file("a", "12"));
  const auto b = status_of(file("b", "34"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->kind, FileKind::file);
  EXPECT_EQ(a->size, 2U);
  EXPECT_EQ(a->device, b->device);
  EXPECT_NE(a->inode, b->inode);
  EXPECT_GT(a->seconds, 1'600'000'000);
  const Descriptor opened(open_file(path("a"), {}));
  EXPECT_EQ(status_of(opened.number())->inode, a->inode);
  EXPECT_EQ(status_of(folder_)->kind, FileKind::folder);
  EXPECT_FALSE(status_of(path("none")));
  EXPECT_EQ(errno, ENOENT);
}

// Which cannot replace files that are open; Windows 10 can.
bool runs_under_wine() {
  std::string ignored;
  void* system = load_library("ntdll.dll", ignored);
  return system != nullptr && find_symbol(system, "wine_get_version", ignored) != nullptr;
}

TEST_F(PlatformFiles, AFileIsReplaced) {
  file("new", "new");
  file("old", "old");
  ASSERT_TRUE(replace_file(path("new"), path("old"))) << std::strerror(errno);
  EXPECT_EQ(bytes_of(path("old")), "new");
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(PlatformFiles, AFileIsReplacedAlsoWhereItIsOpen) {
  if (runs_under_wine()) GTEST_SKIP() << "wine refuses it";
  file("new", "new");
  file("old", "old");
  const Descriptor reader(open_file(path("old"), {}));
  ASSERT_TRUE(replace_file(path("new"), path("old"))) << std::strerror(errno);
  EXPECT_EQ(bytes_of(path("old")), "new");
  EXPECT_FALSE(fs::exists(path("new")));
  char back[3] = {};
  EXPECT_EQ(read_at(reader.number(), back, 3, 0), 3);
  EXPECT_EQ(std::string_view(back, 3), "old");
  EXPECT_FALSE(replace_file(path("none"), path("old")));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(PlatformFiles, WhatIsOpenCanBeRemoved) {
  Descriptor opened(open_file(file("a", "x"), {}));
  EXPECT_TRUE(remove_file(path("a")));
  opened.close();
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_FALSE(remove_file(path("a")));
  const fs::path folder = make_private_folder(folder_, "inner-");
  ASSERT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(remove_file(folder));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(PlatformFiles, ALockHoldsUntilItsDescriptorIsClosed) {
  Descriptor first(open_file(file("a", ""), {.write = true}));
  const Descriptor second(open_file(path("a"), {.write = true}));
  EXPECT_EQ(lock_file(first.number()), Lock::taken_by_us);
  EXPECT_EQ(lock_file(second.number()), Lock::taken_by_others);
  first.close();
  EXPECT_EQ(lock_file(second.number()), Lock::taken_by_us);
}

TEST_F(PlatformFiles, UnnamedFilesLeaveNothing) {
  {
    const Descriptor unnamed(open_unnamed_file(folder_));
    constexpr std::size_t bytes = std::size_t{3} << 20U;
    auto* memory = static_cast<char*>(map_file(unnamed.number(), bytes));
    ASSERT_NE(memory, nullptr) << std::strerror(errno);
    memory[0] = 'a';
    memory[bytes - 1] = 'z';
    EXPECT_EQ(memory[bytes - 1], 'z');
    unmap(memory, bytes);
    char first = 0;
    EXPECT_EQ(read_at(unnamed.number(), &first, 1, 0), 1);
    EXPECT_EQ(first, 'a');
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PlatformFiles, PatternsFindFilesInOrder) {
  for (const char* name : {"b2.pgm", "b1.pgm", "c1.pgm", "b1.txt"}) file(name, "");
  EXPECT_EQ(matching_files(path("b*.pgm").string()), (std::vector<fs::path>{path("b1.pgm"), path("b2.pgm")}));
  EXPECT_EQ(matching_files(path("?1.pgm").string()), (std::vector<fs::path>{path("b1.pgm"), path("c1.pgm")}));
  EXPECT_TRUE(matching_files(path("x*").string()).empty());
}

TEST(PlatformProcesses, AProgramWritesIntoAPipe) {
  int reading = -1;
  int writing = -1;
  ASSERT_TRUE(make_pipe(reading, writing));
  const Descriptor from(reading);
  Descriptor to(writing);
  EXPECT_FALSE(wait_readable(reading, 20));
  Process process = no_process;
  const std::vector<std::string> command{program_file().string(), "--gtest_list_tests",
                                         "--gtest_filter=PlatformProcesses.*"};
  ASSERT_EQ(start_process(command, {-1, writing, -1, -1}, process), 0);
  to.close();
  const std::string text = read_to_end(reading);
  EXPECT_NE(text.find("AProgramWritesIntoAPipe"), std::string::npos) << text;
  EXPECT_EQ(wait_for_end(process), 0);
}

TEST(PlatformProcesses, WhatIsNotThereIsNotStarted) {
  Process process = no_process;
  EXPECT_EQ(start_process({"ungrain-no-such-program"}, {-1, -1, -1, -1}, process), ENOENT);
  EXPECT_EQ(process, no_process);
  EXPECT_FALSE(is_on_path("ungrain-no-such-program"));
  std::string why_not;
  EXPECT_EQ(load_library("/ungrain/no/such/library", why_not), nullptr);
  EXPECT_FALSE(why_not.empty());
}

TEST(PlatformProcesses, RandomBytesDiffer) {
  char a[16] = {};
  char b[16] = {};
  ASSERT_TRUE(random_bytes(a, sizeof a) && random_bytes(b, sizeof b));
  EXPECT_NE(std::string_view(a, sizeof a), std::string_view(b, sizeof b));
}

TEST(PlatformMachine, MemoryAndTimesAreTold) {
  EXPECT_GT(available_memory(), std::size_t{16} << 20U);
  EXPECT_LT(available_memory(), std::size_t{1} << 50U);
  EXPECT_FALSE(host_name().empty());
  const std::int64_t before = thread_time_ns();
  volatile double sum = 0;
  while (thread_time_ns() - before < 20'000'000) sum = sum + 1;
  EXPECT_GT(thread_time_ns(), before);
}

}  // namespace
}  // namespace ungrain::platform
