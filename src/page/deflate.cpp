#include "page/deflate.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <queue>
#include <utility>
#include <vector>

namespace ungrain::page {
namespace {

constexpr int end_of_block = 256;
constexpr int literal_codes = 286;  // bytes, the end, and lengths
constexpr int distance_codes = 30;
constexpr int longest_code = 15;
constexpr int shortest_match = 6;  // a shorter one takes more bits than its bytes, in pictures
constexpr int hashed_bytes = 4;
constexpr int longest_match = 258;
constexpr int window = 32768;
constexpr std::size_t symbols_a_block = 1 << 16;

// Bits are packed from the lowest of each byte on.
class BitWriter {
 public:
  void put(std::uint32_t bits, int count) {
    waiting_ |= static_cast<std::uint64_t>(bits) << held_;
    held_ += count;
    while (held_ >= 8) {
      bytes_ += static_cast<char>(waiting_ & 0xff);
      waiting_ >>= 8;
      held_ -= 8;
    }
  }
  void fill_byte() {
    if (held_ > 0) put(0, 8 - held_);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t waiting_ = 0;
  int held_ = 0;
};

// A byte (distance 0), or so many bytes from so far back.
struct Symbol {
  std::uint16_t value;  // the byte, or the length
  std::uint16_t distance;
};

// A length or a distance is a code for a range and some bits for where in it.
struct Range {
  int code;
  int extra_bits;
  int extra;
};

Range range_of_length(int length) {
  if (length == longest_match) return {285, 0, 0};
  const int steps = length - 3;
  if (steps < 8) return {257 + steps, 0, 0};
  int bits = 0;
  while ((steps >> (bits + 3)) != 0) ++bits;
  const int quarter = (steps >> bits) & 3;
  return {257 + 4 * (bits + 1) + quarter, bits, steps & ((1 << bits) - 1)};
}

Range range_of_distance(int distance) {
  const int steps = distance - 1;
  if (steps < 4) return {steps, 0, 0};
  int bits = 0;
  while ((steps >> (bits + 2)) != 0) ++bits;
  const int half = (steps >> bits) & 1;
  return {2 * (bits + 1) + half, bits, steps & ((1 << bits) - 1)};
}

// The lengths of Huffman's codes, at most longest_code; 0 for what does not occur.
std::vector<int> code_lengths(std::vector<std::uint32_t> counts) {
  struct Node {
    std::uint64_t count;
    int left;
    int right;
  };
  const int codes = static_cast<int>(counts.size());
  for (;;) {
    std::vector<Node> nodes;
    using Entry = std::pair<std::uint64_t, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> rarest;
    std::vector<int> lengths(counts.size(), 0);
    for (int code = 0; code < codes; ++code) {
      const std::uint32_t count = counts[static_cast<std::size_t>(code)];
      nodes.push_back({count, -1, -1});
      if (count > 0) rarest.emplace(count, code);
    }
    if (rarest.size() < 2) {
      // One code takes one bit all the same, and none is told as one.
      lengths[rarest.empty() ? 0 : static_cast<std::size_t>(rarest.top().second)] = 1;
      return lengths;
    }
    while (rarest.size() > 1) {
      const auto [first_count, first] = rarest.top();
      rarest.pop();
      const auto [second_count, second] = rarest.top();
      rarest.pop();
      nodes.push_back({first_count + second_count, first, second});
      rarest.emplace(first_count + second_count, static_cast<int>(nodes.size()) - 1);
    }
    std::vector<int> depth(nodes.size(), 0);
    int deepest = 0;
    for (int node = static_cast<int>(nodes.size()) - 1; node >= 0; --node) {
      const auto [count, left, right] = nodes[static_cast<std::size_t>(node)];
      const int below = depth[static_cast<std::size_t>(node)] + 1;
      if (left >= 0) {
        depth[static_cast<std::size_t>(left)] = below;
        depth[static_cast<std::size_t>(right)] = below;
      } else if (count > 0) {
        lengths[static_cast<std::size_t>(node)] = below - 1;
        deepest = std::max(deepest, below - 1);
      }
    }
    if (deepest <= longest_code) return lengths;
    // Counts that are closer together make a flatter tree.
    for (std::uint32_t& count : counts) {
      if (count > 0) count = count / 2 + 1;
    }
  }
}

// Huffman's codes are written from their highest bit on: turned round here.
std::vector<std::uint32_t> codes_of(const std::vector<int>& lengths) {
  std::array<int, longest_code + 1> of_length{};
  for (const int length : lengths) ++of_length[static_cast<std::size_t>(length)];
  of_length[0] = 0;
  std::array<std::uint32_t, longest_code + 1> next{};
  std::uint32_t code = 0;
  for (std::size_t length = 1; length <= longest_code; ++length) {
    code = (code + static_cast<std::uint32_t>(of_length[length - 1])) << 1;
    next[length] = code;
  }
  std::vector<std::uint32_t> codes(lengths.size(), 0);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const int length = lengths[i];
    if (length == 0) continue;
    std::uint32_t straight = next[static_cast<std::size_t>(length)]++;
    for (int bit = 0; bit < length; ++bit) {
      codes[i] = (codes[i] << 1) | (straight & 1);
      straight >>= 1;
    }
  }
  return codes;
}

void write_block(BitWriter& out, const std::vector<Symbol>& symbols, bool last) {
  std::vector<std::uint32_t> literals(literal_codes, 0);
  std::vector<std::uint32_t> distances(distance_codes, 0);
  literals[end_of_block] = 1;
  for (const Symbol& symbol : symbols) {
    if (symbol.distance == 0) {
      ++literals[symbol.value];
    } else {
      ++literals[static_cast<std::size_t>(range_of_length(symbol.value).code)];
      ++distances[static_cast<std::size_t>(range_of_distance(symbol.distance).code)];
    }
  }
  const std::vector<int> literal_lengths = code_lengths(std::move(literals));
  const std::vector<int> distance_lengths = code_lengths(std::move(distances));
  const std::vector<std::uint32_t> literal_bits = codes_of(literal_lengths);
  const std::vector<std::uint32_t> distance_bits = codes_of(distance_lengths);

  out.put(last ? 1 : 0, 1);
  out.put(2, 2);  // codes of its own
  out.put(literal_codes - 257, 5);
  out.put(distance_codes - 1, 5);
  out.put(19 - 4, 4);
  // How the lengths themselves are told: 0 to 15 in four bits each, without the codes for repeats (the first
  // three of the format's order), which would save a hundred bytes a block.
  for (int i = 0; i < 19; ++i) out.put(i < 3 ? 0 : 4, 3);
  std::vector<int> plain(16, 4);
  const std::vector<std::uint32_t> length_bits = codes_of(plain);
  for (const int length : literal_lengths) out.put(length_bits[static_cast<std::size_t>(length)], 4);
  for (const int length : distance_lengths) out.put(length_bits[static_cast<std::size_t>(length)], 4);

  const auto put_literal = [&](int code) {
    out.put(literal_bits[static_cast<std::size_t>(code)], literal_lengths[static_cast<std::size_t>(code)]);
  };
  for (const Symbol& symbol : symbols) {
    if (symbol.distance == 0) {
      put_literal(symbol.value);
      continue;
    }
    const Range length = range_of_length(symbol.value);
    put_literal(length.code);
    out.put(static_cast<std::uint32_t>(length.extra), length.extra_bits);
    const Range distance = range_of_distance(symbol.distance);
    out.put(distance_bits[static_cast<std::size_t>(distance.code)],
            distance_lengths[static_cast<std::size_t>(distance.code)]);
    out.put(static_cast<std::uint32_t>(distance.extra), distance.extra_bits);
  }
  put_literal(end_of_block);
}

std::uint32_t adler32(std::span<const std::uint8_t> data) {
  constexpr std::uint32_t prime = 65521;
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const std::uint8_t byte : data) {
    a = (a + byte) % prime;
    b = (b + a) % prime;
  }
  return b << 16 | a;
}

// Where four bytes were seen last.
class LastSeen {
 public:
  explicit LastSeen(std::span<const std::uint8_t> data) : data_(data), at_(1 << bits, -1) {}

