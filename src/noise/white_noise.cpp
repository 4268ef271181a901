#include "noise/white_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <span>
#include <string>

#include "noise/block_batch_simd.h"
#include "noise/block_spectrum.h"
#include "noise/drawn_blocks.h"
#include "noise/flat_blocks.h"
#include "noise/flat_windows.h"
#include "ungrain/error.h"
#include "ungrain/half.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

// ---- where the blocks lie

// A lattice of blocks, with the same step along x and y.
struct Lattice {
  explicit Lattice(const ImageSpec& spec)
      : block_width(std::min(spec.width, BlockTransform::largest_side)),
        block_height(std::min(spec.height, BlockTransform::largest_side)),
        columns_of_pixels(spec.width),
        rows_of_pixels(spec.height) {
    // Overlapping blocks find more flat areas, especially in small images.
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
  bool whole_blocks() const {
    return block_width == BlockTransform::largest_side && block_height == BlockTransform::largest_side;
  }
  // Whether a row or a column belongs to a block.
  bool uses(int place, int pixels, int block) const {
    return step <= block || (place % step < block && place - place % step + block <= pixels);
  }
  // The number of rows of blocks whose last row is before `end`.
  int rows_before(int end) const { return end < block_height ? 0 : (end - block_height) / step + 1; }

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

// White as a sample would hold it, for comparisons: 0.3 is not a float. A white beyond the type's range
// stays.
double white_of_samples(const ImageSpec& spec) {
  auto white = static_cast<float>(spec.white());
  if (spec.type == PixelType::f16) white = half_to_float(float_to_half(white));
  return std::isfinite(white) ? white : spec.white();
}

// Blocks are examined as floats, times a power of 2 that makes white about 1, so that squares neither
// overflow nor underflow.
float scale_for(double white) {
  constexpr int most = 120;  // and its reciprocal are floats
  return std::ldexp(1.0F, std::clamp(-std::ilogb(white), -most, most));
}

// White in scaled samples, or a value that no sample has.
float scaled_white(double white, float scale) {
  const double scaled = white * double{scale};
  return scaled < double{std::numeric_limits<float>::max()} ? static_cast<float>(scaled)
                                                            : std::numeric_limits<float>::infinity();
}

// The content of a plane: one channel, the mean of three, or red - 2 green + blue.
enum class PlaneKind : std::uint8_t { channel, mean, difference };

class ChannelBlocks {
 public:
  ChannelBlocks(PlaneKind kind, int channel, const Lattice& lattice, float scale, float white)
      : kind_(kind),
        channel_(channel),
        scale_(scale),
        white_(white),
        spectra_(static_cast<std::size_t>(lattice.blocks())),
        kinds_(static_cast<std::size_t>(lattice.blocks())) {}

  struct Answer {
    double sigma = 0;
    double detail = 0;  // FlatBlocksAnswer's
  };
  const Answer& answer() const { return answer_; }

  // Block n of a batch is block first + n of the image; on any thread.
  void set(std::size_t first, std::size_t count, const BatchStatistics& look) {
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t block = first + n;
      double all = look.mean[n];
      for (int set = 0; set < set_count; ++set) {
        spectra_.busyness(set)[block] = look.busyness[set][n];
        all += look.busyness[set][n];
        for (int band = 0; band < band_count; ++band) {
          spectra_.energies(set)[block][band] = look.energy[set][band][n];
          all += look.energy[set][band][n];
        }
      }
      spectra_.mean()[block] = look.mean[n];
      const float limited = look.black[n] + look.white[n];
      kinds_[block] = kind_of({.finite = std::isfinite(all),
                               .smallest = look.smallest[n],
                               .largest = look.largest[n],
                               .limited = static_cast<int>(limited),
                               .samples = batch_samples});
      const auto by_chance = [](double at_limit) {  // two of the samples in any order
        return at_limit * (at_limit - 1) / (static_cast<double>(batch_samples) * (batch_samples - 1));
      };
      spectra_.equal()[block] = static_cast<float>(double{look.equal[n]} / batch_pairs -
                                                   by_chance(look.black[n]) - by_chance(look.white[n]));
      spectra_.difference()[block] = look.difference[n] / batch_pairs;
      spectra_.step()[block] = std::sqrt(look.least_square[n]);
    }
  }

  // A block of any size; on any thread.
  void set(std::size_t block, const double* samples, const Lattice& lattice,
           const BlockTransform& transform) {
    const int count = lattice.block_width * lattice.block_height;
    const auto [smallest, largest] = std::minmax_element(samples, samples + count);
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += samples[i];
    const auto limited = std::count_if(samples, samples + count,
                                       [&](double value) { return value == 0 || value == double{white_}; });
    kinds_[block] = kind_of({.finite = std::isfinite(sum),
                             .smallest = *smallest,
                             .largest = *largest,
                             .limited = static_cast<int>(limited),
                             .samples = count});
    if (kinds_[block].kind != SeenBlock::Kind::other) return;
    BlockSpectrum spectrum = transform(samples);
    spectrum.neighbours = neighbours_of(samples, lattice.block_width, lattice.block_height, double{white_});
    spectra_.set(block, spectrum);
  }

  // Called when all blocks of a row are set; on any thread.
  void note_row(const Lattice& lattice, int row) {
    CandidateBuffer flattest;
    flattest.follow(candidates_);
    SeenBlocks seen;
    for (int column = 0; column < lattice.columns(); ++column) {
      note_block(lattice, row, column, flattest, seen);
    }
    flattest.flush(candidates_);
    const std::lock_guard lock(mutex_);
    seen_.limited += seen.limited;
    seen_.constant += seen.constant;
    seen_.beyond_limits = seen_.beyond_limits || seen.beyond_limits;
    seen_.at_limits = seen_.at_limits || seen.at_limits;
  }

  // Called when the blocks of some rows are noted, before the rows go: chooses the flattest blocks, whose
  // samples copy_flattest() keeps, part by part and on any threads.
  static constexpr int flattest_parts = 8;
  void choose_flattest() {
    pending_.clear();
    for (const FlatCandidates::Candidate& block : candidates_.flattest()) {
      if (!flattest_.wants(block.texture, block.place)) break;
      pending_.push_back({block.place, flattest_.add(block.texture, block.place, batch_samples)});
    }
    candidates_.start(flattest_.full() ? flattest_.blocks().front().texture
                                       : std::numeric_limits<double>::infinity());
  }
  void copy_flattest(const LatestRows& rows, const Lattice& lattice, int part) const {
    const auto place = [&](int n) { return pending_.size() * static_cast<std::size_t>(n) / flattest_parts; };
    for (std::size_t n = place(part); n < place(part + 1); ++n) {
      const std::int64_t at = pending_[n].place;
      copy_plane(rows, static_cast<int>(at % lattice.columns_of_pixels),
                 static_cast<int>(at / lattice.columns_of_pixels), pending_[n].to);
    }
  }

  // For an image whose pixels stay available, in place of the two above: the blocks that are compared. Their
  // samples are `channels` blocks each.
  std::span<const NoiseBlock> choose_compared(const Lattice& lattice) {
    std::vector<FlatCandidates::Candidate> blocks = candidates_.flattest();
    if (blocks.size() > compared_blocks) blocks.resize(compared_blocks);
    chosen_.clear();
    for (const FlatCandidates::Candidate& block : blocks) {
      chosen_.push_back({static_cast<int>(block.place % lattice.columns_of_pixels),
                         static_cast<int>(block.place / lattice.columns_of_pixels)});
    }
    return chosen_;
  }
  void compare_chosen(const float* samples, int channels) {
    std::vector<float> planes(chosen_.size() * batch_samples);
    std::vector<PlacedBlock> blocks;
    for (std::size_t n = 0; n < chosen_.size(); ++n) {
      float* to = planes.data() + n * batch_samples;
      plane_of(samples + n * static_cast<std::size_t>(channels) * batch_samples, to);
      blocks.push_back({to, chosen_[n].x, chosen_[n].y});
    }
    noise_share_ = share_of_noise(blocks);
  }

  // Called when all blocks were collected: first starts the search for the variance and, on any thread,
  // compares the flattest blocks; gives the answer when the search is done.
  void start_search(const BlockTransform& transform, const Lattice& lattice) {
    keep_measured();
    search_ = VarianceSearch();
    if (mostly_constant()) return;
    FlatBlocksQuestion question{.transform = &transform, .blocks = &spectra_};
    question.least_blocks = lattice.step < 4 ? 120 : 48;  // the more they overlap, the less each contributes
    if (!seen_.beyond_limits && seen_.at_limits) question.white = white_;
    search_.start(question);
  }
  VarianceSearch& search() { return search_; }
  void compare_flattest(const Lattice& lattice) { noise_share_ = share_of_noise(flattest(lattice)); }
  void find_answer(bool whole_numbers) { answer_ = mostly_constant() ? Answer{} : measured(whole_numbers); }

 private:
  struct SeenBlock {
    enum class Kind : std::uint8_t { not_finite, limited, constant, other };
    Kind kind = Kind::not_finite;
    bool beyond_limits = false;
    bool at_limits = false;
  };
  struct BlockFacts {
    bool finite = false;
    double smallest = 0;
    double largest = 0;
    int limited = 0;
    int samples = 0;
  };

  SeenBlock kind_of(const BlockFacts& facts) const {
    SeenBlock seen;
    if (!facts.finite) return seen;
    seen.beyond_limits = facts.smallest < 0 || facts.largest > double{white_};
    seen.at_limits = facts.limited > 0;
    seen.kind = facts.limited == facts.samples    ? SeenBlock::Kind::limited
                : facts.smallest == facts.largest ? SeenBlock::Kind::constant
                                                  : SeenBlock::Kind::other;
    return seen;
  }

  struct PendingBlock {
    std::int64_t place = 0;
    float* to = nullptr;
  };
  // Of all blocks.
  struct SeenBlocks {
    std::int64_t limited = 0;    // of black and white samples only, which tell little
    std::int64_t constant = 0;   // neither black nor white
    bool beyond_limits = false;  // a sample lies outside black to white: nothing was cut off
    bool at_limits = false;      // a sample was black or white
  };

  void note_block(const Lattice& lattice, int row, int column, CandidateBuffer& flattest, SeenBlocks& all) {
    const std::size_t block = static_cast<std::size_t>(row) * lattice.columns() + column;
    const SeenBlock& seen = kinds_[block];
    all.beyond_limits = all.beyond_limits || seen.beyond_limits;
    all.at_limits = all.at_limits || seen.at_limits;
    if (seen.kind == SeenBlock::Kind::limited) ++all.limited;
    if (seen.kind == SeenBlock::Kind::constant) ++all.constant;
    if (seen.kind != SeenBlock::Kind::other) return;
    if (!lattice.whole_blocks()) return;  // smaller blocks may be similar by chance
    const double busyness = double{spectra_.busyness(0)[block]} + double{spectra_.busyness(1)[block]};
    flattest.offer(busyness,
                   std::int64_t{row * lattice.step} * lattice.columns_of_pixels + column * lattice.step,
                   candidates_);
  }

  void keep_measured() {
    std::vector<std::uint32_t> measured;
    measured.reserve(kinds_.size());
    for (std::size_t block = 0; block < kinds_.size(); ++block) {
      if (kinds_[block].kind == SeenBlock::Kind::other) measured.push_back(static_cast<std::uint32_t>(block));
    }
    if (measured.size() < spectra_.size()) spectra_.keep(measured);
  }

  void copy_plane(const LatestRows& rows, int x, int y, float* to) const {
    if (kind_ == PlaneKind::channel) return copy_block(rows, channel_, x, y, to);
    std::array<float, 3 * batch_samples> of;
    copy_blocks(rows, 0, 3, x, y, of.data());
    plane_of(of.data(), to);
  }

  // From the blocks of all channels.
  void plane_of(const float* channels, float* to) const {
    if (kind_ == PlaneKind::channel) {
      std::copy_n(channels + static_cast<std::ptrdiff_t>(channel_) * batch_samples, batch_samples, to);
      return;
    }
    const float* red = channels;
    const float* green = red + batch_samples;
    const float* blue = green + batch_samples;
    for (int i = 0; i < batch_samples; ++i) {
      to[i] = kind_ == PlaneKind::mean ? (red[i] + green[i] + blue[i]) / 3.0F
                                       : red[i] - 2.0F * green[i] + blue[i];
    }
  }

  // Exactly constant blocks carry no noise. A few of them are a frame around the picture, many are the
  // picture.
  bool mostly_constant() const { return seen_.constant > static_cast<std::int64_t>(spectra_.size()); }

  Answer measured(bool whole_numbers) const {
    const FlatBlocksAnswer& found = search_.answer();
    constexpr double rounding = 1.0 / 12;  // variance that rounding to whole numbers adds
    const double pixel_variance = found.variance / (double{scale_} * double{scale_});
    const double variance = std::max(0.0, whole_numbers ? pixel_variance - rounding : pixel_variance);
    const double most = most_noise(found.neighbours, white_) / double{scale_};
    const double sigma = std::min(std::sqrt(variance), most);
    if (strong_for_a_drawing(sigma)) return {0, 1};
    return {sigma * noise_share_, found.detail};
  }

  // Whether the noise is too strong for a drawing. Strong noise would have put gray into the blocks of black
  // and white only, unless their light was far beyond white. Many such blocks are a drawing, whose smooth
  // outlines are not noise.
  bool strong_for_a_drawing(double sigma) const {
    const auto others = static_cast<std::int64_t>(spectra_.size()) + seen_.constant;
    return 2 * seen_.limited > others && sigma * double{scale_} > 0.05 * double{white_};
  }

  static constexpr std::size_t compared_blocks = 128;

  std::vector<PlacedBlock> flattest(const Lattice& lattice) const {
    std::vector<BlockPool::Block> blocks = flattest_.blocks();
    std::sort(blocks.begin(), blocks.end());
    if (blocks.size() > compared_blocks) blocks.resize(compared_blocks);
    std::vector<PlacedBlock> samples;
    const std::int64_t width = lattice.columns_of_pixels;
    for (const BlockPool::Block& block : blocks) {
      samples.push_back({flattest_.samples(block), static_cast<int>(block.place % width),
                         static_cast<int>(block.place / width)});
    }
    return samples;
  }

  // The share of noise: a pattern's blocks repeat, noise's do not.
  static double share_of_noise(const std::vector<PlacedBlock>& blocks) {
    constexpr double pattern = 0.1;
    constexpr double noise = 0.25;
    return std::clamp((novelty(blocks, 1, batch_samples) - pattern) / (noise - pattern), 0.0, 1.0);
  }

  PlaneKind kind_;
  int channel_;
  float scale_;  // all numbers but the answer's are of samples times this
  float white_;
  SpectrumTable spectra_;         // of all blocks; in the end, of the measured ones
  std::vector<SeenBlock> kinds_;  // of all blocks
  FlatCandidates candidates_;
  BlockPool flattest_;
  std::vector<PendingBlock> pending_;  // of flattest_, whose samples are still to be copied
  std::vector<NoiseBlock> chosen_;     // the flattest in order, in place of flattest_
  std::mutex mutex_;
  SeenBlocks seen_;
  VarianceSearch search_;
  double noise_share_ = 1;
  Answer answer_;
};

}  // namespace

