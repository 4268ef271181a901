#include "ungrain/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/convert.h"
#include "core/half.h"
#include "cpu/parallel.h"
#include "noise/block_spectrum.h"
#include "noise/drawn_blocks.h"
#include "noise/flat_blocks.h"
#include "noise/flat_windows.h"
#include "noise/read_in_bands.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

void check_readable(const ConstImageView& view) {
  validate(view.spec);
  if (view.space.memory != Space::Memory::host) {
    throw Error(ErrorCode::unsupported, "noise is estimated in host memory only");
  }
  if (view.data == nullptr) fail("an image without pixels has no noise to estimate");
}

// Of the type and the range as of everything else: the estimate is in the units of the first rows.
void check_rows(const ImageSpec& image, const ImageSpec& rows, int seen) {
  ImageSpec expected = image;
  expected.height = rows.height;
  if (rows != expected) fail("the rows of one estimate must have one width, type, range, colour and alpha");
  if (rows.height > image.height - seen) {
    fail(fmt::format("{} more rows after {} are too many for an image of {}", rows.height, seen,
                     image.height));
  }
}

// ---- where the blocks lie

// A lattice of blocks, as far apart along x as along y.
struct Lattice {
  explicit Lattice(const ImageSpec& spec)
      : block_width(std::min(spec.width, BlockTransform::largest_side)),
        block_height(std::min(spec.height, BlockTransform::largest_side)),
        columns_of_pixels(spec.width),
        rows_of_pixels(spec.height) {
    // Overlapping blocks find more flat places, the more so the smaller the image.
    constexpr std::int64_t most_blocks = 40000;
    constexpr std::int64_t few_blocks = 1000;
    if (blocks() <= few_blocks) return;
    step = 4;
    if (blocks() <= most_blocks) return;
    step = 8;
    while (blocks() > most_blocks) ++step;
  }

  int columns() const { return (columns_of_pixels - block_width) / step + 1; }
  std::int64_t blocks() const {
    return std::int64_t{columns()} * ((rows_of_pixels - block_height) / step + 1);
  }
  // Whether a row or a column belongs to a block, and whether it is the last row of one.
  bool uses(int place, int pixels, int block) const {
    return step <= block || (place % step < block && place - place % step + block <= pixels);
  }
  bool uses_row(int y) const { return uses(y, rows_of_pixels, block_height); }
  bool ends_with_row(int y) const { return y + 1 >= block_height && (y + 1 - block_height) % step == 0; }

  int block_width;
  int block_height;
  int columns_of_pixels;
  int rows_of_pixels;
  int step = 2;
};

std::vector<int> sampled(const Lattice& lattice, int pixels, int block) {
  std::vector<int> places;
  for (int place = 0; place < pixels; ++place) {
    if (lattice.uses(place, pixels, block)) places.push_back(place);
  }
  return places;
}

// ---- one channel

// White as the samples, which are compared with it, have it: 0.3 is no float. Larger than the type's numbers
// it stays.
double white_of_samples(const ImageSpec& spec) {
  auto white = static_cast<float>(spec.white());
  if (spec.type == PixelType::f16) white = half_to_float(float_to_half(white));
  return std::isfinite(white) ? white : spec.white();
}

class ChannelBlocks {
 public:
  ChannelBlocks(const Lattice& lattice, double white)
      : white_(white), block_samples_(static_cast<std::size_t>(lattice.block_width) * lattice.block_height) {
    rows_.resize(lattice.block_height, std::vector<float>(lattice.columns_of_pixels));
  }

  float* row(int y) { return rows_[y % rows_.size()].data(); }

  // Of the blocks whose last row is y, those of columns [first, end) of the lattice: on any thread.
  void look_at(const Lattice& lattice, const BlockTransform& transform, int y, int first, int end) {
    for (int column = first; column < end; ++column) {
      seen_[static_cast<std::size_t>(column)] =
          look_at_block(lattice, transform, column * lattice.step, y + 1 - lattice.block_height);
    }
  }
  void make_room(const Lattice& lattice) { seen_.resize(static_cast<std::size_t>(lattice.columns())); }

  // All of them, once they have been looked at.
  void add_blocks(const Lattice& lattice, int y) {
    for (int column = 0; column < lattice.columns(); ++column) {
      add_block(lattice, seen_[static_cast<std::size_t>(column)], column * lattice.step,
                y + 1 - lattice.block_height);
    }
  }

