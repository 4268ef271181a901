// What the C API's opaque types are.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "c/guard.h"
#include "ungrain/denoiser.h"
#include "ungrain/measured_noise.h"
#include "ungrain/parameters.h"

struct ungrain_params {
  ungrain::MethodParams values;
  std::set<std::string> given =
      {};  // names that the caller set, which ungrain_params_set_spacing() leaves alone
};

struct ungrain_denoiser {
  ungrain::Denoiser denoiser;
};

struct ungrain_cancel {
  ungrain::CancelToken token = {};
};

struct ungrain_measured_noise {
  ungrain::MeasuredNoise noise;
};

namespace ungrain::c {

// Gives the caller a handle, if the work that makes it succeeds.
template <class Handle, class Make>
ungrain_status create(Handle** to, const Make& make) noexcept {
  return guarded([&] {
    check_there(to, "where the result goes");
    *to = std::make_unique<Handle>(make()).release();
  });
}

template <class Handle>
Handle& there(Handle* handle, const char* what) {
  check_there(handle, what);
  return *handle;
}
inline const ungrain_params& there(const ungrain_params* params) { return there(params, "params"); }
inline ungrain_params& there(ungrain_params* params) { return there(params, "params"); }
inline const ungrain_denoiser& there(const ungrain_denoiser* denoiser) { return there(denoiser, "denoiser"); }
inline ungrain_denoiser& there(ungrain_denoiser* denoiser) { return there(denoiser, "denoiser"); }

// The caller's names stay with the parameters that are made of its own.
inline ungrain_params with_values(const ungrain_params& from, MethodParams values) {
  return {std::move(values), from.given};
}

}  // namespace ungrain::c
