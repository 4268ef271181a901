#include "streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "files.h"
#include "io/scratch_folder.h"
#include "output.h"
#include "platform/console.h"
#include "platform/files.h"
#include "signals.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

constexpr const char* input_text = "standard input";
constexpr const char* output_text = "standard output";

const io::ScratchFolder& scratch() {
  static const io::ScratchFolder folder;
  return folder;
}

// The temporary files of the streams, once they exist.
struct StreamFiles {
  std::filesystem::path input;
  std::filesystem::path output;
};

StreamFiles& stream_files() {
  static StreamFiles paths;
  return paths;
}

[[noreturn]] void fail(const char* stream, std::string_view what, int error_number) {
  throw Error(ErrorCode::io,
              fmt::format("{}: {}: {}", stream, what, std::generic_category().message(error_number)));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { platform::close_file(number_); }
  int number() const { return number_; }

 private:
  int number_;
};

// Waits until a call would not block. Another thread handles signals, so they do not interrupt calls: this
// polls.
void wait_for(int descriptor, bool (*is_ready)(int, int)) {
  constexpr int milliseconds = 50;
  for (;;) {
    if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
    if (is_ready(descriptor, milliseconds)) return;
  }
}

bool passing(int error_number) { return error_number == EINTR || error_number == EAGAIN; }

void write_all(const char* stream, int descriptor, const char* from, std::size_t size, std::size_t most) {
  while (size > 0) {
    wait_for(descriptor, platform::wait_writable);
    const std::ptrdiff_t put = platform::write_some(descriptor, from, std::min(size, most));
    if (put < 0 && passing(errno)) continue;
    if (put < 0) fail(stream, "cannot be written", errno);
    from += put;
    size -= static_cast<std::size_t>(put);
  }
}

// False at the end.
template <class Use>
bool read_some(const char* stream, int descriptor, Use use) {
  static thread_local std::array<char, std::size_t{1} << 18U> block;
  wait_for(descriptor, platform::wait_readable);
  const std::ptrdiff_t got = platform::read_some(descriptor, block.data(), block.size());
  if (got < 0 && passing(errno)) return true;
  if (got < 0) fail(stream, "cannot be read", errno);
  use(block.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::filesystem::path copy_of_input() {
  std::filesystem::path path = scratch().file("input");
  const Descriptor copy(
      platform::open_file(path, {.read = false, .write = true, .create = true, .must_be_new = true}));
  if (copy.number() < 0) fail(input_text, "no temporary file can be made for it", errno);
  const auto keep = [&](const char* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const std::ptrdiff_t put = platform::write_some(copy.number(), bytes + done, size - done);
      if (put < 0 && passing(errno)) continue;
      if (put < 0)
        fail(input_text, fmt::format("cannot be copied to {}", path.parent_path().string()), errno);
      done += static_cast<std::size_t>(put);
    }
  };
  while (read_some(input_text, platform::standard_input, keep)) {
  }
  return path;
}

void replace_all(std::string& text, const std::string& what, const char* by) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), by);
  }
}

std::string dotted(const std::string& format) { return format.starts_with('.') ? format : "." + format; }

void check_format(const std::string& format, const std::string& output) {
  if (format.empty()) return;
  if (output != stream_name) {
    throw UsageError("--format is for the standard output (-o -): a file's name tells its format");
  }
  if (!io::can_write("x" + dotted(format), nullptr)) {
    std::vector<std::string> known = io::writable_extensions();
    for (std::string& extension : known) extension.erase(0, 1);
    throw UsageError(fmt::format("--format takes one of {}, got '{}'", fmt::join(known, ", "), format));
  }
}

void check_output() {
  if (standard_output_was_closed()) throw Error(ErrorCode::io, "standard output: is closed");
  if (platform::is_terminal(platform::standard_output)) {
    throw UsageError("the standard output is a terminal: send it to a file or a program, or name a file");
  }
  put_reports_aside();
}

}  // namespace

void check_streams(const std::vector<std::string>& inputs, const std::string& output,
                   const std::string& format) {
  check_format(format, output);
  const auto streamed = std::count(inputs.begin(), inputs.end(), stream_name);
  if (streamed > 1) throw UsageError("the standard input (-) can be read once, and is named twice");
  if (streamed > 0 && platform::is_terminal(platform::standard_input)) {
    throw UsageError("the standard input is a terminal, not an image");
  }
  if (output == stream_name) check_output();
}

std::string shown_input(const std::filesystem::path& name) {
  return name == stream_name ? input_text : name.string();
}

std::string shown_output(const std::filesystem::path& name) {
  return name == stream_name ? output_text : name.string();
}

std::string with_stream_names(std::string_view message) {
  std::string text(message);
  replace_all(text, stream_files().input.string(), input_text);
  replace_all(text, stream_files().output.string(), output_text);
  return text;
}

std::unique_ptr<io::InputFile> open_input(const std::filesystem::path& name, const io::OpenOptions& options) {
  io::OpenOptions stoppable = options;
  stoppable.stop = [] { return interrupted().cancelled(); };
  if (name != stream_name) return io::InputFile::open(name, stoppable);
  if (stream_files().input.empty()) stream_files().input = copy_of_input();
  return io::InputFile::open(stream_files().input, stoppable);
}

ResultFile::ResultFile(const std::filesystem::path& named, const std::string& input_format,
                       const std::string& format)
    : path_(named), streamed_(named == stream_name) {
  if (!streamed_) return;
  const std::string extension =
      format.empty() ? result_extension("x" + io::extension_of(input_format)) : dotted(format);
  path_ = stream_files().output = scratch().file("result" + extension);
}

void ResultFile::deliver() const {
  if (!streamed_) return;
  const Descriptor result(platform::open_file(path_, {}));
  if (result.number() < 0) fail(output_text, "its temporary file is gone", errno);
  const std::optional<platform::FileStatus> status = platform::status_of(platform::standard_output);
  const bool regular = status && status->kind == platform::FileKind::file;
  const std::size_t most = regular ? std::size_t{1} << 20U : platform::pipe_block();
  while (read_some(output_text, result.number(), [&](const char* bytes, std::size_t size) {
    write_all(output_text, platform::standard_output, bytes, size, most);
  })) {
  }
}

}  // namespace ungrain::cli
