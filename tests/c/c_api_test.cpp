// The C API: the checks that are written in C, and the same bits as the C++ API. Linked to the shared
// library.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "checks.h"
#include "ungrain/ungrain.h"

namespace ungrain {
namespace {

struct CCheck : ::testing::TestWithParam<std::size_t> {};

TEST_P(CCheck, passes) {
  const char* failed = c_checks[GetParam()].run();
  EXPECT_EQ(failed, nullptr) << failed << ": " << ungrain_last_error();
}

INSTANTIATE_TEST_SUITE_P(InC, CCheck, ::testing::Range(std::size_t{0}, c_check_count),
                         [](const auto& check) { return std::string(c_checks[check.param].name); });

struct Destroy {
  void operator()(ungrain_params* params) const { ungrain_params_destroy(params); }
  void operator()(ungrain_denoiser* denoiser) const { ungrain_denoiser_destroy(denoiser); }
};

std::unique_ptr<ungrain_params, Destroy> c_params(const char* method) {
  ungrain_params* params = nullptr;
  EXPECT_EQ(ungrain_params_create(method, &params), UNGRAIN_OK) << ungrain_last_error();
  return std::unique_ptr<ungrain_params, Destroy>(params);
}

// A ramp with noise.
Image picture(const ImageSpec& spec, std::uint64_t seed = 1) {
  Image image(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int channel = 0; channel < spec.channels; ++channel) {
      for (int x = 0; x < spec.width; ++x) {
        row[static_cast<std::size_t>(x)] = spec.white() * (0.2 + 0.5 * x / spec.width + (x / 16 % 2) * 0.1);
      }
      store_row(image.view(), y, channel, row.data());
    }
  }
  add_noise(image.view(), image.view(), {NoiseKind::gaussian, 0.08 * spec.white(), seed});
  return image;
}

ungrain_image_spec c_spec(const ImageSpec& spec) {
  ungrain_image_spec c{};
  c.struct_size = sizeof c;
  c.width = spec.width;
  c.height = spec.height;
  c.channels = spec.channels;
  c.type = static_cast<std::int32_t>(spec.type);
  c.colour = static_cast<std::int32_t>(spec.colour);
  c.alpha = spec.alpha ? 1 : 0;
  c.range = spec.range;
  c.slice_width = spec.slice.width;
  c.slice_height = spec.slice.height;
  return c;
}

// An image of C++, for C.
struct CImage {
  explicit CImage(Image& of) : spec(c_spec(of.spec())) {
    image.struct_size = sizeof image;
    image.spec = &spec;
    image.data = of.view().data;
  }
  CImage(const CImage&) = delete;
  CImage& operator=(const CImage&) = delete;
  ungrain_image_spec spec;
  ungrain_image image{};
};

std::string bytes_of(const Image& image) { return {image.samples<char>(), image.bytes()}; }

const Options on_cpu{.device = {.kind = Device::Kind::cpu}};

Image denoised(const MethodParams& params, const Image& in) {
  Image out(in.spec());
  Denoiser::create(resolve(params, in.view()), in.spec(), on_cpu).run(in.view(), out.view());
  return out;
}

TEST(CApi, has_the_bits_of_cpp_for_every_method) {
  const ImageSpec images[] = {
      {.width = 53, .height = 37},
      {.width = 53, .height = 37, .channels = 3, .type = PixelType::u16, .colour = Colour::rgb},
      {.width = 31,
       .height = 40,
       .channels = 4,
       .type = PixelType::f32,
       .colour = Colour::rgb,
       .alpha = true}};
  for (const MethodInfo& method : methods()) {
    for (const ImageSpec& spec : images) {
      SCOPED_TRACE(method.name + " " + std::to_string(spec.channels));
      Image in = picture(spec);
      Image out(spec);
      const CImage from(in);
      const CImage to(out);
      const auto params = c_params(method.name.c_str());
      ASSERT_EQ(c_run(params.get(), &from.image, &to.image), UNGRAIN_OK) << ungrain_last_error();
      EXPECT_EQ(bytes_of(out), bytes_of(denoised(MethodParams::defaults(method.name), in)));
    }
  }
}

TEST(CApi, row_by_row_has_the_bits_of_the_whole) {
  Image in = picture({.width = 61, .height = 50, .channels = 3, .colour = Colour::rgb});
  Image out(in.spec());
  const CImage from(in);
  const CImage to(out);
  ASSERT_EQ(c_run_rows(c_params("bilateral").get(), &from.image, &to.image), UNGRAIN_OK)
      << ungrain_last_error();
  EXPECT_EQ(bytes_of(out), bytes_of(denoised(BilateralParams{}, in)));
}

TEST(CApi, regions_and_strides) {
  const ImageSpec spec{.width = 64, .height = 48};
  Image in = picture(spec);
  const Image whole = denoised(BilateralParams{.radius = 3, .sigma = 15}, in);
  const auto params = c_params("bilateral");
  ASSERT_EQ(ungrain_params_set_text(params.get(), "radius", "3"), UNGRAIN_OK);
  ASSERT_EQ(ungrain_params_set_number(params.get(), "sigma", 15), UNGRAIN_OK);
  const CImage from(in);
  ungrain_denoiser* made = nullptr;
  ASSERT_EQ(ungrain_denoiser_create(params.get(), &from.spec, nullptr, &made), UNGRAIN_OK);
  const std::unique_ptr<ungrain_denoiser, Destroy> denoiser(made);

  // 20 x 16 pixels from (8, 12) on, into rows of 32 bytes.
  std::vector<unsigned char> part(std::size_t{16} * 32, 7);
  ungrain_image_spec part_spec = c_spec({.width = 20, .height = 16});
  ungrain_image to{};
  to.struct_size = sizeof to;
  to.spec = &part_spec;
  to.data = part.data();
  to.stride_x = 1;
  to.stride_y = 32;
  to.stride_channel = 1;
  to.x = 8;
  to.y = 12;
  to.image_width = 64;
  to.image_height = 48;
  ASSERT_EQ(ungrain_denoiser_run(denoiser.get(), &from.image, &to, nullptr), UNGRAIN_OK)
      << ungrain_last_error();
  for (std::size_t y = 0; y < 16; ++y) {
    for (std::size_t x = 0; x < 32; ++x) {
      const unsigned char expected =
          x < 20 ? whole.samples<unsigned char>()[(y + 12) * 64 + x + 8] : static_cast<unsigned char>(7);
      ASSERT_EQ(part[y * 32 + x], expected) << x << ", " << y;
    }
  }
  to.x = 60;  // beyond the image
  EXPECT_EQ(ungrain_denoiser_run(denoiser.get(), &from.image, &to, nullptr), UNGRAIN_INVALID_ARGUMENT);
}

struct CSequence {
  CSequence(int count, const ImageSpec& spec) {
    for (int i = 0; i < count; ++i) {
      images.push_back(std::make_unique<Image>(picture(spec, static_cast<std::uint64_t>(i))));
      wrapped.push_back(std::make_unique<CImage>(*images.back()));
      list.push_back(&wrapped.back()->image);
    }
  }
  std::vector<ConstImageView> views() const {
    std::vector<ConstImageView> all;
    for (const auto& image : images) all.emplace_back(std::as_const(*image).view());
    return all;
  }
  std::vector<std::unique_ptr<Image>> images;
  std::vector<std::unique_ptr<CImage>> wrapped;
  std::vector<const ungrain_image*> list;
};

TEST(CApi, sequences_have_the_bits_of_cpp) {
  constexpr int count = 5;
  const ImageSpec spec{.width = 40, .height = 30};
  const CSequence in(count, spec);
  const auto params = c_params("median");
  ASSERT_EQ(ungrain_params_set_number(params.get(), "radius_t", 1), UNGRAIN_OK) << ungrain_last_error();
  Denoiser direct = Denoiser::create(MedianParams{.radius_t = 1}, spec, on_cpu);
  std::vector<Image> expected;
  std::vector<ImageView> expected_views;
  for (int i = 0; i < count; ++i) expected_views.push_back(expected.emplace_back(spec).view());
  direct.run(in.views(), expected_views);

  ungrain_denoiser* made = nullptr;
  ASSERT_EQ(ungrain_denoiser_create(params.get(), &in.wrapped[0]->spec, nullptr, &made), UNGRAIN_OK);
  const std::unique_ptr<ungrain_denoiser, Destroy> denoiser(made);
  ungrain_reach reach{};
  reach.struct_size = sizeof reach;
  ASSERT_EQ(ungrain_denoiser_reach(made, &reach), UNGRAIN_OK);
  EXPECT_EQ(reach.before, 1);
  EXPECT_EQ(reach.after, 1);

  const CSequence in_memory(count, spec);
  ASSERT_EQ(ungrain_denoiser_run_sequence(made, in.list.data(), in_memory.list.data(), count, nullptr),
            UNGRAIN_OK)
      << ungrain_last_error();
  const CSequence from_reader(count, spec);
  ASSERT_EQ(c_run_slices(params.get(), in.list.data(), from_reader.list.data(), count, 0), UNGRAIN_OK)
      << ungrain_last_error();
  const CSequence clip(count, spec);
  ASSERT_EQ(c_run_slices(params.get(), in.list.data(), clip.list.data(), count, 1), UNGRAIN_OK)
      << ungrain_last_error();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(bytes_of(*in_memory.images[i]), bytes_of(expected[i])) << i;
    EXPECT_EQ(bytes_of(*from_reader.images[i]), bytes_of(expected[i])) << i;
    EXPECT_EQ(bytes_of(*clip.images[i]), bytes_of(expected[i])) << i;
  }