  struct Answer {
    double sigma = 0;
    double detail = 0;  // FlatBlocksAnswer's
  };
  const Answer& answer() const { return answer_; }

  void find_answer(const BlockTransform& transform, const Lattice& lattice, bool whole_numbers) {
    answer_ = measured(transform, lattice, whole_numbers);
  }

 private:
  Answer measured(const BlockTransform& transform, const Lattice& lattice, bool whole_numbers) const {
    // Exactly constant blocks carry no noise. Few of them are a frame around the picture, many are the
    // picture.
    if (constant_blocks_ > static_cast<std::int64_t>(spectra_.size())) return {};
    FlatBlocksQuestion question{.transform = &transform, .blocks = &spectra_};
    question.least_blocks = lattice.step < 4 ? 120 : 48;  // the more they overlap, the less each one adds
    if (!beyond_limits_ && at_limits_) question.white = white_;
    const FlatBlocksAnswer found = noise_variance(question);
    constexpr double rounding = 1.0 / 12;  // variance that rounding to whole numbers adds
    const double variance = std::max(0.0, whole_numbers ? found.variance - rounding : found.variance);
    const double sigma = std::min(std::sqrt(variance), most_noise(found.neighbours, white_));
    if (strong_for_a_drawing(sigma)) return {0, 1};
    return {sigma * share_of_noise(), found.detail};
  }

  // Strong noise would have put gray into the blocks that are all black and white, unless their light went
  // far beyond white. Many of them are a drawing, whose smooth outlines are no noise.
  bool strong_for_a_drawing(double sigma) const {
    const auto others = static_cast<std::int64_t>(spectra_.size()) + constant_blocks_;
    return 2 * limited_blocks_ > others && sigma > 0.05 * white_;
  }

  // A block of a pattern comes again, noise does not.
  double share_of_noise() const {
    std::vector<BlockPool::Block> blocks = flattest_.blocks();
    std::sort(blocks.begin(), blocks.end());
    constexpr std::size_t compared = 128;
    if (blocks.size() > compared) blocks.resize(compared);
    std::vector<PlacedBlock> samples;
    const auto width = static_cast<std::int64_t>(rows_.front().size());
    for (const BlockPool::Block& block : blocks) {
      samples.push_back({flattest_.samples(block), static_cast<int>(block.place % width),
                         static_cast<int>(block.place / width)});
    }
    constexpr double pattern = 0.1;
    constexpr double noise = 0.25;
    const double found = novelty(samples, 1, static_cast<int>(block_samples_));
    return std::clamp((found - pattern) / (noise - pattern), 0.0, 1.0);
  }

  struct SeenBlock {
    enum class Kind : std::uint8_t { not_finite, limited, constant, other };
    Kind kind = Kind::not_finite;
    bool beyond_limits = false;
    bool at_limits = false;
    BlockSpectrum spectrum;  // of other blocks
  };

  SeenBlock look_at_block(const Lattice& lattice, const BlockTransform& transform, int x, int y) const {
    std::array<double, largest_block> block;
    const auto samples = static_cast<std::size_t>(lattice.block_width) * lattice.block_height;
    copy_block(lattice, x, y, block.data());
    double smallest = block[0];
    double largest = block[0];
    std::size_t limited = 0;
    double sum = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      const double value = block[i];
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      limited += value == 0 || value == white_ ? 1 : 0;
      sum += value;
    }
    SeenBlock seen;
    if (!std::isfinite(sum)) return seen;
    seen.beyond_limits = smallest < 0 || largest > white_;
    seen.at_limits = limited > 0;
    seen.kind = limited == samples    ? SeenBlock::Kind::limited
                : smallest == largest ? SeenBlock::Kind::constant
                                      : SeenBlock::Kind::other;
    if (seen.kind != SeenBlock::Kind::other) return seen;
    seen.spectrum = transform(block.data());
    seen.spectrum.neighbours = neighbours_of(block.data(), lattice.block_width, lattice.block_height, white_);
    return seen;
  }

  template <class Real>
  void copy_block(const Lattice& lattice, int first_x, int first_y, Real* to) const {
    for (int y = 0; y < lattice.block_height; ++y) {
      const float* from = rows_[static_cast<std::size_t>(first_y + y) % rows_.size()].data() + first_x;
      to = std::copy(from, from + lattice.block_width, to);
    }
  }

  void add_block(const Lattice& lattice, const SeenBlock& seen, int x, int y) {
    beyond_limits_ = beyond_limits_ || seen.beyond_limits;
    at_limits_ = at_limits_ || seen.at_limits;
    if (seen.kind == SeenBlock::Kind::limited) ++limited_blocks_;
    if (seen.kind == SeenBlock::Kind::constant) ++constant_blocks_;
    if (seen.kind != SeenBlock::Kind::other) return;
    const double busyness = seen.spectrum.busyness[0] + seen.spectrum.busyness[1];
    const std::int64_t place = std::int64_t{y} * lattice.columns_of_pixels + x;
    if (flattest_.wants(busyness, place)) {
      copy_block(lattice, x, y, flattest_.add(busyness, place, block_samples_));
    }
    spectra_.push_back(seen.spectrum);
  }

  static constexpr std::size_t largest_block =
      static_cast<std::size_t>(BlockTransform::largest_side) * BlockTransform::largest_side;

  double white_;
  std::size_t block_samples_;
  std::vector<SeenBlock> seen_;  // in the latest row of blocks
  BlockPool flattest_;
  std::vector<std::vector<float>> rows_;  // the latest; row y is at y % their number
  std::vector<BlockSpectrum> spectra_;
  std::int64_t limited_blocks_ =
      0;  // of black and white samples only, which tell little: not among the spectra
  std::int64_t constant_blocks_ = 0;  // of another level
  bool beyond_limits_ = false;        // whether a sample was seen outside black to white: nothing was cut off
  bool at_limits_ = false;            // whether one was black or white
  Answer answer_;
};

}  // namespace

