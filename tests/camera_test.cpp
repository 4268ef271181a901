#include "noise/camera.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

constexpr Demosaic both_kinds[] = {Demosaic::bilinear, Demosaic::gradient};

ImageSpec rgb(int width, int height, PixelType type = PixelType::f32) {
  return {.width = width, .height = height, .channels = 3, .type = type, .colour = Colour::rgb};
}
ImageSpec gray(int width, int height) { return {.width = width, .height = height, .type = PixelType::f32}; }

Image flat(const ImageSpec& spec, const std::vector<float>& colour) {
  Image image(spec);
  const std::size_t count = image.bytes() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) image.samples<float>()[i] = colour[i % colour.size()];
  return image;
}

// Ramps, an edge and a fine pattern.
Image scene(const ImageSpec& spec) {
  Image image(spec);
  auto* sample = image.samples<float>();
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < spec.channels; ++c) {
        const int pattern = (5 * x + 9 * y + 40 * c + ((x ^ y) & 1) * 20 + (x > y ? 60 : 0)) & 255;
        *sample++ = static_cast<float>(pattern) / 255;
      }
    }
  }
  return image;
}

Image photograph(const Image& image, const CameraSettings& settings) {
  Image result(image.spec());
  add_camera_noise(image.view(), result.view(), settings);
  return result;
}

std::vector<float> samples_of(const Image& image) {
  const auto* first = image.samples<float>();
  const std::size_t count = image.bytes() / sizeof(float);
  return {first, first + count};
}

CameraSettings without_processing() {
  CameraSettings settings;
  settings.luminance_smoothing = 0;
  settings.chroma_smoothing = 0;
  settings.sharpening = 0;
  settings.colour_correction = 0;
  return settings;
}

// FNV-1a of the samples' bytes in little-endian order, whatever the machine's.
std::uint64_t hash_of(const Image& image) {
  std::uint64_t hash = 14695981039346656037U;
  for (const float sample : samples_of(image)) {
    const auto bits = std::bit_cast<std::uint32_t>(sample);
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((bits >> shift) & 255U)) * 1099511628211U;
  }
  return hash;
}

