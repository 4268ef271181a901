// The one list of ladders.
#include "study/rung.h"

namespace ungrain::study {

std::vector<Ladder> all_ladders() {
  return {bilateral_ladder(),       adaptive_bilateral_ladder(),        nlm_ladder(), nlm_bilateral_ladder(),
          nlm_whole_image_ladder(), nlm_bilateral_whole_image_ladder(), bm3d_ladder()};
}

}  // namespace ungrain::study
