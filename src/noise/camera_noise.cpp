// add_camera_noise(): the stages of camera.h over an image, a strip of rows at a time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/border.h"
#include "core/convert.h"
#include "noise/camera.h"
#include "noise/views.h"
#include "ungrain/error.h"
#include "ungrain/noise.h"

namespace ungrain {
namespace {

constexpr int reach = demosaic_reach + DetailControl::reach;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

void check_setting(std::string_view what, double value, double min, double max) {
  if (value >= min && value <= max) return;
  fail(fmt::format("camera: {} must be a number from {} to {}, got {}", what, min, max, value));
}

void check_settings(const CameraSettings& settings) {
  check_setting("iso", settings.iso, 25, 1e6);
  check_setting("white_electrons", settings.white_electrons, 1, 1e9);
  check_setting("full_well", settings.full_well, settings.white_electrons, 1e12);
  check_setting("read_noise", settings.read_noise, 0, 1e6);
  check_setting("converter_noise", settings.converter_noise, 0, 1e6);
  check_setting("red_gain", settings.red_gain, 1, 100);  // below 1 red photosites would overflow at white
  check_setting("blue_gain", settings.blue_gain, 1, 100);
  check_setting("colour_correction", settings.colour_correction, 0, 1);
  check_setting("contrast", settings.contrast, 0.5, 3);
  check_setting("luminance_smoothing", settings.luminance_smoothing, 0, 1);
  check_setting("chroma_smoothing", settings.chroma_smoothing, 0, 1);
  check_setting("sharpening", settings.sharpening, 0, 10);
}

// The region of a view in the image; a view without a region is the whole image.
Region place_of(const Region& region, const ImageSpec& spec) {
  return region.whole() ? Region{0, 0, spec.width, spec.height} : region;
}

// Whether [first, first + count) contains [wanted, wanted + wanted_count) and `reach` on each side of it,
// within the image.
bool holds_surroundings(int first, int count, int wanted, int wanted_count, int image) {
  const std::int64_t end = std::min<std::int64_t>(image, std::int64_t{wanted} + wanted_count + reach);
  return first <= std::max(0, wanted - reach) && std::int64_t{first} + count >= end;
}

void check_views(const ConstImageView& in, const ImageView& out) {
  check_images(in, out);
  if (in.spec.colour == Colour::multi) {
    throw Error(ErrorCode::unsupported, fmt::format("the camera takes gray or rgb images, this one is {}",
                                                    describe_channels(in.spec)));
  }
  if (in.data == out.data) fail("the camera's output cannot be its input");
  const Region from = place_of(in.region, in.spec);
  const Region to = place_of(out.region, out.spec);
  if (from.image_width != to.image_width || from.image_height != to.image_height) {
    fail(fmt::format("the input is of an image of {} x {} pixels and the output of one of {} x {}",
                     from.image_width, from.image_height, to.image_width, to.image_height));
  }
  if (!holds_surroundings(from.x, in.spec.width, to.x, out.spec.width, to.image_width) ||
      !holds_surroundings(from.y, in.spec.height, to.y, out.spec.height, to.image_height)) {
    fail(fmt::format("the camera's input must hold {} pixels on each side of its output", reach));
  }
}

class Camera {
 public:
  Camera(const ConstImageView& in, const ImageView& out, const CameraSettings& settings)
      : in_(in),
        out_(out),
        from_(place_of(in.region, in.spec)),
        to_(place_of(out.region, out.spec)),
        kind_(settings.demosaic),
        correction_(settings),
        sensor_(settings),
        tone_(settings),
        detail_(settings, sensor_, tone_) {}

  // Computes rows of the output.
  void photograph(int first, int count) const {
    ColourPlanes colours = demosaic(expose(first, count), kind_);
    develop(colours);
    ColourPlanes final = detail_.apply(colours);
    for (int y = 0; y < count; ++y) store(final, first + y);
  }

  // Writes the sensor's row y.
  void expose_row(int y, std::vector<double>& row) const {
    SceneRow scene;
    for (auto& channel : scene) channel.resize(static_cast<std::size_t>(in_.spec.width));
    load_scene(to_.y + y, scene);
    for (int x = 0; x < out_.spec.width; ++x) {
      const SensorColour colour = photosite_colour(to_.x + x, to_.y + y);
      row[static_cast<std::size_t>(x)] =
          sensor_.filled(scene[colour][to_.x - from_.x + x], colour, to_.x + x, to_.y + y);
    }
    store_row(out_, y, 0, row.data(), out_.spec.white());
  }

 private:
  // The sensor's samples of these rows and of the rows around them that they depend on.
  Plane expose(int first, int count) const {
    Plane raw(to_.x - reach, to_.y + first - reach, out_.spec.width + 2 * reach, count + 2 * reach);
    SceneRow scene;
    for (auto& channel : scene) channel.resize(static_cast<std::size_t>(in_.spec.width));
    for (int y = raw.y0(); y < raw.y1(); ++y) {
      const int image_y = border_index(Border::mirror, y, from_.image_height);
      load_scene(image_y, scene);
      for (int x = raw.x0(); x < raw.x1(); ++x) {
        const int image_x = border_index(Border::mirror, x, from_.image_width);
        const SensorColour colour = photosite_colour(x, y);
        raw.at(x, y) = sensor_.expose(scene[colour][image_x - from_.x], colour, image_x, image_y);
      }
    }
    return raw;
  }

