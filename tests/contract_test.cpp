// The contract every method keeps on every backend: bands, threads, tiles, streams and in-place runs give the
// same bits; constants stay; alpha and what is not finite are handled as documented.
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "core/device.h"
#include "method_subject.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/methods.h"
#include "ungrain/noise.h"

namespace ungrain::testing {
namespace {

struct Subject : MethodSubject {
  double constants_move = 0;
};

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const MethodCases& method : all_method_cases()) {
    for (const Variant& variant : method.variants) {
      if (variant.small) continue;
      for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda}) {
        if (kind == Device::Kind::cuda && !method_info(method.method).has_cuda) continue;
        if (!method.borders) list.push_back({{variant, {kind}, ""}, method.constants_move});
        if (!method.borders) continue;
        for (const char* border : {"symmetric", "wrap", "shrink"})
          list.push_back({{variant, {kind}, border}, method.constants_move});
      }
    }
  }
  return list;
}

ImageSpec spec_for(const Subject& subject, int width, int height, PixelType type, bool alpha = false) {
  const int colours = subject.colour() == Colour::gray ? 1 : 3;
  return {width, height, colours + (alpha ? 1 : 0), type, subject.colour(), alpha, 0};
}

// A reference computes each pixel by itself and slowly: half the sides show what the whole would.
ImageSpec spec_in_time(const Subject& subject, int width, int height, PixelType type, bool alpha = false) {
  const int divisor = subject.device.kind == Device::Kind::reference ? 2 : 1;
  return spec_for(subject, width / divisor, height / divisor, type, alpha);
}

class Contract : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (subject().device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  }
  const Subject& subject() const { return GetParam(); }

  std::uint64_t hash_with(const TestImage& in, const Options& options) const {
    const ImageSpec& spec = in.view().spec;
    TestImage out(spec, Layout::interleaved);
    Options with_device = options;
    with_device.device = subject().device;
    Denoiser::create(subject().params(spec), spec, with_device).run(in.view(), out.view());
    return hash_of(out.view());
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, Contract, ::testing::ValuesIn(subjects()),
                         [](const auto& instance) { return instance.param.name(); });

TEST_P(Contract, BandsAndThreadsGiveTheSameBits) {
  for (const PixelType type : {PixelType::f32, PixelType::u8}) {
    TestImage in(spec_in_time(subject(), 61, 47, type), Layout::interleaved);
    fill_with_picture(in);
    const int height = in.view().spec.height;
    const std::uint64_t whole = hash_with(in, {.threads = 1});
    for (const int band : {1, 2, 7, 16, height - 1, height, 100}) {
      EXPECT_EQ(hash_with(in, {.threads = 3, .band_rows = band}), whole) << "band of " << band << " rows";
    }
  }
}

TEST_P(Contract, InPlaceGivesTheSameBits) {
  for (const int band : {0, 3, 16}) {
    for (const bool alpha : {false, true}) {
      TestImage in(spec_in_time(subject(), 53, 41, PixelType::f32, alpha), Layout::interleaved);
      fill_with_picture(in);
      in.set(20, 18, 0, std::nan(""));
      in.set(21, 18, 0, std::numeric_limits<double>::infinity());
      const ImageSpec& spec = in.view().spec;
      TestImage out(spec, Layout::interleaved);
      Denoiser d =
          Denoiser::create(subject().params(spec), spec, {.device = subject().device, .band_rows = band});
      EXPECT_EQ(d.run(in.view(), out.view()).nonfinite_pixels, 2);
      EXPECT_EQ(d.run(in.view(), in.view()).nonfinite_pixels, 2);
      EXPECT_EQ(hash_of(in.view()), hash_of(out.view())) << "band " << band << " alpha " << alpha;
    }
  }
}

