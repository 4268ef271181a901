// The memory and the order of work of a run: everything about a run but pixels.
#pragma once

#include <optional>
#include <vector>

#include "core/bands.h"
#include "core/method.h"
#include "device/backend.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// The memory of a run that works on `band_rows` rows at a time.
struct BufferPlan {
  BufferPlan(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, const Backend& backend,
             int band_rows);

  struct Result {
    int planes = 0;
    Element element = Element::f32;
    int rows = 0;           // held of a slice
    int slices = 1;         // held at once
    std::size_t bytes = 0;  // of one slice
    friend bool operator==(const Result&, const Result&) = default;
  };

  int band_rows = 0;
  int bands = 1;
  std::ptrdiff_t row_stride = 0;  // of every result, in elements
  std::vector<Result> results;    // the source, then what each stage makes
  int head_rows = 0;              // of the source, kept from the top for a wrap border's bottom
  int load_rows = 0;              // converted at a time
  std::size_t raw_bytes = 0;      // of the input's samples that a load needs
  std::size_t out_samples = 0;    // of a band's output
  std::size_t scratch_bytes = 0;

  // Bands are worked on in lanes, each with its own results. A band in flight takes a slot.
  int lanes = 1;
  int slots = 1;
  int device_raws = 0;   // buffers of input samples on the device, for each lane
  int host_inputs = 1;   // buffers of input samples on the host
  int host_outputs = 1;  // and of output samples

  std::size_t head_bytes() const;
  std::size_t lane_bytes() const;  // results and scratch
  // That the memory limit is for, with outputs of the widest type: bands do not depend on the output's type.
  std::size_t bytes(bool images_on_device) const;
  bool host_memory = true;

  friend bool operator==(const BufferPlan&, const BufferPlan&) = default;
};

// Rows of bands that fit the memory; throws Error(out_of_memory) where not even one row fits.
int planned_band_rows(const Pipeline& pipeline, const ImageSpec& spec, const Options& options,
                      const Backend& backend, int wanted, bool images_on_device);

// Whether output rows need the samples that they came from.
bool needs_raw_at_output(const ImageSpec& spec, const Options& options);

// How far along the slow axis each result is needed for one slice of the output.
std::vector<RowRange> slow_reaches(const Pipeline& pipeline);  // begin: -before, end: after + 1

// The slices of a sequence.
class Slices {
 public:
  virtual ~Slices() = default;
  virtual bool exists(int slice) = 0;
  virtual bool starts_scene(int slice) = 0;  // what is before it is not looked at from here on
};

// Rows of a slice that are read and converted.
struct LoadStep {
  int slice = 0;
  RowRange rows;           // of the source's planes
  RowRange raw;            // of the image: these rows and what the search for finite neighbours looks at
  int row_shift = 0;       // from a row of the planes to the row of the image
  bool from_head = false;  // no samples: the rows were kept from the image's top
};

struct StageStep {
  int stage = 0;
  int slice = 0;
  RowRange rows;
  std::vector<int> slices;  // that stand at each offset of the stage's reach; no_pixel: nothing does
};

// A band of an output slice.
struct Step {
  int slice = 0;
  RowRange output;
  RowRange counted;                      // rows whose bad pixels this band counts
  bool starts = false;                   // nothing of earlier bands is used
  std::vector<int> first_rows;           // of each result, where it starts
  std::vector<int> keep_from;            // of each result: earlier rows are dropped
  std::vector<std::vector<int>> slices;  // of each result: the others are dropped
  std::vector<LoadStep> loads;
  std::vector<StageStep> stages;
};

// Lists the steps of a run.
class Walk {
 public:
  struct Settings {
    RowRange output;  // rows
    RowRange input;   // rows that there are
    int band_rows = 0;
    int load_rows = 0;  // at a time
    int fill = 0;       // rows around those that are converted
    bool raw_at_output = false;
    bool carries_rows = false;
    bool converts = true;                  // false: the source's planes are the input's own memory
    std::optional<int> direct_reach = {};  // instead of stages: output rows from samples, so far around
    int first_slice = 0;
    int last_slice = 0;  // inclusive; as far as there are slices
  };
  Walk(const Pipeline& pipeline, const ImageSpec& spec, const Settings& settings, Slices& slices);

  std::optional<Step> next();
  // Slices from an earlier walk that are still held; only where a band is the whole slice.
  void resume(std::vector<std::vector<int>> held) { held_ = std::move(held); }
  const std::vector<std::vector<int>>& held() const { return held_; }
  bool keeps_slices() const { return keeps_slices_; }

 private:
  RowRange scene_around(int slice) const;
  std::vector<int> slices_at(const Stage& stage, int slice, RowRange scene) const;
  void open_slice();
  void open_section();
  bool open_next_slice();
  Step direct_step();
  void add_loads(Step& step, int slice, RowRange rows) const;
  RowRange raw_rows(RowRange rows) const;

  const Pipeline* pipeline_;
  int height_;
  Settings settings_;
  Slices* slices_;
  std::vector<RowRange> reaches_;
  bool slow_ = false;          // some stage looks along the slow axis
  bool keeps_slices_ = false;  // what one output slice has made is used for the next
  int slice_ = 0;
  int next_row_ = 0;  // of the output
  RowRange scene_;
  std::vector<std::vector<int>> needed_;
  std::vector<std::vector<int>> made_now_;  // of needed_: those that are not held
  std::vector<std::vector<int>> held_;
  std::optional<BandSchedule> section_;
  RowRange section_rows_;
  bool section_starts_ = false;
};

}  // namespace ungrain