struct WhiteNoise::Impl {
  explicit Impl(const ImageSpec& estimated)
      : spec(estimated),
        lattice(estimated),
        transform(lattice.block_width, lattice.block_height),
        scale(scale_for(spec.white())),
        white(scaled_white(white_of_samples(spec), scale)) {
    for (int c = 0; c < spec.colour_channels(); ++c) add_plane(PlaneKind::channel, c);
    if (spec.colour != Colour::rgb) return;
    add_plane(PlaneKind::mean, 0);
    add_plane(PlaneKind::difference, 0);
  }

  void add_plane(PlaneKind kind, int channel) { planes.emplace_back(kind, channel, lattice, scale, white); }
  bool rgb() const { return spec.colour == Colour::rgb; }

  void look_at_row(const LatestRows& rows, int row) {
    const int y = row * lattice.step;
    const int columns = lattice.columns();
    const std::size_t first_block = static_cast<std::size_t>(row) * columns;
    std::array<BatchChannel, 5> batch;
    std::array<BatchStatistics, 5> looks;
    for (int first = 0; first < columns; first += batch_blocks) {
      const int count = std::min(batch_blocks, columns - first);
      for (int c = 0; c < spec.colour_channels(); ++c) {
        for (int n = 0; n < batch_blocks; ++n) {  // lanes without a block repeat the last one
          const int column = first + std::min(n, count - 1);
          copy_into_batch(rows, c, column * lattice.step, y, scale, batch[c].samples[0] + n);
        }
      }
      measure_batch(batch.data(), spec.colour_channels(), rgb(), white, looks.data());
      for (std::size_t plane = 0; plane < planes.size(); ++plane) {
        planes[plane].set(first_block + first, static_cast<std::size_t>(count), looks[plane]);
      }
    }
  }

