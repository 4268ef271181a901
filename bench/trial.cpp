#include "bench/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "cpu/simd.h"
#include "scene/scene.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"

namespace ungrain::bench {
namespace {

constexpr int tile_side = 1024;

ImageSpec floats_of(ImageSpec spec) {
  spec.range = spec.white();
  spec.type = PixelType::f32;
  return spec;
}

struct Tile {
  Image clean;
  Image noisy;
};

// The first tile of a picture. Rendering takes longer than most filters: tiles stay.
const Tile& tile_of(ImageSpec spec) {
  spec.width = std::min(spec.width, tile_side);
  spec.height = std::min(spec.height, tile_side);
  static std::vector<std::unique_ptr<const Tile>> tiles;
  for (const auto& tile : tiles) {
    if (tile->noisy.spec() == spec) return *tile;
  }
  Image clean = render_scene(floats_of(spec));
  Image noisy(spec);
  add_noise(std::as_const(clean).view(), noisy.view(), {NoiseKind::gaussian, 25.0 / 255 * spec.white(), 1});
  tiles.push_back(std::make_unique<const Tile>(Tile{std::move(clean), std::move(noisy)}));
  return *tiles.back();
}

// A part of an image that lies interleaved.
ConstImageView part_of(const Image& image, int x, int y, int width, int height) {
  const Strides strides = interleaved_strides(image.spec());
  ImageSpec part = image.spec();
  part.width = width;
  part.height = height;
  const std::byte* first = image.samples<std::byte>() + y * strides.y + x * strides.x;
  return {static_cast<const void*>(first), part, strides};
}

Image repeated(const Image& tile, const ImageSpec& spec) {
  Image whole(spec);
  const auto row_bytes = [](const ImageSpec& of) {
    return static_cast<std::size_t>(interleaved_strides(of).y);
  };
  const std::size_t wide = row_bytes(spec);
  const std::size_t narrow = row_bytes(tile.spec());
  for (int y = 0; y < spec.height; ++y) {
    std::byte* row = whole.samples<std::byte>() + static_cast<std::size_t>(y) * wide;
    const std::byte* from =
        tile.samples<std::byte>() + static_cast<std::size_t>(y % tile.spec().height) * narrow;
    for (std::size_t x = 0; x < wide; x += narrow) std::memcpy(row + x, from, std::min(narrow, wide - x));
  }
  return whole;
}

Denoiser make_denoiser(const Case& what, const ImageSpec& spec, const Setup& setup) {
  use_simd_target(setup.simd);
  const Device device = {setup.reference ? Device::Kind::reference : Device::Kind::cpu};
  return Denoiser::create(what.params_for(spec), spec, {.device = device, .threads = setup.threads});
}

}  // namespace

std::shared_ptr<const Image> noisy_picture(const ImageSpec& spec) {
  // Trials of one kind share theirs; it goes with the last of them.
  static std::vector<std::pair<ImageSpec, std::weak_ptr<const Image>>> made;
  std::erase_if(made, [](const auto& one) { return one.second.expired(); });
  for (const auto& [of, image] : made) {
    if (of == spec) return image.lock();
  }
  auto whole = std::make_shared<const Image>(repeated(tile_of(spec).noisy, spec));
  made.emplace_back(spec, whole);
  return whole;
}

Image clean_picture(const ImageSpec& spec) { return repeated(tile_of(spec).clean, floats_of(spec)); }

Trial::Trial(const Case& what, const Setup& setup)
    : case_(what),
      setup_(setup),
      in_(noisy_picture(spec_of(setup.size, what.type, what.rgb))),
      out_(in_->spec()),
      denoiser_(make_denoiser(what, in_->spec(), setup)) {
  // Memory that was never written is not there yet: the first run would pay for it.
  std::memset(out_.samples<std::byte>(), 1, out_.bytes());
}

void Trial::check() {
  first_ms_ = run_once();
  const ImageSpec& whole = spec();
  // As many pixels as the reference makes in some tens of milliseconds.
  const int side =
      std::clamp(static_cast<int>(64 / std::sqrt(std::max(1.0, case_.reference_cost / 16))), 8, 64);
  Denoiser reference = make_denoiser(case_, whole, {.size = setup_.size, .reference = true});
  error_ = 0;
  check_at(reference, 0, 0, side);
  check_at(reference, (whole.width - side) / 2, (whole.height - side) / 2, side);
  check_at(reference, whole.width - side, whole.height - side, side);
}

void Trial::check_at(Denoiser& reference, int x, int y, int side) {
  const ImageSpec& whole = spec();
  const Region region{
      .x = std::max(x, 0), .y = std::max(y, 0), .image_width = whole.width, .image_height = whole.height};
  ImageSpec part = whole;
  part.width = std::min(side, whole.width);
  part.height = std::min(side, whole.height);
  Image expected(part);
  ImageView view = expected.view();
  view.region = region;
  reference.run(std::as_const(*in_).view(), view);

  const ConstImageView got = part_of(out_, region.x, region.y, part.width, part.height);
  const double unit = is_float(part.type) ? part.white() : 1;
  const double difference = case_.mean_error > 0 ? std::sqrt(mse(std::as_const(expected).view(), got))
                                                 : max_abs(std::as_const(expected).view(), got);
  error_ = std::max(error_, difference / unit);
}

bool Trial::right() const {
  const double unit = is_float(spec().type) ? 1 : spec().white();
  const double most = case_.mean_error > 0 ? case_.mean_error * unit : is_float(spec().type) ? 1e-4 : 1;
  return error_ >= 0 && error_ <= most;
}

double Trial::psnr() const {
  const Image& clean = tile_of(spec()).clean;
  double squares = 0;
  for (int y = 0; y < spec().height; y += tile_side) {
    for (int x = 0; x < spec().width; x += tile_side) {
      const int width = std::min(tile_side, spec().width - x);
      const int height = std::min(tile_side, spec().height - y);
      ConstImageView got = part_of(out_, x, y, width, height);
      got.spec.range = spec().white();
      squares += mse(part_of(clean, 0, 0, width, height), got) * width * height;
    }
  }
  const double mean = squares / (static_cast<double>(spec().width) * spec().height);
  return 10 * std::log10(spec().white() * spec().white() / mean);
}

double Trial::run_once() {
  use_simd_target(setup_.simd);
  const clockid_t clock = setup_.cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
  const double start = nanoseconds(clock);
  const Report report = denoiser_.run(in_->view(), out_.view());
  const double end = nanoseconds(clock);
  threads_ = report.threads;
  return (end - start) / 1e6;
}

std::vector<double> Trial::run_for(double seconds) {
  std::vector<double> ms;
  for (double spent = 0; spent < seconds * 1e3 || ms.empty(); spent += ms.back()) ms.push_back(run_once());
  return ms;
}

}  // namespace ungrain::bench
