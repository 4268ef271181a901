// ungrain-bench-call METHOD WIDTH HEIGHT RUNS [NAME=VALUE…]: what a call costs from C++, for bench/python to
// hold a call from Python against. A float gray image; prints the median microseconds of a whole call
// (resolve, create, run) and of a run alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "ungrain/denoiser.h"

namespace {

using namespace ungrain;

template <class Work>
double median_us(int runs, const Work& work) {
  std::vector<double> times;
  for (int run = 0; run < runs + 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    if (run >= 3) times.push_back(taken.count());  // the first ones warm up
  }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

void measure(char** arguments, int count) {
  ImageSpec spec{.width = std::atoi(arguments[2]), .height = std::atoi(arguments[3]), .type = PixelType::f32};
  const int runs = std::atoi(arguments[4]);
  MethodParams params = MethodParams::defaults(arguments[1]);
  for (int index = 5; index < count; ++index) {
    const std::string_view setting = arguments[index];
    const std::size_t equals = setting.find('=');
    params.set_text(setting.substr(0, equals), setting.substr(equals + 1));
  }
  Image in(spec);
  Image out(spec);
  unsigned state = 1;
  for (int i = 0; i < spec.width * spec.height; ++i) {
    state = state * 1664525U + 1013904223U;
    in.samples<float>()[i] = static_cast<float>(state >> 8U) / static_cast<float>(1U << 24U);
  }
  Options options;
  options.device = {Device::Kind::cpu};
  const ConstImageView from = in.view();
  const double call =
      median_us(runs, [&] { Denoiser::create(resolve(params, from), spec, options).run(from, out.view()); });
  Denoiser denoiser = Denoiser::create(resolve(params, from), spec, options);
  const double run = median_us(runs, [&] { denoiser.run(from, out.view()); });
  std::printf("%.3f %.3f\n", call, run);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "ungrain-bench-call METHOD WIDTH HEIGHT RUNS [NAME=VALUE…]\n");
    return 2;
  }
  try {
    measure(arguments, count);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ungrain-bench-call: %s\n", error.what());
    return 1;
  }
}