  // Blocks smaller than 8 x 8, of a thin image.
  void look_at_thin_row(const LatestRows& rows, int row) {
    for (int column = 0; column < lattice.columns(); ++column) look_at_thin_block(rows, row, column);
  }
  void look_at_thin_block(const LatestRows& rows, int row, int column) {
    const std::size_t block = static_cast<std::size_t>(row) * lattice.columns() + column;
    std::array<std::array<double, batch_samples>, 5> samples;
    const int count = lattice.block_width * lattice.block_height;
    for (int c = 0; c < spec.colour_channels(); ++c) {
      for (int i = 0; i < count; ++i) {
        const int x = column * lattice.step + i % lattice.block_width;
        const int y = row * lattice.step + i / lattice.block_width;
        samples[c][i] = double{scale} * double{sample_at(rows, x, y, c)};
      }
    }
    for (int i = 0; rgb() && i < count; ++i) {
      samples[3][i] = (samples[0][i] + samples[1][i] + samples[2][i]) / 3;
      samples[4][i] = samples[0][i] - 2 * samples[1][i] + samples[2][i];
    }
    for (std::size_t plane = 0; plane < planes.size(); ++plane) {
      planes[plane].set(block, samples[plane].data(), lattice, transform);
    }
  }

  // Searches all planes at once, round by round and step by step.
  void search_variances(Workers& workers) {
    while (true) {
      std::vector<VarianceSearch*> open;
      for (ChannelBlocks& plane : planes) {
        if (!plane.search().done()) open.push_back(&plane.search());
      }
      if (open.empty()) return;
      for (int step = 0; step < VarianceSearch::steps(); ++step) run_step(open, step, workers);
      for (VarianceSearch* search : open) search->end_round();
    }
  }
  static void run_step(const std::vector<VarianceSearch*>& open, int step, Workers& workers) {
    struct Task {
      VarianceSearch* search;
      int number;
    };
    std::vector<Task> tasks;
    for (VarianceSearch* search : open) {
      const int count = search->tasks(step);
      for (int number = 0; number < count; ++number) tasks.push_back({search, number});
    }
    if (tasks.empty()) return;
    workers.for_each_quietly(static_cast<std::int64_t>(tasks.size()), [&](std::int64_t n, int) {
      const Task& task = tasks[static_cast<std::size_t>(n)];
      task.search->run(step, task.number);
    });
  }