struct NoiseEstimator::Impl {
  explicit Impl(const ImageSpec& estimated)
      : spec(estimated), lattice(estimated), transform(lattice.block_width, lattice.block_height) {
    const double white = white_of_samples(spec);
    channels.resize(spec.colour_channels(), ChannelBlocks(lattice, white));
    if (spec.colour == Colour::rgb) {
      mean.emplace_back(lattice, white);
      difference.emplace_back(lattice, white);
    }
  }

  void add_rows(const ConstImageView& image) {
    for (int y = 0; y < image.spec.height; ++y, ++rows) {
      if (!lattice.uses_row(rows)) continue;
      for (int c = 0; c < spec.colour_channels(); ++c) {
        load_row(image, y, c, channels[c].row(rows));
      }
      for (ChannelBlocks& of_all : mean) {
        for (int x = 0; x < spec.width; ++x) {
          float sum = 0;
          for (ChannelBlocks& channel : channels) sum += channel.row(rows)[x];
          of_all.row(rows)[x] = sum / static_cast<float>(channels.size());
        }
      }
      for (ChannelBlocks& of_colour : difference) {
        for (int x = 0; x < spec.width; ++x) {
          of_colour.row(rows)[x] =
              channels[0].row(rows)[x] - 2 * channels[1].row(rows)[x] + channels[2].row(rows)[x];
        }
      }
      if (lattice.ends_with_row(rows)) {
        add_blocks();
      }
    }
  }

  std::vector<ChannelBlocks*> planes() {
    std::vector<ChannelBlocks*> all;
    for (std::vector<ChannelBlocks>* some : {&channels, &mean, &difference}) {
      for (ChannelBlocks& plane : *some) all.push_back(&plane);
    }
    return all;
  }

  // In threads where that is worth them.
  void for_each(std::size_t items, const std::function<void(std::size_t)>& work) {
    constexpr std::int64_t many_blocks = 4000;
    if (items == 1 || lattice.blocks() < many_blocks) {
      for (std::size_t n = 0; n < items; ++n) work(n);
      return;
    }
    if (!workers) workers = std::make_unique<Workers>(0);
    workers->for_each_quietly(static_cast<std::int64_t>(items),
                              [&](std::int64_t n, int) { work(static_cast<std::size_t>(n)); });
  }

  // The blocks that end with the latest row.
  void add_blocks() {
    const std::vector<ChannelBlocks*> all = planes();
    constexpr int part = 32;  // columns of blocks
    const int columns = lattice.columns();
    const auto parts = static_cast<std::size_t>((columns + part - 1) / part);
    for (ChannelBlocks* plane : all) plane->make_room(lattice);
    for_each(parts * all.size(), [&](std::size_t n) {
      const int first = static_cast<int>(n % parts) * part;
      all[n / parts]->look_at(lattice, transform, rows, first, std::min(first + part, columns));
    });
    for (ChannelBlocks* plane : all) plane->add_blocks(lattice, rows);
  }