std::string message_of(const ConstImageView& in, const ImageView& out, const CameraSettings& settings) {
  try {
    add_camera_noise(in, out, settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments moments_of(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean) / n;
  return m;
}

// ---- the sensor

TEST(CameraSensor, ColoursOfTheMosaic) {
  EXPECT_EQ(photosite_colour(0, 0), red);
  EXPECT_EQ(photosite_colour(1, 0), green);
  EXPECT_EQ(photosite_colour(0, 1), green);
  EXPECT_EQ(photosite_colour(1, 1), blue);
  EXPECT_EQ(photosite_colour(-2, -2), red);
  EXPECT_EQ(photosite_colour(-1, -1), blue);
  EXPECT_EQ(photosite_colour(-1, 0), green);
}

// Half of white is far enough from the full well that nothing is cut off.
TEST(CameraSensor, VarianceIsLinearInLight) {
  constexpr int side = 200;
  constexpr double n = side * side;
  for (const double iso : {100.0, 3200.0, 25600.0}) {
    CameraSettings settings;
    settings.iso = iso;
    const Sensor sensor(settings);
    for (const SensorColour colour : {red, green, blue}) {
      const double gain = colour == red ? 2.0 : colour == green ? 1.0 : 1.6;
      const double electrons = 16000 * 100 / iso;
      const double read = std::hypot(2.5, 400 / iso);
      for (const double light : {0.0, 0.01, 0.1, 0.5}) {
        std::vector<double> values;
        for (int y = 0; y < side; ++y) {
          for (int x = 0; x < side; ++x) values.push_back(sensor.expose(light, colour, x, y));
        }
        const double expected = gain / electrons * light + std::pow(gain * read / electrons, 2);
        const Moments found = moments_of(values);
        EXPECT_NEAR(found.mean, light, 4 * std::sqrt(expected / n));
        EXPECT_NEAR(found.variance / expected, 1, 4 * std::sqrt(2 / n))
            << iso << " " << colour << " " << light;
        EXPECT_NEAR(sensor.variance(light, colour) / expected, 1, 1e-12);
      }
    }
  }
}

TEST(CameraSensor, WithoutNoiseIsTheScene) {
  CameraSettings settings;
  settings.noise = false;
  const Sensor sensor(settings);
  for (const SensorColour colour : {red, green, blue}) {
    for (const double light : {0.0, 0.3, 1.0}) EXPECT_NEAR(sensor.expose(light, colour, 3, 4), light, 1e-15);
  }
}

TEST(CameraSensor, IsCutOffAtTheFullWell) {
  CameraSettings settings;
  settings.full_well = settings.white_electrons;
  const Sensor sensor(settings);
  double largest = 0;
  for (int x = 0; x < 1000; ++x) largest = std::max(largest, sensor.expose(1, green, x, 0));
  EXPECT_EQ(largest, 1);
}

// ---- colour correction

TEST(CameraColours, ToTheSensorAndBack) {
  for (const double strength : {0.0, 0.5, 1.0}) {
    CameraSettings settings;
    settings.colour_correction = strength;
    const ColourCorrection correction(settings);
    for (const Light& light : {Light{0.2, 0.5, 0.9}, Light{1, 0, 0}, Light{0, 1, 0}, Light{0, 0, 1}}) {
      const Light seen = correction.to_sensor(light);
      const Light back = correction.to_srgb(seen);
      for (int c = 0; c < 3; ++c) {
        EXPECT_GE(seen[c], 0) << "photosites cannot see less than nothing";
        EXPECT_NEAR(back[c], light[c], 1e-14);
      }
    }
    for (const double gray : correction.to_sensor({0.3, 0.3, 0.3})) EXPECT_NEAR(gray, 0.3, 1e-15);
  }
}

// ---- the tone curve

TEST(CameraTone, DisplayAndLightAreInverse) {
  for (const double contrast : {1.0, 1.4, 2.0}) {
    CameraSettings settings;
    settings.contrast = contrast;
    const ToneCurve tone(settings);
    double last = -1;
    for (int i = 0; i <= 255; ++i) {
      const double display = i / 255.0;
      EXPECT_NEAR(tone.display(tone.light(display)), display, 1e-6) << contrast;
      EXPECT_GT(tone.light(display), last);
      last = tone.light(display);
    }
  }
}

TEST(CameraTone, KnownValues) {
  CameraSettings settings;
  settings.contrast = 1;
  const ToneCurve srgb(settings);
  EXPECT_NEAR(srgb.display(0.18), 0.461356, 1e-6);  // of the standard's formula
  EXPECT_NEAR(srgb.display(0.001), 0.01292, 1e-9);
  const ToneCurve curve({});
  EXPECT_NEAR(curve.display(srgb.light(0.5)), 0.5, 1e-12);  // the S-curve turns about the middle
  EXPECT_NEAR((curve.display(srgb.light(0.501)) - 0.5) / 0.001, 1.4, 0.01);
}

TEST(CameraTone, BeyondBlackAndWhite) {
  const ToneCurve tone({});
  EXPECT_EQ(tone.display(-0.1), 0);
  EXPECT_EQ(tone.display(7), 1);
  EXPECT_EQ(tone.light(-1), 0);
  EXPECT_EQ(tone.light(2), 1);
  EXPECT_EQ(tone.light(std::numeric_limits<double>::quiet_NaN()), 0);
}

// ---- demosaicing

// A mosaic whose colours are given by value(x, y, colour).
template <class Value>
Plane mosaic(int x0, int y0, int width, int height, Value value) {
  Plane raw(x0, y0, width, height);
  for (int y = raw.y0(); y < raw.y1(); ++y) {
    for (int x = raw.x0(); x < raw.x1(); ++x) raw.at(x, y) = value(x, y, photosite_colour(x, y));
  }
  return raw;
}

template <class Value>
void expect_colours(const ColourPlanes& found, Value value) {
  for (int y = found.red.y0(); y < found.red.y1(); ++y) {
    for (int x = found.red.x0(); x < found.red.x1(); ++x) {
      EXPECT_NEAR(found.red.at(x, y), value(x, y, red), 1e-12) << x << " " << y;
      EXPECT_NEAR(found.green.at(x, y), value(x, y, green), 1e-12) << x << " " << y;
      EXPECT_NEAR(found.blue.at(x, y), value(x, y, blue), 1e-12) << x << " " << y;
    }
  }
}

TEST(CameraDemosaic, ReproducesConstants) {
  const auto value = [](int, int, int colour) { return 0.2 + 0.3 * colour; };
  for (const Demosaic kind : both_kinds) expect_colours(demosaic(mosaic(-3, -4, 11, 12, value), kind), value);
}

// Colours that rise alike or, in the bilinear one, each in its own way.
TEST(CameraDemosaic, ReproducesRamps) {
  const auto alike = [](int x, int y, int colour) { return 0.1 * colour + 0.03 * x - 0.02 * y; };
  const auto each = [](int x, int y, int colour) {
    return 0.01 * (colour + 1) * x - 0.02 * (colour - 1) * y;
  };
  for (const Demosaic kind : both_kinds) {
    expect_colours(demosaic(mosaic(-3, -4, 11, 12, alike), kind), alike);
    expect_colours(demosaic(mosaic(-3, -4, 11, 12, each), kind), each);
  }
}

// The answers to one lit photosite are the filters themselves; these are the paper's, times 8.
TEST(CameraDemosaic, FiltersOfThePaper) {
  const auto answer = [](int lit_x, int lit_y) {
    return demosaic(
        mosaic(0, 0, 14, 14, [=](int x, int y, int) { return x == lit_x && y == lit_y ? 8.0 : 0.0; }),
        Demosaic::gradient);
  };
  const ColourPlanes at_red = answer(6, 6);
  EXPECT_EQ(at_red.green.at(6, 6), 4);
  EXPECT_EQ(at_red.green.at(8, 6), -1);
  EXPECT_EQ(at_red.green.at(6, 4), -1);
  EXPECT_EQ(at_red.blue.at(6, 6), 6);
  EXPECT_EQ(at_red.blue.at(4, 6), -1.5);
  EXPECT_EQ(at_red.red.at(7, 6), 4);  // beside a green photosite
  EXPECT_EQ(at_red.red.at(6, 7), 4);
  EXPECT_EQ(at_red.red.at(7, 7), 2);
  EXPECT_EQ(at_red.red.at(6, 8), 0);
  const ColourPlanes at_green = answer(7, 6);  // red to its left and right
  EXPECT_EQ(at_green.green.at(6, 6), 2);
  EXPECT_EQ(at_green.green.at(7, 7), 2);
  EXPECT_EQ(at_green.red.at(7, 6), 5);
  EXPECT_EQ(at_green.blue.at(7, 6), 5);
  EXPECT_EQ(at_green.red.at(9, 6), -1);
  EXPECT_EQ(at_green.red.at(7, 8), 0.5);
  EXPECT_EQ(at_green.red.at(8, 7), -1);
}

TEST(CameraDemosaic, BilinearMeans) {
  const Plane raw = mosaic(0, 0, 14, 14, [](int x, int y, int) { return x == 6 && y == 6 ? 8.0 : 0.0; });
  const ColourPlanes at_red = demosaic(raw, Demosaic::bilinear);
  EXPECT_EQ(at_red.red.at(6, 6), 8);
  EXPECT_EQ(at_red.red.at(7, 6), 4);
  EXPECT_EQ(at_red.red.at(7, 7), 2);
  EXPECT_EQ(at_red.green.at(6, 6), 0);
  EXPECT_EQ(at_red.blue.at(6, 6), 0);
}

// ---- smoothing and sharpening

TEST(CameraDetail, LeavesConstantsAndSharpensEdges) {
  CameraSettings settings;
  settings.iso = 100;
  const Sensor sensor(settings);
  const ToneCurve tone(settings);
  const DetailControl detail(settings, sensor, tone);
  const auto edge = [](int x, double low, double high) { return x < 12 ? low : high; };
  ColourPlanes colours{Plane(0, 0, 24, 13), Plane(0, 0, 24, 13), Plane(0, 0, 24, 13)};
  for (int y = 0; y < 13; ++y) {
    for (int x = 0; x < 24; ++x) {
      colours.red.at(x, y) = edge(x, 0.3, 0.9);
      colours.green.at(x, y) = edge(x, 0.2, 0.8);
      colours.blue.at(x, y) = edge(x, 0.1, 0.7);
    }
  }
  const ColourPlanes found = detail.apply(colours);
  EXPECT_EQ(found.red.x0(), DetailControl::reach);
  EXPECT_NEAR(found.red.at(6, 6), 0.3, 1e-12);
  EXPECT_NEAR(found.green.at(6, 6), 0.2, 1e-12);
  EXPECT_NEAR(found.blue.at(18, 6), 0.7, 1e-12);
  EXPECT_LT(found.green.at(11, 6), 0.19);  // overshoots on both sides
  EXPECT_GT(found.green.at(12, 6), 0.81);
}

// ---- the whole camera

TEST(Camera, FlatAreasKeepTheirColour) {
  const std::vector<std::vector<float>> colours = {
      {0.5F, 0.5F, 0.5F}, {0.7F, 0.4F, 0.3F}, {0.25F, 0.35F, 0.6F}, {0.85F, 0.8F, 0.75F}};
  for (const Demosaic kind : both_kinds) {
    for (const double iso : {100.0, 1600.0, 6400.0}) {
      for (const auto& colour : colours) {
        CameraSettings settings;
        settings.iso = iso;
        settings.demosaic = kind;
        const Image found = photograph(flat(rgb(96, 96), colour), settings);
        for (int c = 0; c < 3; ++c) {
          double mean = 0;
          for (int i = 0; i < 96 * 96; ++i) mean += found.samples<float>()[3 * i + c] / (96.0 * 96);
          // The tone curve is bent, which moves the mean by a part of the noise's variance.
          EXPECT_NEAR(mean, colour[c], (0.2 + 2.5 * iso / 6400) / 255) << iso << " channel " << c;
        }
      }
    }
  }
}

TEST(Camera, WithoutNoiseFlatAreasAreExact) {
  CameraSettings settings;
  settings.noise = false;
  for (const float level : {0.0F, 0.02F, 0.5F, 1.0F}) {
    for (const float sample : samples_of(photograph(flat(rgb(31, 17), {level}), settings)))
      ASSERT_NEAR(sample, level, 1e-6);
  }
}

// Photosites' own colours go through bilinear demosaicing as they are.
TEST(Camera, NoiseIsPoissonGaussianBeforeTheToneCurve) {
  constexpr int side = 256;
  CameraSettings settings = without_processing();
  settings.iso = 3200;
  settings.demosaic = Demosaic::bilinear;
  const ToneCurve tone(settings);
  const Sensor sensor(settings);
  for (const float level : {0.3F, 0.5F, 0.8F}) {
    const Image found = photograph(flat(rgb(side, side), {level}), settings);
    std::vector<double> values[3];
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const SensorColour colour = photosite_colour(x, y);
        values[colour].push_back(tone.light(found.samples<float>()[3 * (y * side + x) + colour]));
      }
    }
    for (const SensorColour colour : {red, green, blue}) {
      const Moments m = moments_of(values[colour]);
      const auto n = static_cast<double>(values[colour].size());
      EXPECT_NEAR(m.variance / sensor.variance(tone.light(level), colour), 1, 4 * std::sqrt(2 / n)) << level;
    }
  }
}

