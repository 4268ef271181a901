#include "io/tiff_handle.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <system_error>
#include <utility>

#include "io/failure.h"
#include "platform/files.h"

namespace ungrain::io {

struct TiffHandle::Client {
  const SourceFile* file = nullptr;  // of a file that is read
  int descriptor = -1;               // of a file that is written
  std::uint64_t at = 0;
  std::string message;

  static Client& of(thandle_t handle) { return *static_cast<Client*>(handle); }

  static int keep_message(TIFF* /*tiff*/, void* client, const char* /*module*/, const char* format,
                          va_list arguments) {
    std::array<char, 512> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    std::string& message = static_cast<Client*>(client)->message;
    if (message.empty()) message = one_line(text.data());
    return 1;  // suppresses the process-wide handler
  }
  static int drop_message(TIFF* /*tiff*/, void* /*client*/, const char* /*module*/, const char* /*format*/,
                          va_list /*arguments*/) {
    return 1;
  }

  static tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
    Client& client = of(handle);
    try {
      std::size_t got = 0;
      if (client.file != nullptr) {
        got = client.file->read_some(to, static_cast<std::size_t>(size), client.at);
      } else {
        got = client.transfer(
            [&](std::size_t done) {
              return platform::read_at(client.descriptor, static_cast<std::byte*>(to) + done,
                                       static_cast<std::size_t>(size) - done, client.at + done);
            },
            static_cast<std::size_t>(size));
      }
      client.at += got;
      return static_cast<tmsize_t>(got);
    } catch (const std::exception& error) {
      if (client.message.empty()) client.message = error.what();
      return -1;
    }
  }

  static tmsize_t write(thandle_t handle, void* from, tmsize_t size) {
    Client& client = of(handle);
    if (client.file != nullptr) return -1;
    const std::size_t put = client.transfer(
        [&](std::size_t done) {
          return platform::write_at(client.descriptor, static_cast<const std::byte*>(from) + done,
                                    static_cast<std::size_t>(size) - done, client.at + done);
        },
        static_cast<std::size_t>(size));
    client.at += put;
    return static_cast<tmsize_t>(put);
  }

  // Repeats `step` for as many bytes as the system takes or gives; a refusal becomes the message.
  template <class Step>
  std::size_t transfer(Step step, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const std::ptrdiff_t moved = step(done);
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0 && message.empty()) message = std::generic_category().message(errno);
      if (moved <= 0) break;
      done += static_cast<std::size_t>(moved);
    }
    return done;
  }

  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    Client& client = of(handle);
    client.at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? client.at + offset : size(handle) + offset;
    return client.at;
  }
  static int close(thandle_t /*handle*/) { return 0; }
  static toff_t size(thandle_t handle) {
    const Client& client = of(handle);
    if (client.file != nullptr) return client.file->size();
    const std::optional<platform::FileStatus> status = platform::status_of(client.descriptor);
    return status ? static_cast<toff_t>(status->size) : 0;
  }
};

namespace {

struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using OpenOptionsPointer = std::unique_ptr<TIFFOpenOptions, FreeOptions>;

OpenOptionsPointer quiet_options(void* client, TIFFErrorHandlerExtR on_error,
                                 TIFFErrorHandlerExtR on_warning) {
  OpenOptionsPointer options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, client);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, client);
  return options;
}

}  // namespace

TiffHandle::TiffHandle(const SourceFile& file, std::uint64_t directory)
    : client_(std::make_shared<Client>()) {
  client_->file = &file;
  const OpenOptionsPointer options =
      quiet_options(client_.get(), &Client::keep_message, &Client::drop_message);
  // h: reads no directory yet; m: maps no memory, because a mapped file that shrinks would kill the program.
  tiff_.reset(TIFFClientOpenExt(file.path().string().c_str(), "rhm", client_.get(), &Client::read,
                                &Client::write, &Client::seek, &Client::close, &Client::size, nullptr,
                                nullptr, options.get()));
  if (!tiff_ || TIFFSetSubDirectory(tiff_.get(), directory) != 1) {
    fail(file.path(), fmt::format("damaged or truncated: {}", take_message()));
  }
}

TiffHandle::TiffHandle(int descriptor, const std::filesystem::path& named, const char* mode)
    : client_(std::make_shared<Client>()) {
  client_->descriptor = descriptor;
  const OpenOptionsPointer options =
      quiet_options(client_.get(), &Client::keep_message, &Client::drop_message);
  tiff_.reset(TIFFClientOpenExt(named.string().c_str(), mode, client_.get(), &Client::read, &Client::write,
                                &Client::seek, &Client::close, &Client::size, nullptr, nullptr,
                                options.get()));
  if (!tiff_) fail(named, fmt::format("cannot be written: {}", take_message()));
}

bool TiffHandle::has_message() const { return !client_->message.empty(); }

std::string TiffHandle::take_message() {
  std::string message = std::exchange(client_->message, {});
  return message.empty() ? "libtiff failed without a message" : message;
}

}  // namespace ungrain::io
