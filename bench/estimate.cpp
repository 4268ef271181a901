// ungrain-bench-estimate FILE RUNS THREADS [WIDTH HEIGHT]: what a noise estimate costs. The picture is tiled
// to WIDTH x HEIGHT pixels (20 Mpixel: 5472 3648). Prints the median, the least and the processor's
// milliseconds of the white estimate, of the model of the image as a whole and of the same in bands of rows,
// of all that the program measures by default (the model and the search for a cut), and the model's numbers,
// to see that a faster version finds the same. The white estimate takes every processor that it may run on;
// `taskset -c 0` gives it one.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "core/convert.h"
#include "io/image_file.h"
#include "ungrain/denoiser.h"
#include "ungrain/estimate.h"
#include "ungrain/methods/bm3d.h"
#include "ungrain/noise_model.h"

namespace {

using namespace ungrain;

double processor_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

template <class Work>
void measure(const char* name, int runs, const Work& work) {
  work();  // warms up
  std::vector<double> times;
  const double before = processor_ms();
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    times.push_back(taken.count());
  }
  const double processor = (processor_ms() - before) / runs;
  std::sort(times.begin(), times.end());
  std::printf("%-16s median %7.1f ms  least %7.1f ms  processor %7.1f ms\n", name,
              times[static_cast<std::size_t>(runs / 2)], times.front(), processor);
}

Image tiled(const Image& picture, int width, int height) {
  ImageSpec spec = picture.spec();
  spec.width = width;
  spec.height = height;
  Image result(spec);
  for (int top = 0; top < height; top += picture.spec().height) {
    for (int left = 0; left < width; left += picture.spec().width) {
      ConstImageView from = picture.view();
      from.spec.width = std::min(from.spec.width, width - left);
      ImageView to = result.view();
      to.data = static_cast<std::byte*>(to.data) + left * to.strides.x;
      to.spec.width = from.spec.width;
      for (int y = 0; y < std::min(from.spec.height, height - top); ++y) copy_pixels(from, y, to, top + y);
    }
  }
  return result;
}

NoiseModelEstimate in_bands(const ConstImageView& image, const NoiseModelOptions& options) {
  constexpr int band = 192;  // about 1 Mpixel of a photograph
  NoiseModelEstimator estimator(image.spec, options);
  for (int y = 0; y < image.spec.height; y += band) {
    estimator.add_rows(image.rows(y, std::min(band, image.spec.height - y)));
  }
  return estimator.finish();
}

void print(const NoiseModelEstimate& found) {
  const std::string_view finding = name(found.finding);
  std::printf("%.*s, %d of %d levels calm; white %.17g, correlation %.17g\n",
              static_cast<int>(finding.size()), finding.data(), found.calm_levels, found.levels,
              found.white.sigma, found.white.correlation);
  for (const NoiseModel::Channel& channel : found.model.channels) {
    for (std::size_t n = 0; n < channel.levels.size(); ++n) {
      std::printf(" %.9g:%.9g", channel.levels[n], channel.deviations[n]);
    }
    std::printf("\n");
  }
}

void measure_all(const Image& image, int runs, int threads) {
  const NoiseModelOptions options{.threads = threads};
  measure("white", runs, [&] { estimate_noise(image.view()); });
  measure("model", runs, [&] { estimate_noise_model(image.view(), options); });
  measure("model in bands", runs, [&] { in_bands(image.view(), options); });
  const MethodParams params{Bm3dParams{}};
  measure("resolve", runs, [&] { resolve_with_noise(params, image.view(), options); });
  print(estimate_noise_model(image.view(), options));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4 && count != 6) {
    std::fprintf(stderr, "ungrain-bench-estimate FILE RUNS THREADS [WIDTH HEIGHT]\n");
    return 2;
  }
  try {
    Image picture = io::read_image(arguments[1]);
    if (count == 6) picture = tiled(picture, std::atoi(arguments[4]), std::atoi(arguments[5]));
    measure_all(picture, std::max(1, std::atoi(arguments[2])), std::atoi(arguments[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ungrain-bench-estimate: %s\n", error.what());
    return 1;
  }
}
