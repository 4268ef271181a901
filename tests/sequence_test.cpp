// Sequences, through every method on every backend: the images of a sequence are the same bits however it is
// run, and where a method looks along it they are its reference's.
#include <gtest/gtest.h>

#include "method_subject.h"
#include "test_devices.h"
#include "test_images.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"

namespace ungrain::testing {
namespace {

struct Subject : MethodSubject {
  double tolerance = 0;  // against the reference

  bool looks_along() const {
    const ImageSpec spec = spec_of(PixelType::f32);
    return Denoiser::create(params(spec), spec, {.device = {Device::Kind::reference}}).reach().slices() > 1;
  }
  ImageSpec spec_of(PixelType type) const {
    return {21, 26, colour() == Colour::gray ? 1 : 3, type, colour(), false, 0};
  }
};

// Methods that look along the sequence in full; of the others one variant.
std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const MethodCases& method : all_method_cases()) {
    bool first = true;
    for (const Variant& variant : method.variants) {
      if (variant.small) continue;
      for (const Device::Kind kind : {Device::Kind::reference, Device::Kind::cpu, Device::Kind::cuda}) {
        if (kind == Device::Kind::cuda && !method_info(method.method).has_cuda) continue;
        const double tolerance = kind != Device::Kind::cuda ? method.cpu_tolerance
                                 : variant.halves           ? method.of_halves
                                                            : method.cuda_tolerance;
        Subject subject{{variant, {kind}, ""}, tolerance};
        if (!subject.looks_along()) {
          if (first) list.push_back(subject);
          continue;
        }
        for (const char* border : {"symmetric", "mirror", "clamp", "constant", "wrap", "shrink"}) {
          subject.border = border;
          list.push_back(subject);
        }
      }
      first = false;
    }
  }
  return list;
}

constexpr int images = 7;

std::vector<TestImage> pictures(const ImageSpec& spec) {
  std::vector<TestImage> list;
  for (int image = 0; image < images; ++image) {
    list.emplace_back(spec, Layout::interleaved);
    fill_with_picture(list.back(), static_cast<std::uint32_t>(image) + 1);
  }
  return list;
}

std::vector<ConstImageView> inputs(const std::vector<TestImage>& list) {
  std::vector<ConstImageView> views;
  for (const TestImage& image : list) views.push_back(image.view());
  return views;
}

std::vector<ImageView> outputs(std::vector<TestImage>& list) {
  std::vector<ImageView> views;
  for (TestImage& image : list) views.push_back(image.view());
  return views;
}

class Stack : public SliceReader, public SliceWriter {
 public:
  Stack(std::vector<ConstImageView> in, std::vector<ImageView> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  bool has(int slice) override { return slice < static_cast<int>(in_.size()); }
  void read_rows(int slice, int first, const ImageView& rows) override {
    copy(in_[static_cast<std::size_t>(slice)].rows(first, rows.spec.height), rows);
  }
  void write_rows(int slice, int first, const ConstImageView& rows) override {
    copy(rows, out_[static_cast<std::size_t>(slice)].rows(first, rows.spec.height));
  }

 private:
  static void copy(const ConstImageView& from, const ImageView& to) {
    for (int y = 0; y < from.spec.height; ++y) {
      std::copy_n(static_cast<const std::byte*>(from.data) + y * from.strides.y,
                  from.strides.x * from.spec.width, static_cast<std::byte*>(to.data) + y * to.strides.y);
    }
  }
  std::vector<ConstImageView> in_;
  std::vector<ImageView> out_;
};

class Sequences : public ::testing::TestWithParam<Subject> {};

TEST_P(Sequences, AreTheSameBitsHoweverTheyAreRun) {
  const Subject& subject = GetParam();
  if (subject.device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  for (const PixelType type : {PixelType::f32, PixelType::u8}) {
    const ImageSpec spec = subject.spec_of(type);
    const std::vector<TestImage> in = pictures(spec);
    std::vector<TestImage> expected = pictures(spec);
    Denoiser denoiser =
        Denoiser::create(subject.params(spec), spec, {.device = subject.device, .threads = 2});
    denoiser.run(inputs(in), outputs(expected));
    const auto check = [&](const std::vector<TestImage>& made, const char* how) {
      for (std::size_t image = 0; image < images; ++image) {
        EXPECT_EQ(hash_of(made[image].view()), hash_of(expected[image].view())) << how << ", image " << image;
      }
    };
    for (const int band : {0, 1, 9}) {
      Denoiser banded = Denoiser::create(subject.params(spec), spec,
                                         {.device = subject.device, .threads = 2, .band_rows = band});
      std::vector<TestImage> in_place = pictures(spec);
      banded.run(inputs(in_place), outputs(in_place));
      check(in_place, "in place");

      std::vector<TestImage> streamed = pictures(spec);
      Stack stack(inputs(in), outputs(streamed));
      banded.run(stack, stack, spec);
      check(streamed, "streamed");

      std::vector<TestImage> alone = pictures(spec);
      for (const int image : {4, 5, 0, 6, 2, 1, 3}) {
        banded.run(stack, image, alone[static_cast<std::size_t>(image)].view());
      }
      check(alone, "in any order");

      const int centre = 3;
      TestImage of_window(spec, Layout::planar);
      const std::vector<ConstImageView> views = inputs(in);
      banded.run(views, centre, of_window.view());
      EXPECT_EQ(hash_of(of_window.view()), hash_of(expected[centre].view())) << "of a window";
      if (denoiser.reach().slices() > 1) continue;
      TestImage by_itself(spec, Layout::interleaved);
      banded.run(in[centre].view(), by_itself.view());
      EXPECT_EQ(hash_of(by_itself.view()), hash_of(expected[centre].view())) << "by itself";
    }
  }
}

TEST_P(Sequences, AreTheReferences) {
  const Subject& subject = GetParam();
  if (subject.device.kind == Device::Kind::cuda) UNGRAIN_NEEDS_GPU();
  const ImageSpec spec = subject.spec_of(PixelType::f32);
  const std::vector<TestImage> in = pictures(spec);
  std::vector<TestImage> expected = pictures(spec);
  std::vector<TestImage> made = pictures(spec);
  Denoiser::create(subject.params(spec), spec, {.device = {Device::Kind::reference}})
      .run(inputs(in), outputs(expected));
  Denoiser::create(subject.params(spec), spec, {.device = subject.device}).run(inputs(in), outputs(made));
  const double tolerance = subject.variant.tolerance.value_or(
      subject.device.kind == Device::Kind::cuda ? subject.variant.cuda_tolerance.value_or(subject.tolerance)
                                                : subject.tolerance);
  for (std::size_t image = 0; image < images; ++image) {
    const Difference found = difference(made[image], expected[image]);
    EXPECT_LE(found.largest, tolerance) << found.where << ", image " << image;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Sequences, ::testing::ValuesIn(subjects()),
                         [](const auto& subject) { return subject.param.name(); });

}  // namespace
}  // namespace ungrain::testing