  const CSequence one(1, spec);
  ASSERT_EQ(ungrain_denoiser_run_window(made, in.list.data(), count, 2, one.list[0], nullptr), UNGRAIN_OK)
      << ungrain_last_error();
  EXPECT_EQ(bytes_of(*one.images[0]), bytes_of(expected[2]));
  EXPECT_EQ(ungrain_denoiser_run_window(made, in.list.data(), count, count, one.list[0], nullptr),
            UNGRAIN_INVALID_ARGUMENT);
}

TEST(CApi, volumes_have_the_bits_of_cpp) {
  const ImageSpec slice{.width = 24, .height = 20, .type = PixelType::f32};
  const ImageSpec spec = volume_spec(slice, 12);
  Image in = picture(spec);
  Image out(spec);
  const CImage from(in);
  const CImage to(out);
  const ungrain_image_spec c_slice = c_spec(slice);
  ungrain_image_spec volume{};
  volume.struct_size = sizeof volume;
  ASSERT_EQ(ungrain_volume_spec(&c_slice, 12, &volume), UNGRAIN_OK);
  EXPECT_EQ(volume.width, spec.width);
  EXPECT_EQ(volume.height, 12);
  EXPECT_EQ(volume.slice_width, 24);
  EXPECT_EQ(volume.slice_height, 20);
  const auto params = c_params("bm4d");
  ASSERT_EQ(ungrain_params_set_text(params.get(), "sigma", "0.08"), UNGRAIN_OK) << ungrain_last_error();
  ASSERT_EQ(c_run(params.get(), &from.image, &to.image), UNGRAIN_OK) << ungrain_last_error();
  EXPECT_EQ(bytes_of(out), bytes_of(denoised(Bm4dParams{.sigma = {0.08}}, in)));
  EXPECT_EQ(ungrain_volume_spec(&c_slice, 0, &volume), UNGRAIN_INVALID_ARGUMENT);
}

