#include "io/gzip.h"

#define ZLIB_CONST
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "io/failure.h"

namespace ungrain::io {
namespace {

constexpr std::size_t block_bytes = 64 * 1024;
constexpr std::size_t largest_piece = std::size_t{1} << 20U;  // of one call; zlib counts in 32 bits
constexpr std::size_t most_saved = 128;                       // states of about 40 KiB
constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
constexpr int gzip_window = 15 + 16;  // 32 KiB, with gzip's header and checksum
constexpr int bare_window = -15;      // 32 KiB, with neither

int window_of(GzipReader::Wrapping wrapping) {
  return wrapping == GzipReader::Wrapping::gzip ? gzip_window : bare_window;
}

const char* name_of(GzipReader::Wrapping wrapping) {
  return wrapping == GzipReader::Wrapping::gzip ? "gzip" : "deflated";
}

bool is_gzip_at(const SourceFile& file, std::uint64_t offset) {
  std::array<unsigned char, 2> start{};
  return file.read_some(start.data(), start.size(), offset) == start.size() && start[0] == 0x1f &&
         start[1] == 0x8b;
}

}  // namespace

bool is_gzip(const SourceFile& file) { return is_gzip_at(file, 0); }

// Never moved: zlib's state points back to its stream.
struct GzipReader::State {
  explicit State(Wrapping wrapping) {
    if (inflateInit2(&stream, window_of(wrapping)) != Z_OK) throw std::bad_alloc();
  }
  State(const State& other) {
    // zlib's argument is not const, but it does not change it.
    if (inflateCopy(&stream, const_cast<z_stream*>(&other.stream)) != Z_OK) throw std::bad_alloc();
  }
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  z_stream stream{};
};

struct GzipReader::Saved {
  std::uint64_t position;  // in the content
  std::uint64_t consumed;  // bytes of the file
  std::unique_ptr<State> state;
};

GzipReader::GzipReader(const SourceFile& file, Wrapping wrapping, std::uint64_t begin)
    : file_(file),
      wrapping_(wrapping),
      begin_(begin),
      state_(std::make_unique<State>(wrapping)),
      input_(block_bytes),
      read_to_(begin),
      spacing_(largest_piece) {}

GzipReader::~GzipReader() = default;

void GzipReader::fill() {
  const std::size_t got = file_.read_some(input_.data(), input_.size(), read_to_);
  if (got == 0) {
    fail(file_.path(), fmt::format("truncated: its {} data end too early", name_of(wrapping_)));
  }
  read_to_ += got;
  state_->stream.next_in = reinterpret_cast<const Bytef*>(input_.data());
  state_->stream.avail_in = static_cast<uInt>(got);
}

// A file may hold several members; their contents follow each other. Anything else behind a member is not
// part of the content.
void GzipReader::end_member() {
  const std::uint64_t consumed = read_to_ - state_->stream.avail_in;
  if (wrapping_ == Wrapping::gzip && is_gzip_at(file_, consumed)) {
    inflateReset(&state_->stream);
  } else {
    ended_ = true;
  }
}

// Decodes up to `size` bytes; fewer at the content's end.
std::size_t GzipReader::decode(std::byte* to, std::size_t size) {
  z_stream& stream = state_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(std::min(size, largest_piece));
  const uInt asked = stream.avail_out;
  const std::uint64_t start = std::exchange(position_, unknown);  // stays where an error interrupts
  while (stream.avail_out > 0 && !ended_) {
    if (stream.avail_in == 0) fill();
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      end_member();
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(file_.path(), fmt::format("its {} data are damaged before byte {}: {}", name_of(wrapping_),
                                     read_to_ - stream.avail_in,
                                     stream.msg == nullptr ? "they need a dictionary" : stream.msg));
    }
  }
  const std::size_t decoded = asked - stream.avail_out;
  position_ = start + decoded;
  return decoded;
}

