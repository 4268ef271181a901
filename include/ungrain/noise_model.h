// An image's noise: its standard deviation by level, by frequency and by channel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/estimate.h"
#include "ungrain/export.h"
#include "ungrain/image.h"

UNGRAIN_API_BEGIN
namespace ungrain {

class RowReader;

// The noise in coefficient (i, j) of the orthonormal 8 x 8 cosine transform of a patch, whose mean level is
// l, has mean 0 and the standard deviation deviation(l) * spectrum(i, j). White noise has spectrum 1.
//
// Channels are those of the orthonormal opponent space for rgb: luminance (r + g + b) / sqrt 3, then
// (r - b) / sqrt 2 and (r - 2 g + b) / sqrt 6. For other images they are the image's own.
// Deviations and levels are in pixel units. The level of an rgb patch is its mean (r + g + b) / 3, that of
// another patch the mean of the channel itself.
struct NoiseModel {
  static constexpr int side = 8;
  using Spectrum = std::array<double, static_cast<std::size_t>(side) * side>;  // i horizontal: [j * 8 + i]

  struct Channel {
    std::vector<double> levels;      // ascending; at least one
    std::vector<double> deviations;  // at these levels
    Spectrum spectrum{};
    // Correlation of a pixel's noise with that of the pixel (dx, dy) away, -1 to 1: a square of an odd side,
    // row by row, (0, 0) in the middle; 0 beyond it. Empty: not known. Where a model has it, the spectrum
    // follows from it.
    std::vector<double> correlation = {};
    friend bool operator==(const Channel&, const Channel&) = default;
  };
  std::vector<Channel> channels;

