// Images that tests compute on the spot, and what they check about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ungrain/image.h"

namespace ungrain::testing {

enum class Layout { interleaved, planar, padded, flipped };
const char* name(Layout layout);

// An image in memory of any layout, with guard bytes before, after and between its rows.
class TestImage {
 public:
  TestImage(const ImageSpec& spec, Layout layout);
  TestImage(TestImage&&) = default;
  TestImage& operator=(TestImage&&) = default;
  ImageView view() { return view_; }
  ConstImageView view() const { return view_; }
  // Whether every byte that is not a sample still has its guard value.
  bool guards_intact() const;
  std::vector<std::byte> bytes() const { return memory_; }
  // Of the first sample in bytes().
  std::ptrdiff_t offset() const { return static_cast<const std::byte*>(view_.data) - memory_.data(); }
  double at(int x, int y, int channel) const;
  void set(int x, int y, int channel, double value);

 private:
  std::vector<std::byte> memory_;
  ImageView view_;
};

// Edges, gradients, texture and noise, values from 0 to white; reproducible from the seed.
void fill_with_picture(TestImage& image, std::uint32_t seed = 1);
void fill_with(TestImage& image, double value);

// Pictures that all differ.
class ImageSequence {
 public:
  ImageSequence(int count, const ImageSpec& spec, Layout layout = Layout::interleaved);
  std::vector<ImageView> views();
  std::vector<ConstImageView> views() const;
  std::vector<std::uint64_t> hashes() const;

  std::vector<TestImage> images;
};

struct Difference {
  double largest = 0;  // absolute, in pixel units
  std::string where;   // "(x, y) channel c: got …, expected …"
  bool finite = true;  // both images
};
Difference difference(const TestImage& image, const TestImage& expected);

std::uint64_t hash_of(const ConstImageView& view);  // FNV-1a over the samples in reading order

}  // namespace ungrain::testing
