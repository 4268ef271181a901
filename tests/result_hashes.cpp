// Prints a hash over the results of every method on every device that is here (or the one that is named), for
// each of its test cases and each type of samples: a change of the engine that changes no pixel leaves this
// table as it was.
#include <map>
#include <string>

#include <fmt/format.h>

#include "all_cases.h"
#include "test_images.h"
#include "ungrain/denoiser.h"

namespace ungrain::testing {
namespace {

std::vector<ImageSpec> specs_of(PixelType type) {
  constexpr int width = 67;
  constexpr int height = 45;
  return {{width, height, 1, type, Colour::gray, false, 0},
          {width, height, 3, type, Colour::rgb, false, 0},
          {width, height, 4, type, Colour::rgb, true, 0},
          {width, height, 2, type, Colour::multi, false, 0}};
}

struct Total {
  std::uint64_t hash = 1469598103934665603U;
  int runs = 0;
  void add(std::uint64_t other) {
    hash = (hash ^ other) * 1099511628211U;
    ++runs;
  }
};

void add_runs(Total& total, const Variant& variant, const ImageSpec& spec, Device device) {
  TestImage in(spec, Layout::interleaved);
  fill_with_picture(in);
  MethodParams params = variant.params;
  params.scale_strengths(spec.white());
  for (const int band_rows : {0, 13}) {
    TestImage out(spec, Layout::planar);
    Denoiser::create(resolve(params, in.view()), spec,
                     {.device = device, .threads = 2, .band_rows = band_rows})
        .run(in.view(), out.view());
    total.add(hash_of(out.view()));
  }
}

void print_device(Device device) {
  for (const MethodCases& method : all_method_cases()) {
    const MethodInfo info = method_info(method.method);
    if (device.kind == Device::Kind::cuda && !info.has_cuda) continue;
    for (const Variant& variant : method.variants) {
      if (variant.small) continue;
      for (const PixelTypeInfo& type : pixel_types) {
        Total total;
        for (const ImageSpec& spec : specs_of(type.type)) {
          if (variant.only && *variant.only != spec.colour) continue;
          add_runs(total, variant, spec, device);
        }
        fmt::print("{:<10} {:<18} {:<24} {:<4} {:>2} {:016x}\n", name(device), method.method, variant.name,
                   type.name, total.runs, total.hash);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace ungrain::testing

int main(int count, char** words) {
  using namespace ungrain;
  for (const DeviceInfo& info : devices()) {
    const bool one = info.device.kind != Device::Kind::cuda || info.device.index == 0;
    const bool wanted = count < 2 || words[1] == name(info.device);
    if (info.usable && one && wanted) testing::print_device(info.device);
  }
}
