// The plug-in's entry point: registers a function for every method.
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <VapourSynth4.h>

#include "arguments.h"
#include "denoised_clip.h"
#include "frames.h"
#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/version.h"

namespace ungrain::vapoursynth {
namespace {

const std::vector<Function>& functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> made;
    for (MethodInfo& method : methods()) made.emplace_back(std::move(method));
    return made;
  }();
  return all;
}

// What was thrown, in one line. To be called while it is handled.
std::string thrown(const Function& function) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return function.message("out of memory");
  } catch (const std::exception& error) {
    return function.message(error.what());
  } catch (...) {
    return function.message("an unknown error");
  }
}

const VSFrame* VS_CC get_frame(int number, int reason, void* instance, void**, VSFrameContext* context,
                               VSCore* core, const VSAPI* api) {
  DenoisedClip& clip = *static_cast<DenoisedClip*>(instance);
  try {
    if (reason == arInitial) {
      clip.request(number, *context);
    } else if (reason == arAllFramesReady) {
      return clip.make(number, *context, *core);
    } else {
      clip.forget(number);
    }
  } catch (...) {
    api->setFilterError(thrown(clip.function()).c_str(), context);
  }
  return nullptr;
}

void VS_CC free_clip(void* instance, VSCore*, const VSAPI*) { delete static_cast<DenoisedClip*>(instance); }

void VS_CC create(const VSMap* in, VSMap* out, void* data, VSCore* core, const VSAPI* api) {
  const Function& function = *static_cast<const Function*>(data);
  try {
    NodeRef node(api->mapGetNode(in, "clip", 0, nullptr), *api);
    FunctionArguments arguments = function.read(*in, *api, spec_of(*api->getVideoInfo(node.get())));
    std::optional<NodeRef> pilot;
    if (function.takes_pilot() && api->mapNumElements(in, "ref") > 0) {
      pilot.emplace(api->mapGetNode(in, "ref", 0, nullptr), *api);
    }
    auto clip = std::make_unique<DenoisedClip>(function, std::move(arguments), std::move(node),
                                               std::move(pilot), *api);
    std::vector<VSFilterDependency> dependencies;
    for (VSNode* from : clip->nodes()) {
      dependencies.push_back({from, clip->asks_for_others() ? rpGeneral : rpStrictSpatial});
    }
    const int mode = clip->is_parallel() ? fmParallel : fmParallelRequests;
    const VSVideoInfo info = clip->info();
    api->createVideoFilter(out, function.name().c_str(), &info, get_frame, free_clip, mode,
                           dependencies.data(), static_cast<int>(dependencies.size()), clip.release(), core);
  } catch (...) {
    api->mapSetError(out, thrown(function).c_str());
  }
}

void VS_CC help(const VSMap* in, VSMap* out, void*, VSCore*, const VSAPI* api) {
  int not_given = 0;
  const char* wanted = api->mapGetData(in, "function", 0, &not_given);
  std::string text;
  for (const Function& function : functions()) {
    if (not_given != 0 || function.name() == wanted) text += function.help();
  }
  if (text.empty()) {
    api->mapSetError(out, ("Help: there is no function " + std::string(wanted)).c_str());
    return;
  }
  api->mapSetData(out, "text", text.data(), static_cast<int>(text.size()), dtUtf8, maReplace);
}

void VS_CC version(const VSMap*, VSMap* out, void*, VSCore*, const VSAPI* api) {
  const auto add = [&](const char* key, const std::string& text) {
    api->mapSetData(out, key, text.data(), static_cast<int>(text.size()), dtUtf8, maAppend);
  };
  add("version", UNGRAIN_VERSION);
  for (const DeviceInfo& device : devices()) {
    add("devices",
        name(device.device) + ": " + (device.usable ? device.description : "not usable: " + device.reason));
  }
}

}  // namespace
}  // namespace ungrain::vapoursynth

VS_EXTERNAL_API(void) VapourSynthPluginInit2(VSPlugin* plugin, const VSPLUGINAPI* api) {
  using namespace ungrain::vapoursynth;
  api->configPlugin("org.ungrain.vapoursynth", "ungrain", "Denoising that keeps edges",
                    VS_MAKE_VERSION(UNGRAIN_VERSION_MAJOR, UNGRAIN_VERSION_MINOR), VAPOURSYNTH_API_VERSION, 0,
                    plugin);
  for (const Function& function : functions()) {
    api->registerFunction(function.name().c_str(), function.signature().c_str(), "clip:vnode;", create,
                          const_cast<Function*>(&function), plugin);
  }
  api->registerFunction("Help", "function:data:opt;", "text:data;", help, nullptr, plugin);
  api->registerFunction("Version", "", "version:data;devices:data[]:opt;", version, nullptr, plugin);
}
