// A method as the rest of the library uses it: its parameters by name, and for each backend the stages that
// compute it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/planes.h"
#include "core/workers.h"
#include "ungrain/image.h"
#include "ungrain/methods/common.h"
#include "ungrain/parameters.h"

namespace ungrain {

// What a stage reads and writes.
struct StageData {
  // One entry for each of Stage::reads. For a stage that looks along the slow axis: one for each slice of its
  // reach, earliest first, of the first result, then those of the next. No data: there is no slice (beyond
  // the ends of a sequence, under the borders constant and shrink), or its elements are not floats.
  std::span<const ConstPlanes> in;
  Planes out;  // its rectangle is what must be computed; no data where the result is not of floats
  Extent image;
  Reach reach = {};                            // the stage's own
  std::span<const TypedPlanes> typed_in = {};  // `in` whatever its type
  TypedPlanes typed_out = {};                  // and `out`
  int slice = 0;                               // of the sequence, that `out` belongs to

  // The planes of the `read`-th result, `offset` slices away.
  const ConstPlanes& at(int read, int offset) const {
    return in[static_cast<std::size_t>(read * reach.slices() + reach.before + offset)];
  }
};

struct StageCall : StageData {
  Workers& workers;
  std::span<float> scratch;  // Stage::scratch floats for each worker
  std::span<float> shared =
      {};  // Stage::shared_per_pixel floats for each pixel of the output, Stage::shared besides

  float* scratch_of(int worker) const {
    return scratch.data() + static_cast<std::size_t>(worker) * (scratch.size() / workers.count());
  }
};

// The same on a GPU: planes and scratch lie there, and the work goes onto the stream.
struct DeviceStageCall : StageData {
  Stream stream;
  std::span<float> scratch;  // Stage::scratch floats in all, or what Stage::scratch_for said
};

// One pass over the image. Every input covers the output rectangle and `reach` around it, as far as the image
// goes; every row is computed once, whatever the bands.
struct Stage {
  std::string name;
  Reach reach = {};
  int planes = 0;                  // that it makes
  Element element = Element::f32;  // of these planes; the last stage's are floats
  std::vector<int> reads =
      {};                   // 0: the source, k: what the k-th stage made; none: what the stage before made
  std::size_t scratch = 0;  // floats for each worker; on a GPU: in all, for the rows of one call
  // On a GPU, instead of a number: floats for a call that computes so many rows, as wide as the image.
  std::function<std::size_t(int rows)> scratch_for = {};
  // Memory that the workers share, in floats: for each pixel that a call computes, and in addition. Not on a
  // GPU.
  std::size_t shared_per_pixel = 0;
  std::size_t shared = 0;
  // Rows that every band computes again: bands are then higher. Not on a GPU.
  int repeated_rows = 0;
  std::function<void(const StageCall&)> run = {};
  // Instead of `run` where all that the stage reads is the source: its values are the image's samples then.
  std::function<void(const StageCall&)> run_on_samples = {};
  std::function<void(const DeviceStageCall&)> launch = {};  // instead of run, on a GPU
};

// Names a CUDA version in a method's table: null where the library is built without CUDA.
#if UNGRAIN_HAVE_CUDA
#define UNGRAIN_CUDA_VERSION(build) build
#else
#define UNGRAIN_CUDA_VERSION(build) nullptr
#endif

// A whole method in one call, on samples as they lie in memory. Every channel of a row is filtered, alpha
// too: the engine restores alpha.
struct DirectCall {
  ConstImageView in;  // covers the output and the reach around it, as far as the image goes
  ImageView out;  // of the same type; both interleaved, or both of one channel whose samples lie side by side
  Rect in_rect;   // where they lie in the image
  Rect out_rect;
  Extent image;
  Workers& workers;
  std::span<float> scratch;          // Direct::scratch floats for each worker
  std::atomic<bool>& saw_nonfinite;  // to be set where a float sample inside out_rect is NaN or infinity

  float* scratch_of(int worker) const {
    return scratch.data() + static_cast<std::size_t>(worker) * (scratch.size() / workers.count());
  }
};

struct DeviceDirectCall;  // device/backend.h

// A version without float planes, used instead of the stages where the output has the samples' type and the
// input is not overwritten. Float samples give the same bits as the stages.
struct Direct {
  std::size_t scratch = 0;  // floats for each worker
  // On the CPU: for samples that are packed and finite.
  std::function<void(const DirectCall&)> run = {};
  // On a GPU: for samples of any layout. It replaces what is not finite, counts it and puts it back itself.
  std::function<void(const DeviceDirectCall&)> launch = {};
  // Of ycbcr, which is filtered in two calls: the version for chroma. The others are luma's.
  std::shared_ptr<const Direct> chroma = {};
  // On the CPU: every call needs all channels of a pixel. Planar images go through the stages.
  bool interleaved_only = false;
};

// The work of one backend for given parameters. No stages: the output is the input.
struct Pipeline {
  std::vector<Stage> stages = {};
  bool wraps = false;  // rows beyond the edge are the other edge's
  // The slow axis' border, at the ends of a sequence and of its scenes.
  Border slow_border = Border::symmetric;
  Direct direct = {};  // instead of the stages, where it can be; not where it wraps
};

// Values of several parameters under one name. `white` is the white level that strengths are relative to.
struct Preset {
  PresetInfo info;
  std::function<void(void* params, double white)> apply;
};

// Time for a pixel, measured by ungrain-bench-cpu and ungrain-bench-gpu: what core/device_choice.h needs.
struct Cost {
  double cpu_ns = 0;  // of one thread of a Xeon with AVX-512
  double gpu_ns = 0;  // of an H200
};

// A parameter along the slices of a volume.
struct DepthRule {
  std::string name;
  std::string follows;  // the parameter that it follows, in slices; empty: it is the voxels' aspect
};

struct Method {
  std::string name;
  std::string summary;
  std::vector<Descriptor> descriptors;

