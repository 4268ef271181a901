// Noise and metrics.
#include <limits>
#include <optional>

#include "c/handles.h"
#include "c/structs.h"
#include "ungrain/estimate.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/rician.h"

using namespace ungrain;

namespace {

NoiseKind kind_of(std::string_view wanted) {
  std::vector<std::string> names;
  for (const NoiseInfo& info : noise_models()) {
    if (info.amount.name == wanted) return info.kind;
    names.push_back(info.amount.name);
  }
  std::string known;
  for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
  c::invalid("there is no noise '" + std::string(wanted) + "'; there are: " + known);
}

double or_nan(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

ungrain_status ungrain_estimate_noise(const ungrain_image* image, ungrain_noise_estimate* estimate) {
  return c::guarded([&] {
    c::checked_size(estimate);
    const NoiseEstimate found = estimate_noise(c::view_of(image));
    ungrain_noise_estimate to{};
    to.sigma = found.sigma;
    to.correlation = found.correlation;
    to.channel_count = static_cast<std::int32_t>(std::min(found.channels.size(), std::size(to.channels)));
    std::copy_n(found.channels.begin(), to.channel_count, to.channels);
    c::write(to, estimate);
  });
}

ungrain_status ungrain_measured_noise_create(const ungrain_image* image, ungrain_measured_noise** noise) {
  return c::create(noise, [&] { return ungrain_measured_noise{MeasuredNoise(c::view_of(image))}; });
}

void ungrain_measured_noise_destroy(ungrain_measured_noise* noise) { delete noise; }

ungrain_status ungrain_measured_noise_resolve(ungrain_measured_noise* noise, const ungrain_params* params,
                                              ungrain_params** resolved) {
  return c::create(resolved, [&] {
    const ungrain_params& from = c::there(params);
    return c::with_values(from, c::there(noise, "noise").noise.resolve(from.values).params);
  });
}

ungrain_status ungrain_estimate_rician(const float* volume, int32_t width, int32_t height, int32_t depth,
                                       int32_t coils, double* sigma) {
  return c::guarded([&] {
    c::check_there(volume, "the volume");
    c::check_there(sigma, "where sigma goes");
    if (width < 1 || height < 1 || depth < 1) c::invalid("a volume has at least one voxel along each axis");
    *sigma = estimate_rician(volume, width, height, depth, coils).sigma;
  });
}

ungrain_status ungrain_add_noise(const ungrain_image* in, const ungrain_image* out, const char* kind,
                                 double amount, uint64_t seed) {
  return c::guarded([&] {
    add_noise(c::view_of(in), c::view_of(out), {kind_of(c::text(kind, "the kind of noise")), amount, seed});
  });
}

ungrain_status ungrain_compare(const ungrain_image* truth, const ungrain_image* image,
                               ungrain_metrics* metrics) {
  return c::guarded([&] {
    c::checked_size(metrics);
    const Metrics found = compare(c::view_of(truth), c::view_of(image));
    ungrain_metrics to{};
    to.mse = found.mse;
    to.psnr = found.psnr;
    to.max_abs = found.max_abs;
    to.ssim = or_nan(found.ssim);
    to.fsim = or_nan(found.fsim);
    to.fsimc = or_nan(found.fsimc);
    c::write(to, metrics);
  });
}
