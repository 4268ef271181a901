// Runs a pipeline over an image, band by band: raw rows to float planes, through the stages, and back to
// samples.
#pragma once

#include <memory>
#include <vector>

#include "core/bands.h"
#include "core/executor.h"
#include "core/memory.h"
#include "core/method.h"
#include "core/rows.h"
#include "ungrain/denoiser.h"

namespace ungrain {

// The buffers a run needs when it works on `band_rows` rows at a time.
struct BufferPlan {
  BufferPlan(const Pipeline& pipeline, const ImageSpec& spec, const Options& options, int band_rows,
             int threads);

  std::vector<int> planes;       // of each result
  std::vector<int> result_rows;  // held of each result
  int raw_rows = 0;              // held as they came
  int converted_rows = 0;        // of those at a time
  int head_rows = 0;             // kept from the top for a wrap border's bottom
  int ahead_rows = 0;            // read while others are filtered
  int out_rows = 0;
  std::size_t raw_row_bytes = 0;
  std::size_t out_row_bytes = 0;  // of the widest type
  std::size_t scratch = 0;        // floats, all workers together
  std::size_t shared = 0;         // floats, what the workers share
  std::size_t lines = 0;          // floats: a row for each worker
  int width = 0;

  std::size_t bytes() const;
};

class Execution : public Executor {
 public:
  Execution(Pipeline pipeline, const ImageSpec& spec, Options options, int band_rows, Workers workers);

  Report run(const ConstImageView& in, const ImageView& out) override;
  Report run(RowReader& in, RowWriter& out, const ImageSpec& out_spec) override;
  void run_async(const ConstImageView& in, const ImageView& out, Stream stream) override;
  void wait() override {}

  int band_rows() const override { return band_rows_; }
  Reach reach() const override { return total_reach(pipeline_, {spec_.width, spec_.height}); }

 private:
  struct Job;  // one run

  bool runs_directly(const Job& job) const;
  void execute(Job& job);
  void filter_directly(Job& job);
  void filter_in_stages(Job& job);
  void load_rows(Job& job, RowRange rows);
  void load_real_rows(Job& job, RowRange real, const Planes& planes, bool count_bad);
  void run_stage(Job& job, int stage, RowRange rows);
  ImageView room_for(const Job& job, RowRange rows) const;
  void emit_rows(Job& job, RowRange rows);
  void store_rows(Job& job, RowRange rows, const ImageView& to);
  ConstPlanes result_planes(const Job& job, int result) const;

  Pipeline pipeline_;
  ImageSpec spec_;
  Options options_;
  int band_rows_;
  Workers workers_;
  BufferPlan plan_;
  std::vector<PlaneRows> results_;
  PlaneRows head_;
  Buffer<std::byte> raw_;
  Buffer<std::byte> ahead_;
  Buffer<std::byte> out_;
  Buffer<float> scratch_;
  Buffer<float> shared_;
  Buffer<float> lines_;
};

}  // namespace ungrain