TEST(Camera, HigherIsoIsNoisier) {
  const Image clean = flat(rgb(128, 128), {0.5F});
  double last = 0;
  for (const double iso : {100.0, 400.0, 1600.0, 6400.0, 25600.0}) {
    CameraSettings settings;
    settings.iso = iso;
    std::vector<double> values;
    for (const float sample : samples_of(photograph(clean, settings))) values.push_back(sample);
    const double deviation = std::sqrt(moments_of(values).variance);
    EXPECT_GT(deviation, 1.6 * last) << iso;  // about twice for four times the ISO
    last = deviation;
  }
}

TEST(Camera, SameSeedSameBits) {
  const Image clean = scene(rgb(40, 30));
  CameraSettings settings;
  settings.seed = 7;
  const std::vector<float> first = samples_of(photograph(clean, settings));
  EXPECT_EQ(samples_of(photograph(clean, settings)), first);
  settings.seed = 8;
  EXPECT_NE(samples_of(photograph(clean, settings)), first);
}

// Any banding and tiling.
TEST(Camera, TilesHaveTheBitsOfTheWhole) {
  constexpr int width = 37;
  constexpr int height = 80;  // more than a strip
  const Image clean = scene(rgb(width, height));
  const int reach = camera_reach();
  for (const Demosaic kind : both_kinds) {
    CameraSettings settings;
    settings.demosaic = kind;
    const Image whole = photograph(clean, settings);
    for (const int rows : {1, 7, 64, 79}) {
      for (const int columns : {13, width}) {
        Image tiled(clean.spec());
        for (int y = 0; y < height; y += rows) {
          for (int x = 0; x < width; x += columns) {
            const auto part = [&](auto view, int x0, int y0, int x1, int y1) {
              view = view.rows(y0, y1 - y0);
              if constexpr (std::is_const_v<std::remove_pointer_t<decltype(view.data)>>) {
                view.data = static_cast<const float*>(view.data) + 3 * x0;
              } else {
                view.data = static_cast<float*>(view.data) + 3 * x0;
              }
              view.spec.width = x1 - x0;
              view.region = {x0, y0, width, height};
              return view;
            };
            const int right = std::min(x + columns, width);
            const int bottom = std::min(y + rows, height);
            add_camera_noise(part(clean.view(), std::max(0, x - reach), std::max(0, y - reach),
                                  std::min(width, right + reach), std::min(height, bottom + reach)),
                             part(tiled.view(), x, y, right, bottom), settings);
          }
        }
        ASSERT_EQ(samples_of(tiled), samples_of(whole)) << rows << " x " << columns;
      }
    }
  }
}