void GzipReader::save() {
  const std::uint64_t last = saved_.empty() ? 0 : saved_.back().position;
  if (ended_ || position_ < last + spacing_) return;
  if (saved_.size() == most_saved) {  // every second stays
    for (std::size_t i = 0; i < most_saved / 2; ++i) saved_[i] = std::move(saved_[2 * i + 1]);
    saved_.resize(most_saved / 2);
    spacing_ *= 2;
    if (position_ < saved_.back().position + spacing_) return;
  }
  saved_.push_back({position_, read_to_ - state_->stream.avail_in, std::make_unique<State>(*state_)});
}

// To the nearest saved state where the place lies before the current one or behind that state.
void GzipReader::seek(std::uint64_t offset) {
  const auto behind =
      std::upper_bound(saved_.begin(), saved_.end(), offset,
                       [](std::uint64_t place, const Saved& saved) { return place < saved.position; });
  const Saved* nearest = behind == saved_.begin() ? nullptr : &*(behind - 1);
  const std::uint64_t from = nearest == nullptr ? 0 : nearest->position;
  if (offset < position_ || from > position_) {
    state_ =
        nearest == nullptr ? std::make_unique<State>(wrapping_) : std::make_unique<State>(*nearest->state);
    state_->stream.avail_in = 0;
    read_to_ = nearest == nullptr ? begin_ : nearest->consumed;
    position_ = from;
    ended_ = false;
  }
  std::vector<std::byte> skipped(block_bytes);
  while (position_ < offset && !ended_) {
    decode(skipped.data(),
           static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, offset - position_)));
    save();
  }
}

std::size_t GzipReader::read_some(void* to, std::size_t size, std::uint64_t offset) {
  if (offset != position_) seek(offset);
  if (offset != position_) return 0;  // the content ends before it
  std::size_t done = 0;
  while (done < size && !ended_) {
    done += decode(static_cast<std::byte*>(to) + done, size - done);
    save();
  }
  return done;
}

void GzipReader::read(void* to, std::size_t size, std::uint64_t offset) {
  if (read_some(to, size, offset) < size) {
    fail(file_.path(),
         fmt::format("truncated: its content ends after {} bytes, and the header promises more", position_));
  }
}

void GzipReader::check_end() {
  std::vector<std::byte> rest(block_bytes);
  std::size_t done = 0;
  while (done < block_bytes && !ended_) done += decode(rest.data(), block_bytes - done);
}

struct GzipWriter::State {
  State() {
    constexpr int level = 6;
    constexpr int memory_level = 8;  // zlib's default
    if (deflateInit2(&stream, level, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
    header.os = 255;  // unknown: the same bytes on every system; the time is 0
    deflateSetHeader(&stream, &header);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { deflateEnd(&stream); }

  z_stream stream{};
  gz_header header{};
};

GzipWriter::GzipWriter(TemporaryFile& file)
    : file_(file), state_(std::make_unique<State>()), output_(block_bytes) {}

GzipWriter::~GzipWriter() = default;

// Until zlib has taken all input and, with Z_FINISH, given all output.
void GzipWriter::run(int flush) {
  z_stream& stream = state_->stream;
  int result = Z_OK;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(output_.data());
    stream.avail_out = static_cast<uInt>(output_.size());
    result = deflate(&stream, flush);
    const std::size_t made = output_.size() - stream.avail_out;
    file_.write(output_.data(), made, written_);
    written_ += made;
  } while (stream.avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
}

void GzipWriter::write(const void* from, std::size_t size) {
  const auto* bytes = static_cast<const Bytef*>(from);
  while (size > 0) {
    const std::size_t piece = std::min(size, largest_piece);
    state_->stream.next_in = bytes;
    state_->stream.avail_in = static_cast<uInt>(piece);
    run(Z_NO_FLUSH);
    bytes += piece;
    size -= piece;
  }
}

void GzipWriter::finish() {
  state_->stream.avail_in = 0;
  run(Z_FINISH);
}

}  // namespace ungrain::io