  // Between two levels the variance is interpolated; outside it stays as at the nearest level.
  double deviation(int channel, double level) const;
  double deviation(int channel, double level, int i, int j) const;
  friend bool operator==(const NoiseModel&, const NoiseModel&) = default;
};

// Throws Error(invalid_argument) that names what is wrong.
void validate(const NoiseModel& model);

// White Gaussian noise with these standard deviations of the image's channels (one for each colour channel,
// or one for all), pixel units. `correlation` is NoiseEstimate's.
NoiseModel white_noise_model(const ImageSpec& spec, const std::vector<double>& sigma, double correlation = 0);

// variance = a * level + b in each of the image's channels: a sensor's noise before any processing.
NoiseModel poisson_gaussian_model(const ImageSpec& spec, double a, double b);

// variance = a * level + b, in pixel units.
struct PoissonGaussian {
  double a = 0;
  double b = 0;
  double variance(double level) const { return a * level + b; }
  friend bool operator==(const PoissonGaussian&, const PoissonGaussian&) = default;
};

// Measured in the image alone, for each of its colour channels by itself; both numbers are 0 or more. The
// image must be linear: samples are proportional to light and their noise is white. Areas near white, or
// where black is cut off, do not count. An image of less than 16 x 16 pixels gives 0 for both numbers.
std::vector<PoissonGaussian> fit_poisson_gaussian(const ConstImageView& image);

// From such lines, one for each colour channel. For an rgb image their mean is used, because its model's
// channels are not red, green and blue.
NoiseModel poisson_gaussian_model(const ImageSpec& spec, const std::vector<PoissonGaussian>& channels);

// Noise of a known power spectral density, which has one channel for all of the image's or one for each. Any
// size, frequency 0 first, as a Fourier transform gives it; its mean over all frequencies is the variance of
// a pixel, in pixel units². The noise of the channels is independent.
NoiseModel noise_model_of_psd(const ImageSpec& spec, const ConstImageView& psd);

// White noise of deviation `sigma`, independent in all channels, that was convolved with a kernel. The kernel
// has one channel for all of the image's or one for each, and at most 255 x 255 pixels. A pixel's deviation
// is then sigma times the root of the sum of the kernel's squares.
NoiseModel noise_model_of_kernel(const ImageSpec& spec, const ConstImageView& kernel, double sigma);

// Every deviation times `strength`.
NoiseModel scaled(NoiseModel model, double strength);

// The standard deviation of each of the image's own colour channels, root mean square over all levels of the
// model and all frequencies.
std::vector<double> image_deviations(const NoiseModel& model, const ImageSpec& spec);

// The deviation of one of the image's own channels at a level of that channel.
double channel_deviation(const NoiseModel& model, const ImageSpec& spec, int channel, double level);

// The model's root mean square deviation over bands of frequency i + j, at one level.
struct NoiseBands {
  double low = 0;     // 1 to 2
  double middle = 0;  // 3 to 6
  double high = 0;    // 9 to 14
};
NoiseBands noise_bands(const NoiseModel& model, int channel, double level);

// One line a channel: low, middle and high band at the lowest, the middle and the highest known level, on the
// scale where white is 255.
std::string to_text(const NoiseModel& model, const ImageSpec& spec);

// What the estimate found, which decides what the model contains.
enum class NoiseFinding : std::uint8_t {
  white,     // the same at all frequencies and levels, or nothing more was measurable: estimate_noise()
  by_level,  // white at each level, but stronger at some levels: photon noise
  spectrum,  // deviations differ by frequency: what cameras and compressors leave
};
std::string_view name(NoiseFinding finding);

// A measured block of 8 x 8 pixels.
struct NoiseBlock {
  int x = 0;
  int y = 0;
  friend bool operator==(const NoiseBlock&, const NoiseBlock&) = default;
};

struct NoiseModelEstimate {
  NoiseModel model;
  NoiseFinding finding = NoiseFinding::white;
  // The result of estimate_noise(); less where the finding is white and the colour differences show that a
  // part of it is texture of luminance.
  NoiseEstimate white;
  // Standard deviation of each of the image's own colour channels, root mean square over its pixels and over
  // all frequencies.
  std::vector<double> deviations;
  double darkest = 0;  // the image's range of levels: the model may go beyond it
  double brightest = 0;
  int levels = 0;       // levels at which blocks were measured
  int calm_levels = 0;  // of these, where the blocks show noise and no texture
  // Luminance was limited to a multiple of the colour differences' noise, or by the ISO speed: the image has
  // no flat areas, and what was measured in luminance is at least in part texture.
  bool limited_by_colour = false;
  bool limited_by_iso = false;
  std::vector<NoiseBlock> blocks;  // in which the levels were measured
  // Photon noise: the line that each of the model's channels follows. Empty where the noise of some channel
  // is of another kind.
  std::vector<PoissonGaussian> lines;
};

struct NoiseModelOptions {
  std::optional<double> iso = {};  // of the photograph, as its EXIF data say
  int threads = 0;                 // 0: one for each processor
  // Of a JPEG file: the quantisation steps of luminance's coefficients, 8 x 8 row by row as in the file. The
  // rounding error of noise and texture together is added to the measured noise.
  std::vector<int> jpeg_steps = {};
};

// From the image alone. The blocks of 8 x 8 pixels with the flattest surroundings are measured, a few hundred
// at each of up to eight levels. Where they show white noise of one strength, the result is
// estimate_noise()'s. Alpha is ignored; blocks with a NaN or an infinity are left out. An image in the memory
// of a GPU is looked at there, with the same result. Luma and chroma of a ycbcr image are measured apart and
// joined into one model of three channels; blocks and levels are luma's.
NoiseModelEstimate estimate_noise_model(const ConstImageView& image, const NoiseModelOptions& options = {});
NoiseModelEstimate estimate_noise_model(RowReader& rows, const ImageSpec& spec,
                                        const NoiseModelOptions& options = {});

// The same, row by row in bounded memory; the result does not depend on how the rows are split.
class NoiseModelEstimator {
 public:
  explicit NoiseModelEstimator(const ImageSpec& spec, const NoiseModelOptions& options = {});
  ~NoiseModelEstimator();
  NoiseModelEstimator(NoiseModelEstimator&&) noexcept;
  NoiseModelEstimator& operator=(NoiseModelEstimator&&) noexcept;

  void add_rows(const ConstImageView& image);  // the next rows, any number
  NoiseModelEstimate finish() const;           // after the last row

 private:
  struct UNGRAIN_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ungrain
UNGRAIN_API_END