  NoiseEstimate result() {
    const bool whole_numbers = spec.type == PixelType::u8 || spec.type == PixelType::u16;
    const std::vector<ChannelBlocks*> all = planes();
    for_each(all.size(), [&](std::size_t n) {
      all[n]->find_answer(transform, lattice, whole_numbers && n < channels.size());
    });
    NoiseEstimate estimate;
    for (const ChannelBlocks& channel : channels) estimate.channels.push_back(channel.answer().sigma);
    if (!mean.empty()) tell_apart(estimate, whole_numbers);
    double squares = 0;
    for (const double sigma : estimate.channels) squares += sigma * sigma;
    estimate.sigma = std::sqrt(squares / static_cast<double>(channels.size()));
    return estimate;
  }

  // What rgb channels have in common: their noise's correlation; or detail, which is in all channels alike
  // and of which a difference of colours has little. Where there is detail, that difference says how much is
  // noise.
  void tell_apart(NoiseEstimate& estimate, bool whole_numbers) const {
    const ChannelBlocks::Answer& of_mean = mean[0].answer();
    estimate.correlation = correlation(estimate.channels, of_mean.sigma);
    if (of_mean.detail == 0) return;
    const double of_colour = difference[0].answer().sigma;
    const std::vector<double>& sigma = estimate.channels;
    const double independent =
        sigma[0] * sigma[0] + 4 * sigma[1] * sigma[1] + sigma[2] * sigma[2];  // its variance
    const double rounding = whole_numbers ? 6.0 / 12 : 0;
    const double found = of_colour * of_colour - rounding;
    if (of_colour == 0 || independent == 0 || found >= independent) return;  // gray stored as rgb has none
    const double noise_share = 1 - of_mean.detail * (1 - std::max(found, 0.0) / independent);
    for (double& value : estimate.channels) value *= std::sqrt(noise_share);
    estimate.correlation *= 1 - of_mean.detail;
  }

  // The variance of the channels' mean is a ninth of all their variances and covariances.
  static double correlation(const std::vector<double>& sigma, double of_mean) {
    const double products = sigma[0] * sigma[1] + sigma[1] * sigma[2] + sigma[2] * sigma[0];
    if (products == 0) return 0;
    const double squares = sigma[0] * sigma[0] + sigma[1] * sigma[1] + sigma[2] * sigma[2];
    const double found = (9 * of_mean * of_mean - squares) / (2 * products);
    constexpr double by_chance = 0.1;  // what errors of the estimates make of independent noise
    return found < by_chance ? 0 : std::min(found, 1.0);
  }

  ImageSpec spec;
  Lattice lattice;
  BlockTransform transform;
  std::vector<ChannelBlocks> channels;
  std::vector<ChannelBlocks> mean;        // of an rgb image's channels: one, or none
  std::vector<ChannelBlocks> difference;  // red - 2 green + blue: the same
  std::unique_ptr<Workers> workers;
  int rows = 0;  // added so far
};

NoiseEstimator::NoiseEstimator(const ImageSpec& spec) {
  validate(spec);
  impl_ = std::make_unique<Impl>(spec);
}
NoiseEstimator::~NoiseEstimator() = default;
NoiseEstimator::NoiseEstimator(NoiseEstimator&&) noexcept = default;
NoiseEstimator& NoiseEstimator::operator=(NoiseEstimator&&) noexcept = default;

void NoiseEstimator::add_rows(const ConstImageView& image) {
  check_readable(image);
  check_rows(impl_->spec, image.spec, impl_->rows);
  impl_->add_rows(image);
}

NoiseEstimate NoiseEstimator::finish() const {
  if (impl_->rows < impl_->spec.height) {
    fail(fmt::format("the estimate has seen {} of its {} rows", impl_->rows, impl_->spec.height));
  }
  return impl_->result();
}

std::vector<int> NoiseEstimator::sampled_columns() const {
  return sampled(impl_->lattice, impl_->spec.width, impl_->lattice.block_width);
}
std::vector<int> NoiseEstimator::sampled_rows() const {
  return sampled(impl_->lattice, impl_->spec.height, impl_->lattice.block_height);
}

NoiseEstimate estimate_noise(const ConstImageView& image) {
  check_readable(image);
  NoiseEstimator estimator(image.spec);
  estimator.add_rows(image);
  return estimator.finish();
}

NoiseEstimate estimate_noise(RowReader& rows, const ImageSpec& spec) {
  return estimate_in_bands(NoiseEstimator(spec), rows, spec);
}

}  // namespace ungrain