TEST(CApi, every_thread_has_its_own_error) {
  ungrain_params* none = nullptr;
  ASSERT_NE(ungrain_params_create("one", &none), UNGRAIN_OK);
  const std::string here = ungrain_last_error();
  std::string there = "?";
  std::thread([&] { there = ungrain_last_error(); }).join();
  EXPECT_EQ(there, "");
  EXPECT_EQ(here, ungrain_last_error());
}

TEST(CApi, exceptions_of_callbacks_do_not_cross_it) {
  Image in = picture({.width = 30, .height = 20});
  const CImage from(in);
  ungrain_options options{};
  options.struct_size = sizeof options;
  options.progress = [](void*, double) -> ungrain_status { throw 42; };
  EXPECT_EQ(ungrain_denoise(c_params("box").get(), &from.image, &from.image, &options, nullptr),
            UNGRAIN_INTERNAL);
  EXPECT_NE(std::string(ungrain_last_error()), "");
}

// The library's numbers and C's are the same ones.
static_assert(UNGRAIN_F32 == static_cast<int>(PixelType::f32) &&
              UNGRAIN_U8 == static_cast<int>(PixelType::u8));
static_assert(UNGRAIN_U16 == static_cast<int>(PixelType::u16) &&
              UNGRAIN_F16 == static_cast<int>(PixelType::f16));
static_assert(UNGRAIN_RGB == static_cast<int>(Colour::rgb) &&
              UNGRAIN_MULTI == static_cast<int>(Colour::multi));
static_assert(UNGRAIN_YCBCR == static_cast<int>(Colour::ycbcr) &&
              UNGRAIN_GRAY == static_cast<int>(Colour::gray));
static_assert(UNGRAIN_CUDA == static_cast<int>(Space::Memory::cuda));
static_assert(UNGRAIN_INVALID_ARGUMENT == static_cast<int>(ErrorCode::invalid_argument));
static_assert(UNGRAIN_CANCELLED == static_cast<int>(ErrorCode::cancelled));
static_assert(UNGRAIN_INTERNAL == static_cast<int>(ErrorCode::internal));
static_assert(UNGRAIN_NONFINITE_KEEP == static_cast<int>(NonFinite::keep));
static_assert(UNGRAIN_NONFINITE_ERROR == static_cast<int>(NonFinite::error));
static_assert(UNGRAIN_CLIPPING_KNOWN == static_cast<int>(Clipping::known));
static_assert(UNGRAIN_CLIPPING_KEEP == static_cast<int>(Clipping::keep));
static_assert(UNGRAIN_KIND_IMAGE == static_cast<int>(ParamKind::image));
static_assert(UNGRAIN_KIND_CHOICE == static_cast<int>(ParamKind::choice));
static_assert(UNGRAIN_FALLBACK_DERIVED == static_cast<int>(Fallback::derived));
static_assert(UNGRAIN_UNIT_DELTA_E_SQUARED == static_cast<int>(Unit::delta_e_squared));
static_assert(UNGRAIN_UNIT_INTENSITY == static_cast<int>(Unit::intensity));

}  // namespace
}  // namespace ungrain