  NoiseEstimate result(Workers& workers) {
    const bool whole_numbers = spec.type == PixelType::u8 || spec.type == PixelType::u16;
    const int channels = spec.colour_channels();
    const auto count = static_cast<std::int64_t>(planes.size());
    const auto plane = [&](std::int64_t n) -> ChannelBlocks& { return planes[static_cast<std::size_t>(n)]; };
    workers.for_each_quietly(2 * count, [&](std::int64_t n, int) {
      if (n < count) {
        compare_flattest(static_cast<std::size_t>(n));
      } else {
        plane(n - count).start_search(transform, lattice);
      }
    });
    search_variances(workers);
    for (std::int64_t n = 0; n < count; ++n) plane(n).find_answer(whole_numbers && n < channels);
    NoiseEstimate estimate;
    for (int c = 0; c < channels; ++c) estimate.channels.push_back(planes[c].answer().sigma);
    if (rgb()) tell_apart(estimate, whole_numbers);
    double squares = 0;
    for (const double sigma : estimate.channels) squares += sigma * sigma;
    estimate.sigma = std::sqrt(squares / channels);
    return estimate;
  }

  void compare_flattest(std::size_t plane) {
    if (chosen_from.empty()) return planes[plane].compare_flattest(lattice);
    const std::size_t block = static_cast<std::size_t>(spec.colour_channels()) * batch_samples;
    planes[plane].compare_chosen(chosen_samples.data() + chosen_from[plane] * block, spec.colour_channels());
  }

