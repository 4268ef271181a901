// A folder of its own for each test of files, and how such tests look at bytes and failures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "platform/files.h"
#include "ungrain/error.h"

namespace ungrain::testing {

class FolderTest : public ::testing::Test {
 protected:
  FolderTest()
      : folder_(platform::make_private_folder(std::filesystem::temp_directory_path(), "ungrain-test-")) {}
  ~FolderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path path(const std::string& name) const { return (folder_ / name).make_preferred(); }

  std::filesystem::path file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  static std::string bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

// Runs `call`, which must throw Error(io) in one line that begins with the file's name; returns the rest.
inline std::string io_failure(const std::filesystem::path& file, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::io) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(file.string() + ": ")) << message;
    return message.substr(std::min(message.size(), file.string().size() + 2));
  }
  ADD_FAILURE() << file << ": no error";
  return {};
}

}  // namespace ungrain::testing
