#include "study/library_rung.h"

#include <limits>

#include "ungrain/methods.h"

namespace ungrain::study {
namespace {

double stages_ms(const Report& report) {
  double ms = 0;
  for (const StageTime& stage : report.stages) ms += stage.ms;
  return ms;
}

std::optional<Prepared> prepare(std::string_view ladder, Device device, const RungCall& call,
                                Precision precision = Precision::single, std::string_view computes = {},
                                int threads = 0) {
  const bool on_host = device.kind != Device::Kind::cuda;
  const auto denoiser = std::make_shared<Denoiser>(
      Denoiser::create(library_params(ladder, call.strengths, precision, computes), call.host_view.spec,
                       {.device = device, .threads = threads}));
  const ConstImageView in = on_host ? call.host_view : call.device_view;
  const ImageView out(on_host ? call.host.out : call.device.out, in.spec, in.strides, in.space);
  return Prepared{.timed = [=] { return stages_ms(denoiser->run(in, out)); }, .result_on_host = on_host};
}

// [002]'s prototype, that with cosine transforms, or the first step of the product's default.
MethodParams bm3d_params(const Strengths& strengths, std::string_view computes) {
  const std::vector<double> sigma = {strengths.sigma};
  const int search = 2 * strengths.radius + 1;
  if (computes == "normal") return Bm3dParams{.sigma = sigma, .steps = 1, .search = search};
  MethodParams params(Bm3dParams{.sigma = sigma});
  params.apply_preset("paper-002", 255);
  params.set("search", static_cast<double>(search));
  if (computes == "dct") {
    params.set_text("transform", "dct");
    params.set_text("group_transform", "dct");
  }
  return params;
}

}  // namespace

MethodParams library_params(std::string_view ladder, const Strengths& strengths, Precision precision,
                            std::string_view computes) {
  if (ladder == "bm3d") return bm3d_params(strengths, computes);
  if (ladder == "bilateral") {
    return BilateralParams{.radius = strengths.radius,
                           .sigma_space = strengths.sigma_space,
                           .sigma_range = strengths.sigma_range};
  }
  if (ladder == "nlm") {
    // As [004]: nothing is taken off for the noise, and a pixel counts for itself as the most similar one.
    return NlmParams{.search = 2 * strengths.radius + 1,
                     .patch = patch_side,
                     .patch_sigma = 0,
                     .sigma = 0,
                     .h = strengths.h,
                     .self = SelfWeight::max};
  }
  if (ladder == "nlm-whole-image") {
    MethodParams params(NlmParams{.patch = 2 * strengths.radius + 1, .precision = precision});
    params.apply_preset("paper-003", 255);
    return params;
  }
  if (ladder == "nlm-bilateral-whole-image") {
    return NlmBilateralParams{.search = whole_image,
                              .patch = 2 * strengths.radius + 1,
                              .sigma_h = strengths.sigma_h,
                              .sigma_range = strengths.sigma_range,
                              .sigma_space = std::numeric_limits<double>::infinity(),
                              .precision = precision};
  }
  if (ladder == "nlm-bilateral") {
    return NlmBilateralParams{.search = 2 * strengths.radius + 1,
                              .patch = patch_side,
                              .sigma_h = strengths.sigma_h,
                              .sigma_range = strengths.sigma_range,
                              .sigma_space = strengths.sigma_space};
  }
  return AdaptiveBilateralParams{.radius = strengths.radius,
                                 .sigma_space = strengths.sigma_space,
                                 .sigma_range = strengths.sigma_range,
                                 .factor = strengths.factor,
                                 .epsilon = strengths.epsilon};
}

Rung threads_rung(std::string_view ladder) {
  return {.name = "threads",
          .paper = "[000] parallel",
          .idea = "all of the processor's cores: the library's CPU version",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = [ladder](const RungCall& call) { return prepare(ladder, {Device::Kind::cpu}, call); }};
}

Rung one_thread_rung(std::string_view ladder) {
  return {.name = "one thread",
          .paper = "ours",
          .idea = "one core of the processor: the library's CPU version",
          .shapes = Shapes::none,
          .gpu = false,
          .prepare = [ladder](const RungCall& call) {
            return prepare(ladder, {Device::Kind::cpu}, call, Precision::single, {}, 1);
          }};
}

Rung product_rung(std::string_view ladder, const std::string& computes) {
  return {.name = "ungrain",
          .paper = "ours",
          .idea = "the product's kernels, called through ungrain::Denoiser",
          .shapes = Shapes::none,
          .computes = computes,
          .prepare = [ladder, computes](const RungCall& call) {
            return prepare(ladder, {Device::Kind::cuda}, call, Precision::single, computes);
          }};
}

Rung product_rung_in_halves(std::string_view ladder) {
  Rung rung = product_rung(ladder);
  rung.name = "ungrain, halves";
  rung.idea = "the same with patches compared as 16-bit numbers, the default";
  rung.tolerance = 0.051;
  rung.prepare = [ladder](const RungCall& call) {
    return prepare(ladder, {Device::Kind::cuda}, call, Precision::half);
  };
  return rung;
}

}  // namespace ungrain::study