// Strengths that change, methods that change, and the first parameters again.
TEST_P(Contract, OtherParametersGiveTheBitsOfANewDenoiser) {
  TestImage in(spec_in_time(subject(), 43, 31, PixelType::u8), Layout::interleaved);
  fill_with_picture(in);
  const ImageSpec& spec = in.view().spec;
  const MethodParams first = subject().params(spec);
  MethodParams stronger = first;
  stronger.scale_strengths(1.5);
  const Options options{.device = subject().device, .band_rows = 9};
  Denoiser kept = Denoiser::create(first, spec, options);
  TestImage out(spec, Layout::interleaved);
  kept.run(in.view(), out.view());
  for (const MethodParams& params : {stronger, MethodParams(BoxParams{.radius = 1}), first}) {
    kept.set_params(params);
    kept.run(in.view(), out.view());
    const std::uint64_t hash = hash_of(out.view());
    Denoiser::create(params, spec, options).run(in.view(), out.view());
    EXPECT_EQ(hash, hash_of(out.view())) << params.method();
    EXPECT_EQ(kept.params().method(), params.method());
  }
}

void copy_rows(const ConstImageView& from, const ImageView& to) {
  const auto bytes =
      static_cast<std::size_t>(from.spec.width * from.spec.channels * bytes_per_sample(from.spec.type));
  for (int y = 0; y < from.spec.height; ++y) {
    std::memcpy(static_cast<std::byte*>(to.data) + y * to.strides.y,
                static_cast<const std::byte*>(from.data) + y * from.strides.y, bytes);
  }
}

// A view as a stream of rows that insists on the promised order.
class Rows : public RowReader, public RowWriter {
 public:
  Rows(const ImageView& view, bool wraps) : view_(view), wraps_(wraps) {}
  void read_rows(int first, const ImageView& rows) override {
    if (!wraps_) {
      EXPECT_EQ(first, next_) << "rows were asked for out of order";
    }
    next_ = first + rows.spec.height;
    copy_rows(view_.rows(first, rows.spec.height), rows);
  }
  void write_rows(int first, const ConstImageView& rows) override {
    EXPECT_EQ(first, next_);
    next_ = first + rows.spec.height;
    copy_rows(rows, view_.rows(first, rows.spec.height));
  }

 private:
  ImageView view_;
  bool wraps_;
  int next_ = 0;
};

// Wide images become float planes a few rows at a time; the narrow one, which holds their first columns, at
// once.
TEST(WideRows, AreFilteredAsNarrowOnes) {
  constexpr int height = 50;
  constexpr int columns = 64;
  for (const Border border : {Border::symmetric, Border::wrap}) {
    const MethodParams params = MedianParams{.radius = 1, .border = border};
    const Options options{.device = {Device::Kind::cpu}, .threads = 2, .band_rows = 40};
    TestImage wide({.width = 70001, .height = height, .type = PixelType::f32}, Layout::interleaved);
    TestImage narrow({.width = columns, .height = height, .type = PixelType::f32}, Layout::interleaved);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < columns; ++x) {
        const bool bad = x == 9 && y >= 13 && y < 16;
        const double value = bad ? std::nan("") : (x * 37 + y * 101) % 256 / 255.0;
        wide.set(x, y, 0, value);
        narrow.set(x, y, 0, value);
      }
      for (int x = columns; x < 70001; ++x) wide.set(x, y, 0, 0.5);
    }
    TestImage out(narrow.view().spec, Layout::interleaved);
    Denoiser::create(params, narrow.view().spec, options).run(narrow.view(), out.view());
    TestImage streamed(wide.view().spec, Layout::interleaved);
    Rows reader(wide.view(), border == Border::wrap);
    Rows writer(streamed.view(), false);
    Denoiser d = Denoiser::create(params, wide.view().spec, options);
    d.run(reader, writer, wide.view().spec);
    d.run(wide.view(), wide.view());
    EXPECT_EQ(hash_of(wide.view()), hash_of(streamed.view()));
    for (int y = 0; y < height; ++y) {
      for (int x = 1; x + 1 < columns; ++x) {
        ASSERT_EQ(streamed.at(x, y, 0), out.at(x, y, 0)) << x << ", " << y;
      }
    }
  }
}