TEST(Camera, TinyImages) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 9}, {9, 1}, {2, 2}, {3, 5}}) {
    CameraSettings settings;
    settings.noise = false;
    for (const float sample : samples_of(photograph(flat(rgb(width, height), {0.4F, 0.5F, 0.6F}), settings)))
      ASSERT_TRUE(std::abs(sample - 0.5F) < 0.1001F);
    settings.noise = true;
    for (const float sample : samples_of(photograph(scene(rgb(width, height)), settings)))
      ASSERT_TRUE(sample >= 0 && sample <= 1);
  }
}

// Its photograph is the luminance of that of a gray scene in colour.
TEST(Camera, GrayImages) {
  const std::vector<float> colour = samples_of(photograph(flat(rgb(32, 20), {0.5F}), {}));
  const std::vector<float> found = samples_of(photograph(flat(gray(32, 20), {0.5F}), {}));
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], luminance(colour[3 * i], colour[3 * i + 1], colour[3 * i + 2]), 1e-6);
  }
}

TEST(Camera, AlphaIsCopiedAndTypesAreScaled) {
  ImageSpec spec = rgb(20, 10, PixelType::u8);
  spec.channels = 4;
  spec.alpha = true;
  Image clean(spec);
  for (std::size_t i = 0; i < clean.bytes(); ++i)
    clean.samples<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % 4 == 3 ? i % 251 : 128);
  ImageSpec wide = spec;
  wide.type = PixelType::u16;
  Image bytes(spec);
  Image words(wide);
  add_camera_noise(clean.view(), bytes.view(), {});
  add_camera_noise(clean.view(), words.view(), {});
  for (std::size_t i = 0; i < clean.bytes(); ++i) {
    const int byte = bytes.samples<std::uint8_t>()[i];
    if (i % 4 == 3) {
      ASSERT_EQ(byte, clean.samples<std::uint8_t>()[i]);
    }
    ASSERT_NEAR(words.samples<std::uint16_t>()[i] / 257.0, byte, 0.51);
  }
}

