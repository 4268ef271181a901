// Runs a pipeline over images: samples to float planes, through the stages, and back to samples, band by
// band. core/plan.h decides the bands and their order; device/backend.h is the interface of a device.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/method.h"
#include "core/plan.h"
#include "core/rows.h"
#include "device/backend.h"
#include "ungrain/denoiser.h"
#include "ungrain/sequence.h"

namespace ungrain {

class Engine {
 public:
  // Throws where the device does not have the memory for bands of a single row.
  Engine(Pipeline pipeline, const ImageSpec& spec, const Options& options, std::unique_ptr<Backend> backend);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Report run(const ConstImageView& in, const ImageView& out);
  Report run(RowReader& in, RowWriter& out, const ImageSpec& out_spec);
  Report run(std::span<const ConstImageView> in, std::span<const ImageView> out);
  Report run_centre(std::span<const ConstImageView> window, int centre, const ImageView& out);
  Report run(SliceReader& in, SliceWriter& out, const ImageSpec& out_spec);
  Report run_slice(SliceReader& in, int slice, const ImageView& out);
  void forget_slices();
  void run_async(const ConstImageView& in, const ImageView& out, Stream stream);
  void wait();

  // Runs this pipeline from now on, in the memory that is there. Where that memory does not fit it, nothing
  // changes and the result is false.
  bool take_over(Pipeline pipeline);

  Reach reach() const { return reach_; }  // of the pipeline

 private:
  struct Job;        // one run
  struct Lane;       // what the stages of a band work in
  struct Slot;       // a band in flight
  struct Workplace;  // lanes and slots for one plan

  // Of run_slice(): the slices of a reader that are held.
  struct HeldSlices {
    const SliceReader* reader = nullptr;
    std::vector<std::vector<int>> slices;
  };

  Workplace& workplace(bool images_on_device, PixelType out);
  std::unique_ptr<Workplace> make_workplace(int band_rows, bool images_on_device) const;
  void reserve_outputs(Workplace& place, PixelType out) const;

  void refuse_bad_pixels(Job& job, std::span<const ConstImageView> in);
  Report run_views(std::span<const ConstImageView> in, std::span<const ImageView> out, int first_slice,
                   int last_slice);
  bool can_go_directly(const Job& job) const;
  bool looks_itself(const Job& job, bool in_place) const;
  void check_sequence(std::span<const ConstImageView> in, std::span<const ImageView> out) const;
  void run_slices(SliceReader& in, Job& job);

  void execute(Job& job, Workplace& place);
  void stop_all(Job& job, Workplace& place);
  void walk_bands(Job& job, Workplace& place);
  Walk make_walk(Job& job, const Workplace& place) const;
  void start_feed(Job& job, Workplace& place);
  void start_band(Job& job, Workplace& place, Slot& slot, const Step& step, const std::optional<Step>& next);
  void filter_directly(Job& job, Workplace& place, Slot& slot, const Step& step, const ImageView& out,
                       const std::optional<RowRequest>& next);
  void load(Job& job, Workplace& place, Slot& slot, const Step& step, const LoadStep& load,
            const std::optional<RowRequest>& next);
  ConstImageView samples_of(Job& job, Workplace& place, Slot& slot, int slice, RowRange rows,
                            const std::optional<RowRequest>& next);
  ConstImageView samples_held(Job& job, Workplace& place, Lane& lane, int slice, RowRange rows);
  TypedPlanes room_in_ring(Job& job, Lane& lane, const Step& step, int result, int slice, RowRange rows);
  TypedPlanes planes_of(Job& job, Lane& lane, int result, int slice);
  std::optional<TypedPlanes> final_planes(const Job& job, int slice) const;
  void run_stage(Job& job, Slot& slot, const Step& step, const StageStep& stage);
  ImageView room_for_output(Job& job, Workplace& place, Slot& slot, const Step& step);
  void finish_band(Job& job, Slot& slot);
  void tell_progress(Job& job, double part_of_step);

  Pipeline pipeline_;
  ImageSpec spec_;
  Options options_;
  std::unique_ptr<Backend> backend_;
  Reach reach_;
  bool wraps_ = false;  // the pipeline that was given
  int band_rows_ = 0;
  std::unique_ptr<Workplace> streamed_;  // for images in bands, through the host
  std::unique_ptr<Workplace> resident_;  // for images that lie where the stages work
  HeldSlices held_;
  std::unique_ptr<Queue> caller_queue_;  // of run_async()
  Memory async_in_;
  Memory async_out_;
};

}  // namespace ungrain