TEST_P(Contract, StreamsGiveTheSameBits) {
  for (const PixelType type : {PixelType::f32, PixelType::u16}) {
    for (const NonFinite rule : {NonFinite::fill, NonFinite::keep}) {
      TestImage in(spec_in_time(subject(), 37, 59, type, true), Layout::interleaved);
      fill_with_picture(in);
      if (type == PixelType::f32) in.set(5, 25, 0, std::nan(""));
      const ImageSpec& spec = in.view().spec;
      TestImage out(spec, Layout::interleaved);
      TestImage streamed(spec, Layout::interleaved);
      for (const int band : {4, 25, spec.height}) {
        Denoiser d = Denoiser::create(subject().params(spec), spec,
                                      {.device = subject().device, .nonfinite = rule, .band_rows = band});
        Rows reader(in.view(), subject().border == "wrap");
        Rows writer(streamed.view(), false);
        const Report memory = d.run(in.view(), out.view());
        const Report stream = d.run(reader, writer, spec);
        ASSERT_EQ(hash_of(streamed.view()), hash_of(out.view())) << "band " << band;
        EXPECT_EQ(memory.nonfinite_pixels, stream.nonfinite_pixels);
        // A GPU holds the whole image where rows beyond the edge are the other edge's.
        const bool whole = subject().device.kind == Device::Kind::cuda && subject().border == "wrap";
        if (!whole) {
          EXPECT_EQ(stream.bands, (spec.height + band - 1) / band);
        }
        if (type == PixelType::f32) {
          EXPECT_EQ(std::isnan(out.at(5, 25, 0)), rule == NonFinite::keep);
        }
      }
    }
  }
}