TEST(Camera, NaNDoesNotSpread) {
  Image clean = flat(rgb(40, 40), {0.5F});
  clean.samples<float>()[3 * (20 * 40 + 20) + 1] = std::numeric_limits<float>::quiet_NaN();
  for (const float sample : samples_of(photograph(clean, {}))) ASSERT_TRUE(std::isfinite(sample));
}

TEST(Camera, SaysWhatIsWrong) {
  const Image clean = flat(rgb(40, 40), {0.5F});
  Image out(clean.spec());
  CameraSettings settings;
  settings.iso = 3;
  EXPECT_EQ(message_of(clean.view(), out.view(), settings),
            "camera: iso must be a number from 25 to 1000000, got 3");
  settings = {};
  settings.red_gain = 0.5;
  EXPECT_EQ(message_of(clean.view(), out.view(), settings),
            "camera: red_gain must be a number from 1 to 100, got 0.5");
  EXPECT_EQ(message_of(out.view(), out.view(), {}), "the camera's output cannot be its input");
  ImageView part = out.view().rows(0, 30);
  EXPECT_EQ(message_of(clean.view(), part, {}),
            "the input is of an image of 40 x 40 pixels and the output of one of 40 x 30");
  ConstImageView rows = clean.view().rows(0, 30);
  rows.region = part.region = {0, 0, 40, 40};
  EXPECT_EQ(message_of(rows, part, {}), "the camera's input must hold 7 pixels on each side of its output");
  ImageSpec multi = rgb(8, 8);
  multi.colour = Colour::multi;
  const Image channels(multi);
  Image result(multi);
  EXPECT_EQ(message_of(channels.view(), result.view(), {}),
            "the camera takes gray or rgb images, this one is multi (3 channels)");
}

