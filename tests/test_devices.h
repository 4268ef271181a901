// Which devices tests can run on here.
#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "ungrain/denoiser.h"

namespace ungrain::testing {

// Why there is no GPU to test on; empty where there is one.
inline const std::string& gpu_missing() {
  static const std::string reason = [] {
    for (const DeviceInfo& info : devices()) {
      if (info.device.kind == Device::Kind::cuda) return info.usable ? std::string() : info.reason;
    }
    return std::string("no device");
  }();
  return reason;
}

// UNGRAIN_REQUIRE=cuda makes a missing GPU a failure instead of a skip.
inline bool gpu_required() {
  const char* list = std::getenv("UNGRAIN_REQUIRE");
  return list != nullptr && std::string(list).find("cuda") != std::string::npos;
}

}  // namespace ungrain::testing

// At the start of a test that needs a GPU.
#define UNGRAIN_NEEDS_GPU()                                                             \
  do {                                                                                  \
    if (const std::string& reason = ungrain::testing::gpu_missing(); !reason.empty()) { \
      if (ungrain::testing::gpu_required()) FAIL() << reason;                           \
      GTEST_SKIP() << "no GPU: " << reason;                                             \
    }                                                                                   \
  } while (false)