// A sequence as a stream that insists on the promised order of what is written.
class Slices : public SliceReader, public SliceWriter {
 public:
  Slices(const ImageSequence& in, ImageSequence& out) : in_(in), out_(out) {}
  bool has(int slice) override { return slice < static_cast<int>(in_.images.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy_rows(in_.images[static_cast<std::size_t>(slice)].view().rows(first, rows.spec.height), rows);
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    EXPECT_EQ(std::pair(slice, first), next_);
    const ImageView image = out_.images[static_cast<std::size_t>(slice)].view();
    const int end = first + rows.spec.height;
    next_ = end == image.spec.height ? std::pair(slice + 1, 0) : std::pair(slice, end);
    copy_rows(rows, image.rows(first, rows.spec.height));
  }

 private:
  const ImageSequence& in_;
  ImageSequence& out_;
  std::pair<int, int> next_;
};

// As views, in place, streamed and image by image. Where nothing looks along the sequence every image is as
// it is by itself.
TEST_P(Contract, SequencesGiveTheSameBits) {
  constexpr int count = 4;
  const ImageSpec spec = spec_in_time(subject(), 34, 26, PixelType::f32);
  const ImageSequence in(count, spec);
  std::vector<std::uint64_t> expected;
  for (const int band : {0, 5}) {
    SCOPED_TRACE(band);
    Denoiser d = Denoiser::create(subject().params(spec), spec,
                                  {.device = subject().device, .threads = 2, .band_rows = band});
    ImageSequence out(count, spec);
    d.run(in.views(), out.views());
    if (expected.empty()) expected = out.hashes();
    EXPECT_EQ(out.hashes(), expected) << "as views";

    ImageSequence in_place(count, spec);
    d.run(std::as_const(in_place).views(), in_place.views());
    EXPECT_EQ(in_place.hashes(), expected) << "in place";

    ImageSequence streamed(count, spec);
    Slices stream(in, streamed);
    d.run(stream, stream, spec);
    EXPECT_EQ(streamed.hashes(), expected) << "streamed";

    for (int slice = 0; slice < count; ++slice) {
      TestImage& one = out.images[static_cast<std::size_t>(slice)];
      const std::uint64_t hash = expected[static_cast<std::size_t>(slice)];
      fill_with(one, 0);
      d.run(in.views(), slice, one.view());
      EXPECT_EQ(hash_of(one.view()), hash) << "image " << slice << " of a window";
      fill_with(one, 0);
      d.run(stream, slice, one.view());
      EXPECT_EQ(hash_of(one.view()), hash) << "image " << slice << " of a stream";
      if (d.reach().slices() > 1) continue;
      d.run(in.images[static_cast<std::size_t>(slice)].view(), one.view());
      EXPECT_EQ(hash_of(one.view()), hash) << "image " << slice << " by itself";
    }
  }
}

ConstImageView part_of(const TestImage& image, int x, int y, int width, int height) {
  ConstImageView view = image.view();
  view.region = {x, y, view.spec.width, view.spec.height};
  view.data = static_cast<const std::byte*>(view.data) + y * view.strides.y + x * view.strides.x;
  view.spec.width = width;
  view.spec.height = height;
  return view;
}

TEST_P(Contract, TilesGiveTheSameBits) {
  TestImage in(spec_for(subject(), 73, 61, PixelType::f32), Layout::interleaved);
  fill_with_picture(in);
  const ImageSpec& spec = in.view().spec;
  TestImage whole(spec, Layout::interleaved);
  TestImage tiled(spec, Layout::interleaved);
  Denoiser d = Denoiser::create(subject().params(spec), spec, {.device = subject().device, .band_rows = 9});
  d.run(in.view(), whole.view());
  if (subject().border == "wrap") {
    const Subject& s = subject();
    const bool identity =
        s.variant.name.starts_with("zero") || s.variant.name == "s0" || s.variant.name == "r0";
    if (!identity) {
      EXPECT_THROW(d.run(part_of(in, 0, 0, 73, 60), whole.view().rows(0, 1)), Error);
    }
    return;
  }
  const Denoiser::Reach reach = d.reach();
  constexpr int side = 29;
  for (int y = 0; y < spec.height; y += side) {
    for (int x = 0; x < spec.width; x += side) {
      const int x1 = std::min(spec.width, x + side);
      const int y1 = std::min(spec.height, y + side);
      const int ix = std::max(0, x - reach.x);
      const int iy = std::max(0, y - reach.y);
      const ConstImageView from = part_of(in, ix, iy, std::min(spec.width, x1 + reach.x) - ix,
                                          std::min(spec.height, y1 + reach.y) - iy);
      const ConstImageView to = part_of(tiled, x, y, x1 - x, y1 - y);
      d.run(from, ImageView(const_cast<void*>(to.data), to.spec, to.strides, to.space, to.region));
    }
  }
  EXPECT_EQ(hash_of(tiled.view()), hash_of(whole.view()));
}

TEST_P(Contract, ConstantsStay) {
  for (const double level : {0.0, 0.25, 1.0, 40.0, -3.0}) {
    TestImage in(spec_for(subject(), 23, 17, PixelType::f32), Layout::interleaved);
    fill_with(in, level);
    TestImage out(in.view().spec, Layout::interleaved);
    MethodParams params = subject().params(in.view().spec);
    Denoiser::create(params, in.view().spec, {.device = subject().device}).run(in.view(), out.view());
    EXPECT_LE(difference(out, in).largest, subject().constants_move * std::max(1.0, std::fabs(level)))
        << difference(out, in).where;
  }
}

TEST_P(Contract, NegativeAndHdrValues) {
  TestImage in(spec_for(subject(), 31, 27, PixelType::f32), Layout::interleaved);
  fill_with_picture(in);
  in.set(3, 3, 0, -7.5);
  in.set(4, 3, 0, 1e6);
  in.set(20, 20, 0, 3e18);
  TestImage out(in.view().spec, Layout::interleaved);
  const Report report =
      Denoiser::create(subject().params(in.view().spec), in.view().spec, {.device = subject().device})
          .run(in.view(), out.view());
  EXPECT_EQ(report.nonfinite_pixels, 0);
  EXPECT_TRUE(difference(out, out).finite);
}

TEST_P(Contract, CloneIsTheSame) {
  TestImage in(spec_for(subject(), 33, 21, PixelType::f32), Layout::interleaved);
  fill_with_picture(in);
  const ImageSpec& spec = in.view().spec;
  Denoiser first = Denoiser::create(subject().params(spec), spec, {.device = subject().device, .threads = 2});
  Denoiser second = first.clone();
  TestImage a(spec, Layout::interleaved);
  TestImage b(spec, Layout::interleaved);
  first.run(in.view(), a.view());
  second.run(in.view(), b.view());
  EXPECT_EQ(hash_of(a.view()), hash_of(b.view()));
  EXPECT_EQ(second.device(), first.device());
}

// ---- Methods by name

TEST(WholeImageSearch, BandsThreadsAndStreamsGiveTheSameBits) {
  const ImageSpec spec{.width = 71, .height = 67, .type = PixelType::f32};
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  TestImage out(spec, Layout::interleaved);
  const MethodParams params = NlmParams{.search = whole_image, .patch = 3, .h = 0.1};
  Denoiser::create(params, spec, {.device = {Device::Kind::cpu}, .threads = 1}).run(in.view(), out.view());
  const std::uint64_t whole = hash_of(out.view());
  for (const int band : {9, 50}) {
    TestImage streamed(spec, Layout::interleaved);
    Denoiser d =
        Denoiser::create(params, spec, {.device = {Device::Kind::cpu}, .threads = 3, .band_rows = band});
    Rows reader(in.view(), false);
    Rows writer(streamed.view(), false);
    d.run(reader, writer, spec);
    EXPECT_EQ(hash_of(streamed.view()), whole);
  }
}

TEST(ClippedNoise, KeepsItsMean) {
  // A constant 5 with noise of 25, cut at black. What weighs by the pixel's own value moves towards the many
  // black pixels: by how much stands in the methods' READMEs, and is held to that here. A median has no mean
  // to keep.
  const ImageSpec spec{.width = 256, .height = 256};
  TestImage in(spec, Layout::interleaved);
  fill_with(in, 5);
  add_noise(in.view(), in.view(), {NoiseKind::gaussian, 25, 3});
  const auto mean = [&](const TestImage& image) {
    double sum = 0;
    for (int y = 0; y < spec.height; ++y) {
      for (int x = 0; x < spec.width; ++x) sum += image.at(x, y, 0);
    }
    return sum / spec.width / spec.height;
  };
  const struct {
    MethodParams params;
    double moves_at_most;
  } cases[] = {{BoxParams{.radius = 3}, 0.2},          {GaussianParams{.sigma = 2}, 0.2},
               {NlmParams{.sigma = 25}, 0.2},          {BilateralParams{.sigma_range = 125}, 0.2},
               {Bm3dParams{.sigma = {25}}, 0.8},       {BilateralParams{.sigma = 25}, 0.5},
               {NlmBilateralParams{.sigma = 25}, 0.5}, {AdaptiveBilateralParams{.sigma = 25}, 2.1}};
  for (const auto& [params, moves_at_most] : cases) {
    TestImage out(spec, Layout::interleaved);
    Denoiser::create(params, spec).run(in.view(), out.view());
    EXPECT_NEAR(mean(out), mean(in), moves_at_most) << params.method();
  }
}

TEST(Joint, GrayStoredAsRgbGivesGraysResult) {
  const ImageSpec gray_spec{.width = 40, .height = 30, .type = PixelType::f32};
  ImageSpec rgb_spec = gray_spec;
  rgb_spec.channels = 3;
  rgb_spec.colour = Colour::rgb;
  TestImage gray(gray_spec, Layout::interleaved);
  fill_with_picture(gray);
  TestImage rgb(rgb_spec, Layout::interleaved);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      for (int c = 0; c < 3; ++c) rgb.set(x, y, c, gray.at(x, y, 0));
    }
  }
  for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu}) {
    const MethodParams params = BilateralParams{.radius = 3, .sigma_range = 0.1};
    TestImage gray_out(gray_spec, Layout::interleaved);
    TestImage rgb_out(rgb_spec, Layout::interleaved);
    Denoiser::create(params, gray_spec, {.device = {kind}}).run(gray.view(), gray_out.view());
    Denoiser::create(params, rgb_spec, {.device = {kind}}).run(rgb.view(), rgb_out.view());
    for (int y = 0; y < 30; ++y) {
      for (int x = 0; x < 40; ++x) {
        for (int c = 0; c < 3; ++c) ASSERT_NEAR(rgb_out.at(x, y, c), gray_out.at(x, y, 0), 1e-6);
      }
    }
  }
}