// Photosites of each colour of a gray area: their mean and variance are those that the settings tell.
TEST(Camera, MosaicHasTheNoiseThatIsTold) {
  CameraSettings settings;
  settings.iso = 6400;
  const Image clean = flat(rgb(400, 400), {0.5F});
  ImageSpec spec = gray(400, 400);
  spec.range = 1000;
  Image mosaic(spec);
  expose_camera(clean.view(), mosaic.view(), settings);
  settings.noise = false;
  Image truth(spec);
  expose_camera(clean.view(), truth.view(), settings);
  settings.noise = true;
  const PoissonGaussian noise = camera_noise(settings, 1000);
  const std::array<double, 4> seen = {1 / settings.red_gain, 1, 1, 1 / settings.blue_gain};
  for (int place = 0; place < 4; ++place) {
    double sum = 0;
    double squares = 0;
    const float level = truth.samples<float>()[place / 2 * 400 + place % 2];
    for (int y = place / 2; y < 400; y += 2) {
      for (int x = place % 2; x < 400; x += 2) {
        const double difference = mosaic.samples<float>()[y * 400 + x] - level;
        sum += difference;
        squares += difference * difference;
      }
    }
    EXPECT_NEAR(level, truth.samples<float>()[1] * seen[place], 1e-3) << place;
    EXPECT_NEAR(sum / 40000, 0, 4 * std::sqrt(noise.variance(level) / 40000)) << place;
    EXPECT_NEAR(squares / 40000, noise.variance(level), 0.04 * noise.variance(level)) << place;
  }
}

TEST(Camera, ColoursOfTheMosaicAreThoseOfItsGray) {
  const CameraSettings settings;
  const auto matrix = camera_colours(settings);
  EXPECT_NEAR(matrix[0][0] + matrix[0][1] + matrix[0][2], 1 / settings.red_gain, 1e-12);
  EXPECT_NEAR(matrix[1][0] + matrix[1][1] + matrix[1][2], 1, 1e-12);
  EXPECT_NEAR(matrix[2][0] + matrix[2][1] + matrix[2][2], 1 / settings.blue_gain, 1e-12);
  const Image clean = flat(rgb(8, 8), {0.5F});
  Image small(gray(8, 6));
  EXPECT_THROW(expose_camera(clean.view(), small.view(), settings), Error);
}

// The same on every platform.
TEST(Camera, BitsAreCommitted) {
  const Image clean = scene(rgb(48, 40));
  CameraSettings settings;
  settings.iso = 3200;
  settings.seed = 11;
  settings.demosaic = Demosaic::bilinear;
  EXPECT_EQ(hash_of(photograph(clean, settings)), 7730540279862482309U);
  settings.demosaic = Demosaic::gradient;
  EXPECT_EQ(hash_of(photograph(clean, settings)), 17774890019184130006U);
}

}  // namespace
}  // namespace ungrain
