// A volume as one tall image, its slices below each other: for measurements that look at images.
#pragma once

#include <functional>

#include "ungrain/denoiser.h"
#include "ungrain/image.h"

namespace ungrain {

class SliceRows : public RowReader {
 public:
  // Fills an image of slice_spec() with slice z.
  using Read = std::function<void(int z, const ImageView& slice)>;
  // Of a large volume every so many slices are taken: about `most_voxels` are read.
  SliceRows(const ImageSpec& volume, Read read, double most_voxels);

  const ImageSpec& spec() const { return spec_; }  // of the tall image
  void read_rows(int first, const ImageView& rows) override;

 private:
  ImageSpec spec_;
  Read read_;
  Image slice_;
  int every_ = 1;
  int held_ = -1;
};

SliceRows slice_rows(const ConstImageView& volume, double most_voxels);  // in host memory
SliceRows slice_rows(RowReader& volume, const ImageSpec& spec, double most_voxels);

}  // namespace ungrain