const ImageSpec small{.width = 8, .height = 6, .type = PixelType::f32};

std::string message_of(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "(no error)";
}

TEST(Denoiser, OutputOfAnotherTypeIsScaledFromWhiteToWhite) {
  ImageSpec u8 = small;
  u8.type = PixelType::u8;
  TestImage in(u8, Layout::interleaved);
  fill_with_picture(in);
  ImageSpec u16 = u8;
  u16.type = PixelType::u16;
  TestImage out(u16, Layout::interleaved);
  Denoiser::create(BoxParams{.radius = 0}, u8).run(in.view(), out.view());
  for (int x = 0; x < u8.width; ++x) EXPECT_EQ(out.at(x, 2, 0), 257 * in.at(x, 2, 0));
}

TEST(Denoiser, StrengthZeroReturnsTheInput) {
  TestImage in(small, Layout::interleaved);
  fill_with_picture(in);
  for (const MethodParams& params :
       {MethodParams(BilateralParams{.sigma_range = 0}), MethodParams(GaussianParams{.sigma = 0}),
        MethodParams(BilateralParams{.sigma_space = 0, .sigma_range = 0.1})}) {
    TestImage out(small, Layout::interleaved);
    Denoiser::create(params, small).run(in.view(), out.view());
    EXPECT_EQ(hash_of(out.view()), hash_of(in.view()));
  }
}

