// Every method on every backend against its reference, over one set of cases: sizes, borders, types, layouts,
// colours.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "all_cases.h"
#include "cpu/simd.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"

namespace ungrain::testing {
namespace {

struct ImageCase {
  std::string name;
  ImageSpec spec;
  Layout layout = Layout::interleaved;
};

ImageSpec spec_of(int width, int height, PixelType type, Colour colour, int channels, bool alpha = false,
                  double range = 0) {
  return {width, height, channels, type, colour, alpha, range};
}

// What every variant meets.
std::vector<ImageCase> image_cases() {
  using enum PixelType;
  return {
      {"1x1_f32", spec_of(1, 1, f32, Colour::gray, 1)},
      {"1x29_f32", spec_of(1, 29, f32, Colour::gray, 1)},
      {"23x1_u8", spec_of(23, 1, u8, Colour::gray, 1)},
      {"3x2_f32_rgb", spec_of(3, 2, f32, Colour::rgb, 3)},
      {"37x23_f32", spec_of(37, 23, f32, Colour::gray, 1)},
      {"37x23_f32_padded", spec_of(37, 23, f32, Colour::gray, 1), Layout::padded},
      {"37x23_f32_rgb_planar", spec_of(37, 23, f32, Colour::rgb, 3), Layout::planar},
      {"37x23_f32_multi4", spec_of(37, 23, f32, Colour::multi, 4), Layout::flipped},
      {"41x19_f32_multi2", spec_of(41, 19, f32, Colour::multi, 2)},
      {"53x17_u8", spec_of(53, 17, u8, Colour::gray, 1), Layout::flipped},
      {"31x29_u8_rgb", spec_of(31, 29, u8, Colour::rgb, 3)},
      {"31x29_u8_rgba", spec_of(31, 29, u8, Colour::rgb, 4, true), Layout::padded},
      {"29x31_u16_gray_alpha", spec_of(29, 31, u16, Colour::gray, 2, true)},
      {"29x31_u16_12bit", spec_of(29, 31, u16, Colour::gray, 1, false, 4095), Layout::padded},
      {"29x31_u16_rgb_planar", spec_of(29, 31, u16, Colour::rgb, 3), Layout::planar},
      {"37x23_f16_rgb", spec_of(37, 23, f16, Colour::rgb, 3)},
      {"300x40_f32", spec_of(300, 40, f32, Colour::gray, 1)},
  };
}

constexpr const char* borders[] = {"symmetric", "mirror", "clamp", "constant", "wrap", "shrink"};

struct Case {
  Variant variant;
  Device device;
  double tolerance = 0;
  ImageCase image;
  std::string border;  // empty: the variant's own