  // Splits what rgb channels share into correlated noise and detail, which is the same in all channels and
  // mostly cancels in a difference of colours. If there is detail, that difference tells the noise.
  void tell_apart(NoiseEstimate& estimate, bool whole_numbers) const {
    const ChannelBlocks::Answer& of_mean = planes[3].answer();
    estimate.correlation = correlation(estimate.channels, of_mean.sigma);
    if (of_mean.detail == 0) return;
    const double of_colour = planes[4].answer().sigma;
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
    constexpr double by_chance = 0.1;  // by estimation errors of independent noise
    return found < by_chance ? 0 : std::min(found, 1.0);
  }

  ImageSpec spec;
  Lattice lattice;
  BlockTransform transform;
  float scale;
  float white;
  std::deque<ChannelBlocks> planes;  // the channels; of rgb also their mean and red - 2 green + blue
  // After choose(): the samples of all planes' flattest blocks, and each plane's first block among them.
  std::vector<float> chosen_samples;
  std::vector<std::size_t> chosen_from;
};

WhiteNoise::WhiteNoise(const ImageSpec& image) : impl_(std::make_unique<Impl>(image)) {}
WhiteNoise::~WhiteNoise() = default;
WhiteNoise::WhiteNoise(WhiteNoise&&) noexcept = default;
WhiteNoise& WhiteNoise::operator=(WhiteNoise&&) noexcept = default;

