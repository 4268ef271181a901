// The picture that the demo, the tests and the benchmarks look at: an evening view over a lake with a
// lighthouse, and before it a table with a plaid cloth, a glazed vase of ferns, an orange and a printed test
// card. It holds what denoisers are judged on: smooth gradients, hard edges, fine text and line patterns,
// repeating fabric, fractal foliage and flat patches.
//
// It is computed, not stored: the same bits on every platform, at any size, in any cut into rows; a larger
// size shows finer detail.
#pragma once

#include <memory>

#include "ungrain/image.h"

namespace ungrain {

namespace scene {
struct Moment;
}

class Scene {
 public:
  // The composition is made for aspect ratios from 1:2 to 3:1; any size from 1 x 1 up works.
  Scene(int width, int height);
  // As a camera shows it at some moment; see SceneClip. Its plants are those of `other`, of the same size,
  // which takes less time than to grow them.
  Scene(const Scene& other, const scene::Moment& moment);
  ~Scene();
  Scene(Scene&&) noexcept;
  Scene& operator=(Scene&&) noexcept;

  // Fills `rows` with the rows [first, first + rows.spec.height) of the scene, values 0 to white;
  // rows.spec.width is the scene's width. Gray is the Rec. 601 luma of red, green and blue; alpha is white;
  // independent channels are red, green, blue, red (or gray, where there is only one). Several threads may
  // call it at once.
  void render_rows(int first, const ImageView& rows) const;

 private:
  struct Plants;
  struct Parts;
  std::shared_ptr<const Plants> plants_;
  std::unique_ptr<const Parts> parts_;
};

// The whole scene at the size of `spec`.
Image render_scene(const ImageSpec& spec);

}  // namespace ungrain