  // The position before `here` with the same hash, which takes its place.
  std::ptrdiff_t exchange(std::ptrdiff_t here) {
    std::uint32_t four = 0;
    std::memcpy(&four, data_.data() + here, sizeof(four));
    return std::exchange(at_[(four * 2654435761U) >> (32 - bits)], here);
  }

 private:
  static constexpr int bits = 15;
  std::span<const std::uint8_t> data_;
  std::vector<std::ptrdiff_t> at_;
};

}  // namespace

std::string zlib_compressed(std::span<const std::uint8_t> data) {
  BitWriter out;
  out.bytes() += "\x78\x9c";
  LastSeen last_seen(data);
  std::vector<Symbol> symbols;
  const auto size = static_cast<std::ptrdiff_t>(data.size());
  std::ptrdiff_t here = 0;
  while (here < size) {
    std::ptrdiff_t length = 0;
    std::ptrdiff_t distance = 0;
    if (here + hashed_bytes <= size) {
      const std::ptrdiff_t before = last_seen.exchange(here);
      if (before >= 0 && here - before <= window - 1) {
        const std::ptrdiff_t most = std::min<std::ptrdiff_t>(longest_match, size - here);
        while (length < most && data[static_cast<std::size_t>(before + length)] ==
                                    data[static_cast<std::size_t>(here + length)]) {
          ++length;
        }
        distance = here - before;
      }
    }
    if (length >= shortest_match) {
      symbols.push_back({static_cast<std::uint16_t>(length), static_cast<std::uint16_t>(distance)});
      for (std::ptrdiff_t i = here + 1; i < here + length && i + hashed_bytes <= size; ++i)
        last_seen.exchange(i);
      here += length;
    } else {
      symbols.push_back({data[static_cast<std::size_t>(here)], 0});
      ++here;
    }
    if (symbols.size() == symbols_a_block && here < size) {
      write_block(out, symbols, false);
      symbols.clear();
    }
  }
  write_block(out, symbols, true);
  out.fill_byte();
  const std::uint32_t check = adler32(data);
  for (int shift = 24; shift >= 0; shift -= 8) out.bytes() += static_cast<char>(check >> shift & 0xff);
  return std::move(out.bytes());
}

}  // namespace ungrain::page