void WhiteNoise::look_at(const LatestRows& rows, int first, int end) {
  const Lattice& lattice = impl_->lattice;
  for (int row = lattice.rows_before(first); row < lattice.rows_before(end); ++row) {
    if (lattice.whole_blocks()) {
      impl_->look_at_row(rows, row);
    } else {
      impl_->look_at_thin_row(rows, row);
    }
    for (ChannelBlocks& plane : impl_->planes) plane.note_row(lattice, row);
  }
}

void WhiteNoise::collect(const LatestRows& rows, Workers& workers) {
  const auto planes = static_cast<std::int64_t>(impl_->planes.size());
  const auto plane = [&](std::int64_t n) -> ChannelBlocks& {
    return impl_->planes[static_cast<std::size_t>(n)];
  };
  workers.for_each_quietly(planes, [&](std::int64_t n, int) { plane(n).choose_flattest(); });
  constexpr int parts = ChannelBlocks::flattest_parts;
  workers.for_each_quietly(planes * parts, [&](std::int64_t n, int) {
    plane(n / parts).copy_flattest(rows, impl_->lattice, static_cast<int>(n % parts));
  });
}

bool WhiteNoise::has_whole_blocks() const { return impl_->lattice.whole_blocks(); }

WhiteBlocks WhiteNoise::lattice() const {
  const Lattice& lattice = impl_->lattice;
  return {.step = lattice.step,
          .columns = lattice.columns(),
          .rows = lattice.rows_before(lattice.rows_of_pixels),
          .channels = impl_->spec.colour_channels(),
          .rgb = impl_->rgb(),
          .scale = impl_->scale,
          .white = impl_->white};
}

