// libhdf5's identifiers, its errors, and the lock around its calls.
#pragma once

// Names whose meaning differs between versions of libhdf5 have that of 1.10.
#define H5_USE_110_API
#include <hdf5.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace ungrain::io {

// libhdf5 takes calls of one thread at a time, and reading and writing run on two. A thread may lock again.
class Hdf5Lock {
 public:
  Hdf5Lock();  // also turns off the messages that libhdf5 prints by itself

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close closes) : id_(id), close_(closes) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() { close(); }

  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  bool close();  // false: libhdf5 could not

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// The innermost reason of the last error: that of the operating system where there is one.
std::string hdf5_reason();
// "<file>: <what>: <the reason>".
[[noreturn]] void fail_hdf5(const std::filesystem::path& file, std::string_view what);

// Throws fail_hdf5() where libhdf5 returned an error.
Hdf5Handle checked(const std::filesystem::path& file, std::string_view what, hid_t id,
                   Hdf5Handle::Close close);
inline void check(const std::filesystem::path& file, std::string_view what, herr_t status) {
  if (status < 0) fail_hdf5(file, what);
}

// Opens a file; `flags` are H5F_ACC_RDONLY or H5F_ACC_RDWR.
Hdf5Handle open_hdf5_file(const std::filesystem::path& file, unsigned flags);
// A dataset, or nothing where there is none of this path. Links to other files are not followed.
Hdf5Handle open_hdf5_dataset(hid_t file, const std::string& path);
Hdf5Handle open_hdf5_group(hid_t file, const std::string& path);

}  // namespace ungrain::io