  // The light of photosites of each colour in a row of the image.
  using SceneRow = std::array<std::vector<double>, 3>;
  void load_scene(int image_y, SceneRow& scene) const {
    const int y = image_y - from_.y;
    const double white = in_.spec.white();
    if (in_.spec.colour == Colour::gray) {  // the same for all of them
      load_row(in_, y, 0, scene[0].data());
      for (double& value : scene[0]) value = tone_.light(value / white);
      scene[1] = scene[2] = scene[0];
      return;
    }
    for (int c = 0; c < 3; ++c) load_row(in_, y, c, scene[c].data());
    for (std::size_t x = 0; x < scene[0].size(); ++x) {
      Light light{};
      for (int c = 0; c < 3; ++c) light[c] = tone_.light(scene[c][x] / white);
      light = correction_.to_sensor(light);
      for (int c = 0; c < 3; ++c) scene[c][x] = light[c];
    }
  }

  void develop(ColourPlanes& colours) const {
    const Plane& shape = colours.red;
    for (int y = shape.y0(); y < shape.y1(); ++y) {
      for (int x = shape.x0(); x < shape.x1(); ++x) {
        const Light light =
            correction_.to_srgb({colours.red.at(x, y), colours.green.at(x, y), colours.blue.at(x, y)});
        colours.red.at(x, y) = tone_.display(light[red]);
        colours.green.at(x, y) = tone_.display(light[green]);
        colours.blue.at(x, y) = tone_.display(light[blue]);
      }
    }
  }

  void store(ColourPlanes& colours, int y) const {
    const int width = out_.spec.width;
    double* red = colours.red.row(to_.y + y);
    double* green = colours.green.row(to_.y + y);
    double* blue = colours.blue.row(to_.y + y);
    const double white = out_.spec.white();
    const auto store_channel = [&](int channel, double* values) {
      for (int x = 0; x < width; ++x) values[x] = std::clamp(values[x], 0.0, 1.0);
      store_row(out_, y, channel, values, white);
    };
    if (out_.spec.colour == Colour::gray) {
      for (int x = 0; x < width; ++x) red[x] = luminance(red[x], green[x], blue[x]);
      return store_channel(0, red);
    }
    store_channel(0, red);
    store_channel(1, green);
    store_channel(2, blue);
  }

  ConstImageView in_;
  ImageView out_;
  Region from_;
  Region to_;
  Demosaic kind_;
  ColourCorrection correction_;
  Sensor sensor_;
  ToneCurve tone_;
  DetailControl detail_;
};

void check_mosaic(const ConstImageView& scene, const ImageView& mosaic) {
  validate(scene.spec);
  validate(mosaic.spec);
  if (scene.spec.colour == Colour::multi) {
    throw Error(ErrorCode::unsupported, fmt::format("the camera takes gray or rgb images, this one is {}",
                                                    describe_channels(scene.spec)));
  }
  if (mosaic.spec.channels != 1) fail("a sensor's mosaic has one channel");
  if (!scene.region.whole() || !mosaic.region.whole() || scene.spec.width != mosaic.spec.width ||
      scene.spec.height != mosaic.spec.height) {
    fail("a sensor's mosaic is as large as the scene");
  }
}

// The part of `in` at the place of `out`.
ConstImageView same_place(ConstImageView in, const ImageView& out) {
  const Region from = place_of(in.region, in.spec);
  const Region to = place_of(out.region, out.spec);
  in.data = static_cast<const std::byte*>(in.data) + (to.y - from.y) * in.strides.y +
            (to.x - from.x) * in.strides.x;
  in.spec.width = out.spec.width;
  in.spec.height = out.spec.height;
  return in;
}

}  // namespace

std::string_view name(Demosaic demosaic) { return demosaic == Demosaic::bilinear ? "bilinear" : "gradient"; }

int camera_reach() { return reach; }

void add_camera_noise(const ConstImageView& in, const ImageView& out, const CameraSettings& settings) {
  check_settings(settings);
  check_views(in, out);
  constexpr int strip = 64;  // rows: keeps the planes of all stages small
  const Camera camera(in, out, settings);
  for (int y = 0; y < out.spec.height; y += strip) camera.photograph(y, std::min(strip, out.spec.height - y));
  if (!in.spec.alpha) return;
  const ConstImageView below = same_place(in, out);
  std::vector<double> values(static_cast<std::size_t>(out.spec.width));
  for (int y = 0; y < out.spec.height; ++y) copy_alpha(below, y, out, y, values);
}

void expose_camera(const ConstImageView& scene, const ImageView& mosaic, const CameraSettings& settings) {
  check_settings(settings);
  check_mosaic(scene, mosaic);
  const Camera camera(scene, mosaic, settings);
  std::vector<double> row(static_cast<std::size_t>(mosaic.spec.width));
  for (int y = 0; y < mosaic.spec.height; ++y) camera.expose_row(y, row);
}

PoissonGaussian camera_noise(const CameraSettings& settings, double white) {
  check_settings(settings);
  const PoissonGaussian share = Sensor(settings).noise();
  return {.a = share.a * white, .b = share.b * white * white};
}

std::array<std::array<double, 3>, 3> camera_colours(const CameraSettings& settings) {
  check_settings(settings);
  const ColourCorrection correction(settings);
  std::array<std::array<double, 3>, 3> matrix{};
  for (int column = 0; column < 3; ++column) {
    Light light{};
    light[column] = 1;
    const Light seen = correction.to_sensor(light);
    matrix[red][column] = seen[red] / settings.red_gain;
    matrix[green][column] = seen[green];
    matrix[blue][column] = seen[blue] / settings.blue_gain;
  }
  return matrix;
}

}  // namespace ungrain