void WhiteNoise::take(std::span<const BatchStatistics> looks, Workers& workers) {
  const WhiteBlocks blocks = lattice();
  const auto planes = static_cast<std::size_t>(blocks.planes());
  const auto row_batches = static_cast<std::size_t>(blocks.row_batches());
  const auto columns = static_cast<std::size_t>(blocks.columns);
  workers.for_each_quietly(blocks.rows, [&](std::int64_t row, int) {
    const auto above = static_cast<std::size_t>(row);
    for (std::size_t plane = 0; plane < planes; ++plane) {
      for (std::size_t batch = 0; batch < row_batches; ++batch) {
        const std::size_t first = batch * batch_blocks;
        impl_->planes[plane].set(above * columns + first,
                                 std::min<std::size_t>(batch_blocks, columns - first),
                                 looks[(above * row_batches + batch) * planes + plane]);
      }
      impl_->planes[plane].note_row(impl_->lattice, static_cast<int>(row));
    }
  });
}

void WhiteNoise::choose(const BlockSource& source, Workers& workers) {
  std::vector<std::span<const NoiseBlock>> of_planes(impl_->planes.size());
  workers.for_each_quietly(static_cast<std::int64_t>(of_planes.size()), [&](std::int64_t n, int) {
    const auto plane = static_cast<std::size_t>(n);
    of_planes[plane] = impl_->planes[plane].choose_compared(impl_->lattice);
  });
  std::vector<NoiseBlock> blocks;
  for (const std::span<const NoiseBlock> of_plane : of_planes) {
    impl_->chosen_from.push_back(blocks.size());
    blocks.insert(blocks.end(), of_plane.begin(), of_plane.end());
  }
  const int channels = impl_->spec.colour_channels();
  impl_->chosen_samples.resize(blocks.size() * static_cast<std::size_t>(channels) * batch_samples);
  source.copy(blocks, 0, channels, workers, impl_->chosen_samples.data());
}

NoiseEstimate WhiteNoise::result(Workers& workers) { return impl_->result(workers); }

std::vector<int> WhiteNoise::sampled_columns() const {
  return sampled(impl_->lattice, impl_->spec.width, impl_->lattice.block_width);
}
std::vector<int> WhiteNoise::sampled_rows() const {
  return sampled(impl_->lattice, impl_->spec.height, impl_->lattice.block_height);
}

void check_pixels(const ConstImageView& view) {
  validate(view.spec);
  if (view.data == nullptr) fail("an image without pixels has no noise to estimate");
}

void check_readable(const ConstImageView& view) {
  check_pixels(view);
  if (view.space.memory != Space::Memory::host) {
    throw Error(ErrorCode::unsupported, "noise is estimated band by band in host memory only");
  }
}

// Checks type and range too: the estimate is in the units of the first rows.
void check_rows(const ImageSpec& image, const ImageSpec& rows, int seen) {
  ImageSpec expected = image;
  expected.height = rows.height;
  if (rows != expected) fail("the rows of one estimate must have one width, type, range, colour and alpha");
  if (rows.height > image.height - seen) {
    fail(fmt::format("{} more rows after {} are too many for an image of {}", rows.height, seen,
                     image.height));
  }
}

void check_complete(const ImageSpec& image, int seen) {
  if (seen < image.height) fail(fmt::format("the estimate has seen {} of its {} rows", seen, image.height));
}

Workers estimate_workers(const ImageSpec& image, int threads) {
  constexpr std::int64_t few_pixels = 1 << 16;
  return Workers(std::int64_t{image.width} * image.height < few_pixels ? 1 : threads);
}

}  // namespace ungrain