TEST(Denoiser, RefusesWhatDoesNotFit) {
  TestImage in(small, Layout::interleaved);
  TestImage out(small, Layout::interleaved);
  Denoiser d = Denoiser::create(BoxParams{}, small, {.device = {Device::Kind::cpu}});
  const auto run = [&](const ConstImageView& from, const ImageView& to) {
    return message_of([&] { d.run(from, to); }, ErrorCode::invalid_argument);
  };
  EXPECT_EQ(run(ConstImageView{}, out.view()), "the input has no data");
  TestImage other({.width = 9, .height = 6, .type = PixelType::f32}, Layout::interleaved);
  EXPECT_EQ(run(other.view(), out.view()),
            "the input is of an image of 9 x 6, the denoiser was made for 8 x 6");
  TestImage bytes({.width = 8, .height = 6, .type = PixelType::u8}, Layout::interleaved);
  EXPECT_EQ(run(bytes.view(), out.view()),
            "the input is u8 with white at 255, the denoiser was made for f32 with white at 1");
  EXPECT_EQ(run(in.view(), in.view().rows(1, 5)),
            "the output is of an image of 8 x 5, the denoiser was made for 8 x 6");
  ImageView shifted = in.view();
  shifted.data = static_cast<std::byte*>(shifted.data) + 4;
  EXPECT_EQ(run(in.view(), shifted), "input and output overlap: they must be apart, or the very same view");
  ConstImageView tile = part_of(in, 2, 2, 4, 2);
  EXPECT_EQ(run(tile, out.view()),
            "the output's region needs the input's pixels (0, 0) to (7, 5), it has (2, 2) to (5, 3)");
  ImageView gpu = out.view();
  gpu.space.memory = Space::Memory::cuda;
  EXPECT_EQ(message_of([&] { d.run(in.view(), gpu); }, ErrorCode::unsupported),
            "the output lies on a GPU, the method runs on the CPU");
}

