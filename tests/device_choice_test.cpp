// Which device an automatic one becomes, on made-up machines.
#include "core/device_choice.h"

#include <gtest/gtest.h>

#include "core/registry.h"
#include "ungrain/methods.h"

namespace ungrain::testing {
namespace {

Cost cost_of(const MethodParams& params, const ImageSpec& spec) {
  const Method& method = find_method(params.method());
  return method.cost(method.defaults().get(), spec);
}

ImageSpec gray(int width, int height) { return {width, height, 1, PixelType::u8, Colour::gray, false, 0}; }

const ImageSpec small = gray(512, 512);
const ImageSpec large = gray(5472, 3648);
const Machine server{.threads = 16, .gpu = Machine::Gpu{{Device::Kind::cuda, 0}, 1, false}};

bool gpu_is_sooner(const MethodParams& params, const ImageSpec& spec, int images, Machine machine = server) {
  const PredictedTimes times = predict_times(cost_of(params, spec), spec, images, machine);
  return times.gpu_ms < times.cpu_ms;
}

TEST(DeviceChoice, EveryMethodTellsItsCost) {
  for (const MethodInfo& method : methods()) {
    for (const ImageSpec& spec : {small, large}) {
      const Method& found = find_method(method.name);
      const Cost cost = found.cost(found.defaults().get(), spec);
      EXPECT_GT(cost.cpu_ns, 0) << method.name;
      if (method.has_cuda) {
        EXPECT_GT(cost.gpu_ns, 0) << method.name;
        EXPECT_LT(cost.gpu_ns, cost.cpu_ns) << method.name;
      }
    }
  }
}

TEST(DeviceChoice, OneSmallImageDoesNotRepayTheStartOfAGpu) {
  for (const MethodInfo& method : methods()) {
    EXPECT_FALSE(gpu_is_sooner(MethodParams::defaults(method.name), small, 1)) << method.name;
  }
  EXPECT_TRUE(gpu_is_sooner(Bm3dParams{}, large, 1));
  EXPECT_FALSE(gpu_is_sooner(BoxParams{}, large, 1));
}

TEST(DeviceChoice, ManyImagesOrAStartedGpuDo) {
  EXPECT_TRUE(gpu_is_sooner(Bm3dParams{}, small, 100));
  EXPECT_TRUE(gpu_is_sooner(Bm3dParams{}, small, 0));
  Machine started = server;
  started.gpu->started = true;
  EXPECT_TRUE(gpu_is_sooner(Bm3dParams{}, small, 1, started));
}

TEST(DeviceChoice, SlowGpusLoseToManyThreads) {
  Machine machine = server;
  machine.gpu->speed = 0.01;
  EXPECT_FALSE(gpu_is_sooner(Bm3dParams{}, large, 0, machine));
}

TEST(DeviceChoice, TheReportSaysWhy) {
  const MethodParams box = BoxParams{};
  const DeviceChoice one = choose_device(box, small, {.images = 1});
  EXPECT_EQ(one.device.kind, Device::Kind::cpu);
  EXPECT_NE(one.reason, "");
  EXPECT_EQ(choose_device(box, small, {.device = {Device::Kind::cpu}}).reason, "");
}

}  // namespace
}  // namespace ungrain::testing
