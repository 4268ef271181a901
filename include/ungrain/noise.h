// Adds noise of a known kind, for tests, tables and experiments.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/noise_model.h"
#include "ungrain/parameters.h"

UNGRAIN_API_BEGIN
namespace ungrain {

enum class NoiseKind : std::uint8_t {
  gaussian,      // amount: standard deviation, in pixel units
  salt_pepper,   // amount: share of the samples set to black or white, half each
  speckle,       // amount: standard deviation of n in I + I * n
  quantization,  // amount: number of levels from black to white
  poisson,       // amount: photons at white
};

struct Noise {
  NoiseKind kind = NoiseKind::gaussian;
  double amount = 0;
  std::uint64_t seed = 0;
};

// One row for each kind; the command line's options are made from them. `amount` is ParamInfo's range and
// unit.
struct NoiseInfo {
  NoiseKind kind;
  ParamInfo amount;  // its name is the noise's: "salt-pepper"
};
const std::vector<NoiseInfo>& noise_models();
std::string_view name(NoiseKind kind);

// The same seed gives the same noise on every platform, for every thread count, and in tiles as in the whole
// image (the views' regions give their positions). Float output is not clipped; integer output is rounded
// half to even and saturated. In place is allowed. `out` may have another type or range than `in` (values are
// scaled from white to white). Alpha is copied.
void add_noise(const ConstImageView& in, const ImageView& out, const Noise& noise);

// ---- The simulated camera

enum class Demosaic : std::uint8_t {
  bilinear,  // missing colours are the means of the nearest photosites
  gradient,  // corrected by the gradient of the photosite's own colour (Malvar, He, Cutler 2004)
};
std::string_view name(Demosaic demosaic);

// A simulated camera that makes the noise of real photographs: Poisson-Gaussian on a Bayer sensor, then
// correlated and reshaped by the camera's processing. The defaults describe an APS-C camera of about 24
// Mpixel in daylight; src/noise/README.md gives their sources.
struct CameraSettings {
  double iso = 1600;
  Demosaic demosaic = Demosaic::gradient;
  bool noise = true;  // false: the same processing of the scene without noise, the truth of a comparison
  std::uint64_t seed = 0;

  double white_electrons = 16000;  // in a green photosite at white and ISO 100
  double full_well = 25000;        // electrons at ISO 100 at which a photosite saturates
  double read_noise = 2.5;         // standard deviation in electrons, at any ISO
  double converter_noise = 4;      // standard deviation in electrons at ISO 100, 100 / iso of it elsewhere
  double red_gain = 2.0;           // white balance: red photosites catch 1 / red_gain of what green ones do
  double blue_gain = 1.6;
  double colour_correction = 0.5;  // 0: the photosites' colours are sRGB's; 1: they overlap, as sensors' do
  double contrast = 1.4;           // slope of the S-curve at middle gray, on top of sRGB's curve; 1: none

  double luminance_smoothing = 0.9;  // share of the fine luminance that is removed where it looks like noise
  double chroma_smoothing = 0.9;     // share of the fine chroma that is removed
  double sharpening = 0.3;           // share of the fine luminance that is added where it is above the noise
};

// Pixels that add_camera_noise() reads on each side of an output pixel.
int camera_reach();

// Photographs the scene `in`, sRGB or gray: an evenly coloured area keeps its colour. The same seed gives the
// same bits, as with add_noise(). For tiles with the bits of the whole image, `in` must hold camera_reach()
// pixels on each side of `out`, as far as the image goes (the regions give their positions). The output is
// clipped at black and white, floats too; samples of `in` beyond them count as black or white, NaN as black.
// Not in place. Throws Error(unsupported) for independent channels.
void add_camera_noise(const ConstImageView& in, const ImageView& out, const CameraSettings& settings);

// The same camera's raw data, before white balance and demosaicing: one sample for each photosite of the
// mosaic, whose rows alternate between red, green, red ... and green, blue, green ... `mosaic` is gray and as
// large as the scene; its white is a full photosite, its black an empty one. Floats may be negative, because
// of the noise.
void expose_camera(const ConstImageView& scene, const ImageView& mosaic, const CameraSettings& settings);
// The noise of these samples for a white level of `white`.
PoissonGaussian camera_noise(const CameraSettings& settings, double white);
// From linear sRGB to the photosites' red, green and blue before white balance: white gives a green of 1.
std::array<std::array<double, 3>, 3> camera_colours(const CameraSettings& settings);

}  // namespace ungrain
UNGRAIN_API_END
