// A clip that is denoised frame by frame, in whatever order the frames are asked for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <VapourSynth4.h>

#include "arguments.h"
#include "scenes.h"
#include "ungrain/denoiser.h"

namespace ungrain::vapoursynth {

// A reference to a node, given back at the end.
class NodeRef {
 public:
  NodeRef(VSNode* node, const VSAPI& api) : node_(node), api_(&api) {}
  NodeRef(NodeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)), api_(other.api_) {}
  NodeRef& operator=(NodeRef&&) = delete;
  ~NodeRef() {
    if (node_ != nullptr) api_->freeNode(node_);
  }
  VSNode* get() const { return node_; }

 private:
  VSNode* node_;
  const VSAPI* api_;
};

// Frames of the input for one output frame, held until it is done.
class Window;
// The frames that one output frame needs.
struct Windows {
  const Window& clip;
  const Window* pilot;
};
// One Denoiser, with what it keeps from frame to frame.
class FrameStream;

class DenoisedClip {
 public:
  // Throws Error where the arguments do not fit the clip.
  // `pilot`: an estimate of the clean clip, or none.
  DenoisedClip(const Function& function, FunctionArguments arguments, NodeRef node,
               std::optional<NodeRef> pilot, const VSAPI& api);
  ~DenoisedClip();
  DenoisedClip(const DenoisedClip&) = delete;
  DenoisedClip& operator=(const DenoisedClip&) = delete;

  const VSVideoInfo& info() const { return info_; }
  const Function& function() const { return function_; }
  std::vector<VSNode*> nodes() const;
  // Whether several frames are worked on at once.
  bool is_parallel() const { return most_streams_ > 1; }
  // Whether frames besides the one that is made are asked for.
  bool asks_for_others() const;

  void request(int frame, VSFrameContext& context);
  void forget(int frame);  // a request that has failed
  // Throws Error.
  const VSFrame* make(int frame, VSFrameContext& context, VSCore& core);

 private:
  struct Range {
    int first;
    int last;
  };
  bool looks_along() const { return reach_.slices() > 1; }
  Range frames_around(int frame) const;
  std::vector<int> frames_for_noise() const;
  void measure_noise(VSFrameContext& context);

  FrameStream& take_stream(int frame);
  void give_back(FrameStream& stream);
  const VSFrame* take_made(int frame);
  void run_missed(FrameStream& stream, int frame, const Windows& windows, VSCore& core);
  const VSFrame* run(FrameStream& stream, int frame, const Windows& windows, VSCore& core);
  void add_properties(VSFrame& frame, const FrameStream& stream) const;

  const Function& function_;
  MethodParams params_;
  RunArguments arguments_;
  NodeRef node_;
  std::optional<NodeRef> pilot_;
  const VSAPI& api_;
  VSVideoInfo info_;
  ImageSpec spec_;
  Reach reach_;
  int most_streams_ = 1;
  Scenes scenes_;

  std::mutex noise_mutex_;
  std::atomic<bool> noise_known_ = false;  // params_ are resolved
  std::vector<double> sigmas_ = {};        // that were measured, on the 0-255 scale

  std::mutex mutex_;
  std::condition_variable stream_is_free_;
  std::vector<std::unique_ptr<FrameStream>> streams_;
  std::multiset<int> requested_;        // frames that will be asked for, or are being made
  std::map<int, const VSFrame*> made_;  // before they were asked for
};

}  // namespace ungrain::vapoursynth
