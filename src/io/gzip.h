// A gzip file's content by position, also that of other deflated bytes, and a gzip file from bytes in order.
// zlib compresses and decompresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/source_file.h"
#include "io/temporary_file.h"

namespace ungrain::io {

// Whether the file begins as gzip files do.
bool is_gzip(const SourceFile& file);

// deflate packs at most this many bytes into one.
constexpr std::uint64_t largest_gzip_ratio = 1032;

// Decodes in order. Decoder states are saved on the way, so that going back decodes again from the nearest
// state before the place: 1 MiB of content at most, or 1/64 of a content above 128 MiB.
class GzipReader {
 public:
  // What is around the deflated bytes: gzip's header and checksum, or nothing.
  enum class Wrapping : std::uint8_t { gzip, none };

  // `file` stays open and in its place. The compressed bytes begin at `begin`.
  explicit GzipReader(const SourceFile& file, Wrapping wrapping = Wrapping::gzip, std::uint64_t begin = 0);
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  ~GzipReader();

  // Reads up to `size` bytes of the content from `offset` on; fewer at its end. Throws where the data are
  // damaged or end too early.
  std::size_t read_some(void* to, std::size_t size, std::uint64_t offset);
  // Reads all of them or throws.
  void read(void* to, std::size_t size, std::uint64_t offset);
  // Decodes what is left, 64 KiB at most. zlib compares the checksum where this reaches the end.
  void check_end();

 private:
  struct State;
  struct Saved;

  void fill();
  void end_member();
  std::size_t decode(std::byte* to, std::size_t size);
  void save();
  void seek(std::uint64_t offset);

  const SourceFile& file_;
  Wrapping wrapping_;
  std::uint64_t begin_;
  std::unique_ptr<State> state_;
  std::vector<std::byte> input_;
  std::uint64_t read_to_;       // in the file: behind the bytes in input_
  std::uint64_t position_ = 0;  // in the content: of the next byte that is decoded
  bool ended_ = false;
  std::vector<Saved> saved_;  // by position
  std::uint64_t spacing_;     // of the saved states, in the content
};

class GzipWriter {
 public:
  explicit GzipWriter(TemporaryFile& file);  // stays in its place
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter();

  void write(const void* from, std::size_t size);
  void finish();  // after the last byte

 private:
  struct State;
  void run(int flush);

  TemporaryFile& file_;
  std::unique_ptr<State> state_;
  std::vector<std::byte> output_;
  std::uint64_t written_ = 0;
};

}  // namespace ungrain::io