TEST(Denoiser, CreateRefusesWhatCannotBe) {
  const auto create = [&](const MethodParams& params, const ImageSpec& spec, const Options& options = {}) {
    return message_of([&] { Denoiser::create(params, spec, options); }, ErrorCode::invalid_argument);
  };
  EXPECT_EQ(create(BoxParams{}, {.width = 0, .height = 4}),
            "the image is 0 x 4 pixels: it must have at least one");
  EXPECT_EQ(create(BoxParams{}, {.width = 4, .height = 4, .channels = 5}),
            "the image has 5 channels: 1 to 4 are supported");
  EXPECT_EQ(create(BoxParams{}, {.width = 4, .height = 4, .channels = 3}), "3 channels cannot be gray");
  EXPECT_EQ(create(BoxParams{}, {.width = 4, .height = 4, .range = std::nan("")}),
            "the range must be a positive number, got nan");
  for (const MethodParams& params :
       {MethodParams(BilateralParams{.sigma = 1}), MethodParams(AdaptiveBilateralParams{.sigma = 1}),
        MethodParams(Bm3dParams{.sigma = {1}})}) {
    for (const double range : {1e-20, 1e20}) {
      EXPECT_EQ(create(params, {.width = 4, .height = 4, .type = PixelType::f32, .range = range}),
                std::string(params.method()) +
                    ": the range must be a number from 1e-14 to 1e14; scale the image's values");
    }
  }
  EXPECT_EQ(create(BilateralParams{.sigma_range = 9, .colour = ColourMode::lab}, small),
            "bilateral: colour lab takes an rgb image, this one is gray");
  EXPECT_EQ(create(BilateralParams{.sigma_range = -1.0}, small),
            "bilateral: sigma_range takes a number from 0 up, or auto, got -1");
  EXPECT_EQ(create(BilateralParams{.sigma_space = std::nan(""), .sigma_range = 1}, small),
            "bilateral: sigma_space takes a number from 0 up, or auto, got nan");
  EXPECT_EQ(create(BoxParams{}, small, {.threads = -1}),
            "threads takes a whole number from 0 to 1024, got -1");
}

TEST(Denoiser, MemoryIsALimit) {
  const ImageSpec large{.width = 20000, .height = 20000, .type = PixelType::u16};
  for (const std::size_t limit : {std::size_t{4} << 20U, std::size_t{64} << 20U}) {
    Denoiser d = Denoiser::create(BilateralParams{.radius = 3, .sigma_range = 0.1}, large,
                                  {.threads = 2, .memory = limit});
    ImageSpec strip = large;
    strip.height = 8;
    TestImage in(strip, Layout::interleaved);
    TestImage out(strip, Layout::interleaved);
    ImageView from = in.view();
    from.region = {0, 0, large.width, large.height};
    ImageView to = out.view().rows(0, 5);
    to.region = {0, 0, large.width, large.height};
    EXPECT_LE(d.run(from, to).buffer_bytes, limit);
  }
  EXPECT_NE(message_of(
                [&] {
                  Denoiser::create(BilateralParams{.radius = 3, .sigma_range = 0.1}, large,
                                   {.memory = 100000});
                },
                ErrorCode::out_of_memory)
                .find("an image of 20000 x 20000 needs at least"),
            std::string::npos);
}

TEST(Denoiser, CancelStopsARun) {
  // Large enough that no number of threads is done before the first report.
  const ImageSpec spec{.width = 1600, .height = 1600, .type = PixelType::f32};
  TestImage in(spec, Layout::interleaved);
  TestImage out(spec, Layout::interleaved);
  for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu}) {
    Options options{.device = {kind}};
    std::vector<double> seen;
    options.progress = [&](double fraction) {
      seen.push_back(fraction);
      options.cancel.cancel();
    };
    Denoiser d = Denoiser::create(BilateralParams{.radius = 20, .sigma_range = 0.1}, spec, options);
    EXPECT_EQ(message_of([&] { d.run(in.view(), out.view()); }, ErrorCode::cancelled), "cancelled");
    EXPECT_FALSE(seen.empty());
    EXPECT_LT(seen.front(), 1);
  }
}

TEST(Denoiser, ProgressGrowsToOne) {
  const ImageSpec spec{.width = 300, .height = 300, .type = PixelType::u8};
  TestImage in(spec, Layout::interleaved);
  TestImage out(spec, Layout::interleaved);
  std::vector<double> seen;
  Options options{.device = {Device::Kind::reference}, .band_rows = 40};
  options.progress = [&](double fraction) { seen.push_back(fraction); };
  Denoiser::create(BilateralParams{.radius = 5, .sigma_range = 0.1}, spec, options)
      .run(in.view(), out.view());
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i], seen[i - 1]);
  EXPECT_EQ(seen.back(), 1);
}

