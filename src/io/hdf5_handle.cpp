#include "io/hdf5_handle.h"

#include <fmt/format.h>

#include "io/failure.h"

namespace ungrain::io {
namespace {

std::recursive_mutex& calls() {
  static auto* const mutex = new std::recursive_mutex;  // never destroyed: handles may outlive other statics
  return *mutex;
}

herr_t keep_first(unsigned, const H5E_error2_t* error, void* reason) {
  auto& text = *static_cast<std::string*>(reason);
  if (text.empty() && error->desc != nullptr) text = error->desc;
  return 0;
}

herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }

// How datasets and groups are opened: not through links to other files.
const Hdf5Handle& access_within_file(hid_t kind) {
  const auto make = [](hid_t of) {
    Hdf5Handle list(H5Pcreate(of), H5Pclose);
    H5Pset_elink_cb(list.id(), refuse_link, nullptr);
    return new Hdf5Handle(std::move(list));  // never closed
  };
  static const Hdf5Handle* const of_datasets = make(H5P_DATASET_ACCESS);
  static const Hdf5Handle* const of_groups = make(H5P_GROUP_ACCESS);
  return kind == H5P_DATASET_ACCESS ? *of_datasets : *of_groups;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(calls()) {
  // An interrupted program ends while another thread is inside libhdf5, whose own clean-up would wait or
  // crash.
  [[maybe_unused]] static const herr_t no_clean_up = H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // a setting of the thread
}

bool Hdf5Handle::close() {
  if (id_ < 0) return true;
  const Hdf5Lock lock;
  return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0;
}

std::string hdf5_reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
  // "file write failed: time = ..., filename = ..., errno = 28, error message = 'No space left on device',
  // ..."
  constexpr std::string_view of_system = "error message = '";
  if (const std::size_t at = text.find(of_system); at != std::string::npos) {
    text = text.substr(at + of_system.size());
    text = text.substr(0, text.find('\''));
  }
  return text.empty() ? "libhdf5 gives no reason" : text;
}

void fail_hdf5(const std::filesystem::path& file, std::string_view what) {
  fail(file, fmt::format("{}: {}", what, hdf5_reason()));
}

Hdf5Handle checked(const std::filesystem::path& file, std::string_view what, hid_t id,
                   Hdf5Handle::Close close) {
  if (id < 0) fail_hdf5(file, what);
  return {id, close};
}

Hdf5Handle open_hdf5_file(const std::filesystem::path& file, unsigned flags) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  // Some file systems have no locks: then there are none to look at.
  H5Pset_file_locking(access.id(), flags == H5F_ACC_RDONLY, true);
#endif
  return checked(file, "truncated or damaged HDF5 file", H5Fopen(file.c_str(), flags, access.id()), H5Fclose);
}

Hdf5Handle open_hdf5_dataset(hid_t file, const std::string& path) {
  return {H5Dopen2(file, path.c_str(), access_within_file(H5P_DATASET_ACCESS).id()), H5Dclose};
}

Hdf5Handle open_hdf5_group(hid_t file, const std::string& path) {
  return {H5Gopen2(file, path.c_str(), access_within_file(H5P_GROUP_ACCESS).id()), H5Gclose};
}

}  // namespace ungrain::io
