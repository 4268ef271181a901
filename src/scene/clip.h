// The scene as a clip with a known truth: the camera pans and zooms, the boat sails, the clouds drift, and in
// the middle a cut leads from the whole view to the things on the table. Every frame is computed as the still
// picture is: the same bits on every platform, at any size, for any number of frames.
#pragma once

#include "scene/scene.h"
#include "ungrain/image.h"

namespace ungrain {

class SceneClip {
 public:
  // Frame 0 is the still picture. The second view starts with frame (frames + 1) / 2.
  SceneClip(int width, int height, int frames);

  int frames() const { return frames_; }
  int cut() const { return (frames_ + 1) / 2; }
  // Any spec that Scene::render_rows() takes, and ycbcr: BT.709 in limited range, from 8 bits, chroma
  // averaged over its pixels. Several threads may call it at once.
  void render(int frame, const ImageView& image) const;

 private:
  Scene still_;
  int width_;
  int height_;
  int frames_;
};

}  // namespace ungrain