  std::string name() const {
    std::string text = fmt::format("{}/{}/{}/{}{}", variant.params.method(), ungrain::name(device),
                                   variant.name, image.name, border.empty() ? "" : "/" + border);
    for (char& c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return text;
  }

  MethodParams params() const {
    MethodParams p = variant.params;
    if (!border.empty()) p.set_text("border", border);
    p.scale_strengths(image.spec.white());
    return p;
  }
};

bool applies(const Variant& variant, const ImageCase& image) {
  constexpr int few = 1000;
  if (variant.small && image.spec.width * image.spec.height > few) return false;
  return !variant.only || *variant.only == image.spec.colour;
}

bool compares_halves(const Variant& variant, const ImageSpec& spec) {
  return variant.halves && !(spec.type == PixelType::u16 && spec.white() > 4095);
}

std::vector<Case> all_conformance_cases() {
  std::vector<Case> cases;
  for (const MethodCases& method : all_method_cases()) {
    for (const Device::Kind kind : {Device::Kind::cpu, Device::Kind::cuda}) {
      if (kind == Device::Kind::cuda && !method_info(method.method).has_cuda) continue;
      const bool on_gpu = kind == Device::Kind::cuda;
      for (const Variant& variant : method.variants) {
        for (const ImageCase& image : image_cases()) {
          if (!applies(variant, image)) continue;
          const double tolerance = !on_gpu                                ? method.cpu_tolerance
                                   : compares_halves(variant, image.spec) ? method.of_halves
                                                                          : method.cuda_tolerance;
          cases.push_back({variant, {kind}, tolerance, image, ""});
          // Borders matter where the window leaves the image: on one small gray and one small rgb image each.
          if (!method.borders || (image.name != "37x23_f32" && image.name != "3x2_f32_rgb")) continue;
          for (const char* border : borders) cases.push_back({variant, {kind}, tolerance, image, border});
        }
      }
    }
  }
  return cases;
}

double tolerance_of(const Case& c) {
  const double white = c.image.spec.white();
  if (c.variant.tolerance) return *c.variant.tolerance * white;
  if (c.variant.cuda_tolerance && c.device.kind == Device::Kind::cuda) {
    // And what rounding to the samples' type may add.
    const double step = c.image.spec.type == PixelType::f16   ? 0x1p-10 * white
                        : c.image.spec.type == PixelType::f32 ? 0
                                                              : 1;
    return *c.variant.cuda_tolerance * white + step;
  }
  switch (c.image.spec.type) {
    case PixelType::u8:
    case PixelType::u16:
      return 1;  // one step
    case PixelType::f16:
      return (c.tolerance + 0x1p-10) * white;  // one step of a half at 1
    case PixelType::f32:
      return c.tolerance * white;
  }
  return 0;
}

class UseSimdTarget {
 public:
  explicit UseSimdTarget(const std::string& name) { use_simd_target(name); }
  ~UseSimdTarget() { use_simd_target(""); }
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;
};

class Conformance : public ::testing::TestWithParam<Case> {};

// One image; of a method that looks along sequences as many as it looks at, and one more.
int images_for(const Denoiser& denoiser) {
  const int slices = denoiser.reach().slices();
  return slices == 1 ? 1 : slices + 1;
}

void expect_same_alpha(const TestImage& out, const TestImage& in) {
  const ImageSpec& spec = in.view().spec;
  const int alpha = spec.channels - 1;
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) ASSERT_EQ(out.at(x, y, alpha), in.at(x, y, alpha));
  }
}

TEST_P(Conformance, AgreesWithReference) {
  const Case& c = GetParam();
  if (c.device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  Denoiser reference = Denoiser::create(c.params(), c.image.spec, {.device = {Device::Kind::reference}});
  const int count = images_for(reference);
  const ImageSequence in(count, c.image.spec, c.image.layout);
  std::vector<std::vector<std::byte>> before;
  for (const TestImage& image : in.images) before.push_back(image.bytes());

  ImageSequence expected(count, c.image.spec);
  reference.run(in.views(), expected.views());
  // On the CPU with every set of vector instructions that there is.
  const bool on_cpu = c.device.kind == Device::Kind::cpu;
  for (const std::string& target : on_cpu ? simd_targets() : std::vector<std::string>{""}) {
    SCOPED_TRACE(target);
    const UseSimdTarget use(target);
    ImageSequence out(count, c.image.spec, c.image.layout);
    const Report report =
        Denoiser::create(c.params(), c.image.spec, {.device = c.device}).run(in.views(), out.views());

    EXPECT_EQ(report.device, c.device) << "another backend ran";
    for (std::size_t slice = 0; slice < in.images.size(); ++slice) {
      SCOPED_TRACE(fmt::format("image {} of {}", slice, count));
      const Difference d = difference(out.images[slice], expected.images[slice]);
      EXPECT_TRUE(d.finite);
      EXPECT_LE(d.largest, tolerance_of(c)) << d.where;
      EXPECT_TRUE(out.images[slice].guards_intact()) << "bytes outside the samples were written";
      EXPECT_EQ(in.images[slice].bytes(), before[slice]) << "the input was changed";
      if (c.image.spec.alpha) expect_same_alpha(out.images[slice], in.images[slice]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Conformance, ::testing::ValuesIn(all_conformance_cases()),
                         [](const auto& instance) { return instance.param.name(); });

TEST(Conformance, EveryMethodHasCases) {
  std::set<std::string> tested;
  for (const MethodCases& method : all_method_cases()) tested.insert(method.method);
  for (const MethodInfo& method : methods()) EXPECT_TRUE(tested.contains(method.name)) << method.name;
}

}  // namespace
}  // namespace ungrain::testing