  using Build = std::function<Pipeline(const void* params, const ImageSpec& spec)>;
  std::function<std::shared_ptr<void>()> defaults;
  std::function<std::shared_ptr<void>(const void* params)> copy;
  // Checks values that are each in range but do not fit each other or the image; may be empty.
  std::function<void(const void* params, const ImageSpec& spec)> check;
  std::vector<Preset> presets;
  // For a method that takes a noise model itself: where its parameters keep it, and whether the other
  // parameters allow one. Empty: the engine stabilises the noise before the method.
  std::function<std::shared_ptr<const NoiseModel>&(void* params)> noise_model;
  std::function<bool(const void* params, const ImageSpec& spec)> allows_model;
  std::function<Cost(const void* params, const ImageSpec& spec)> cost;
  // How many frames before and after should take part in a clip where radius_t is not given. Empty: 1 where
  // the method has radius_t, else 0.
  std::function<int(const void* params)> clip_radius_t;
  std::vector<DepthRule> depth;  // empty: not for volumes
  // Whether the builds take a ycbcr spec. Every reach along y is then a multiple of chroma.y. Otherwise, and
  // where it is empty, luma and chroma are filtered apart (core/ycbcr.h).
  std::function<bool(const ImageSpec& spec)> takes_ycbcr;
  Build reference;  // an empty one means that the backend is not supported
  Build cpu;
  Build cuda;

  const Descriptor& descriptor(std::string_view name) const;  // throws with the nearest name
  const Preset& preset(std::string_view name) const;          // likewise
};

MethodInfo info_of(const Method& method);

template <class Params>
struct TypedPreset {
  PresetInfo info;
  void (*apply)(Params&, double white);
};

// Defines a method, typed: see any methods/<name>/method.cpp.
template <class Params>
struct MethodDefinition {
  std::string summary;
  std::vector<Descriptor> descriptors;
  void (*check)(const Params&, const ImageSpec&) = nullptr;
  std::vector<TypedPreset<Params>> presets = {};
  std::shared_ptr<const NoiseModel>& (*noise_model)(Params&) = nullptr;  // both or none
  bool (*allows_model)(const Params&, const ImageSpec&) = nullptr;
  Cost (*cost)(const Params&, const ImageSpec&) = nullptr;
  int (*clip_radius_t)(const Params&) = nullptr;
  std::vector<DepthRule> depth = {};
  bool (*takes_ycbcr)(const ImageSpec&) = nullptr;
  Pipeline (*reference)(const Params&, const ImageSpec&) = nullptr;
  Pipeline (*cpu)(const Params&, const ImageSpec&) = nullptr;
  Pipeline (*cuda)(const Params&, const ImageSpec&) = nullptr;
};

template <class Params>
Method make_method(MethodDefinition<Params> definition) {
  const auto erase = [](auto* build) -> Method::Build {
    if (build == nullptr) return nullptr;
    return [build](const void* params, const ImageSpec& spec) {
      return build(*static_cast<const Params*>(params), spec);
    };
  };
  Method method;
  method.name = Params::method;
  method.summary = std::move(definition.summary);
  method.descriptors = std::move(definition.descriptors);
  method.defaults = [] { return std::make_shared<Params>(); };
  method.copy = [](const void* params) {
    return std::make_shared<Params>(*static_cast<const Params*>(params));
  };
  if (definition.check != nullptr) {
    method.check = [check = definition.check](const void* params, const ImageSpec& spec) {
      check(*static_cast<const Params*>(params), spec);
    };
  }
  for (TypedPreset<Params>& preset : definition.presets) {
    method.presets.push_back({std::move(preset.info), [apply = preset.apply](void* params, double white) {
                                apply(*static_cast<Params*>(params), white);
                              }});
  }
  if (definition.noise_model != nullptr) {
    method.noise_model = [model = definition.noise_model](void* params) -> auto& {
      return model(*static_cast<Params*>(params));
    };
    method.allows_model = [allows = definition.allows_model](const void* params, const ImageSpec& spec) {
      return allows(*static_cast<const Params*>(params), spec);
    };
  }
  method.cost = [cost = definition.cost](const void* params, const ImageSpec& spec) {
    return cost != nullptr ? cost(*static_cast<const Params*>(params), spec) : Cost{};
  };
  if (definition.clip_radius_t != nullptr) {
    method.clip_radius_t = [radius = definition.clip_radius_t](const void* params) {
      return radius(*static_cast<const Params*>(params));
    };
  }
  method.depth = std::move(definition.depth);
  method.takes_ycbcr = definition.takes_ycbcr;
  method.reference = erase(definition.reference);
  method.cpu = erase(definition.cpu);
  method.cuda = erase(definition.cuda);
  return method;
}

}  // namespace ungrain