TEST(Denoiser, NonFinitePixels) {
  const float nan = std::nanf("");
  std::vector<float> pixels(static_cast<std::size_t>(small.width * small.height), 0.5F);
  pixels[19] = nan;
  pixels[20] = -std::numeric_limits<float>::infinity();
  const ConstImageView in(pixels.data(), small);
  const auto run = [&](NonFinite rule) {
    std::vector<float> out(pixels.size(), -1.0F);
    Denoiser::create(BilateralParams{.sigma_range = 0.1}, small, {.nonfinite = rule})
        .run(in, ImageView(out.data(), small));
    return out;
  };
  for (const float value : run(NonFinite::fill)) EXPECT_NEAR(value, 0.5F, 1e-6);
  const std::vector<float> kept = run(NonFinite::keep);
  EXPECT_TRUE(std::isnan(kept[19]));
  EXPECT_TRUE(std::isinf(kept[20]));
  EXPECT_NEAR(kept[18], 0.5F, 1e-6);
  std::vector<float> untouched(pixels.size(), -1.0F);
  EXPECT_EQ(message_of(
                [&] {
                  Denoiser::create(BilateralParams{.sigma_range = 0.1}, small,
                                   {.nonfinite = NonFinite::error})
                      .run(in, ImageView(untouched.data(), small));
                },
                ErrorCode::bad_pixels),
            "pixel (3, 2) is not a finite number");
  for (const float value : untouched) EXPECT_EQ(value, -1.0F);
}

TEST(Denoiser, ReportsBothScales) {
  const ImageSpec spec{.width = 8, .height = 8, .type = PixelType::u16};
  TestImage in(spec, Layout::interleaved);
  TestImage out(spec, Layout::interleaved);
  const Report report =
      Denoiser::create(BilateralParams{.sigma_range = 2570}, spec).run(in.view(), out.view());
  ASSERT_EQ(report.strengths.size(), 1U);
  EXPECT_EQ(report.strengths[0].name, "sigma_range");
  EXPECT_DOUBLE_EQ(report.strengths[0].value, 2570);
  EXPECT_DOUBLE_EQ(report.strengths[0].on_255, 10);
  EXPECT_EQ(report.stages.size(), 1U);
}

TEST(Devices, AreNamedAndParsed) {
  for (const char* text : {"auto", "cpu", "reference", "cuda", "cuda:3", "cuda:all"})
    EXPECT_EQ(name(parse_device(text)), text);
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:al", "cuda:all "})
    EXPECT_THROW(parse_device(text), Error);
  bool cpu = false;
  bool cuda = false;
  for (const DeviceInfo& info : devices()) {
    cpu = cpu || info.device.kind == Device::Kind::cpu;
    cuda = cuda || info.device.kind == Device::Kind::cuda;
    EXPECT_EQ(info.usable, info.reason.empty());
  }
  EXPECT_TRUE(cpu);
  EXPECT_TRUE(cuda) << "a missing GPU is listed with the reason";
}

TEST(Devices, AnExplicitGpuIsNeverReplaced) {
  EXPECT_THROW(Denoiser::create(BoxParams{}, small, {.device = {Device::Kind::cuda, 99}}), Error);
}

TEST(Devices, AllGpusAreThoseThatAreThere) {
  const Device all = parse_device("cuda:all");
  const Device cpu{Device::Kind::cpu};
  EXPECT_EQ(queues(cpu), std::vector<Device>{cpu});
  if (gpu_missing().empty()) {
    EXPECT_GE(queues(all).size(), 2U);
    return;
  }
  const auto message = [](auto work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_device);
      return error.what();
    }
    return "(no error)";
  };
  const std::string expected = "no device cuda:all: " + gpu_missing();
  EXPECT_EQ(message([&] { Denoiser::create(BoxParams{}, small, {.device = all}); }), expected);
  EXPECT_EQ(message([&] { queues(all); }), expected);
}

}  // namespace
}  // namespace ungrain::testing
