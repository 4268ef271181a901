// Denoisers, on images, rows and sequences.
#include <climits>
#include <vector>

#include "c/callbacks.h"
#include "c/handles.h"
#include "c/structs.h"
#include "ungrain/video.h"

using namespace ungrain;

namespace {

ImageSpec out_spec_of(const ungrain_image_spec* given, const ImageSpec& in) {
  return given == nullptr ? in : c::spec_of(given);
}

// Checks the report before the work, so that a wrong one does not show after it.
template <class Work>
ungrain_status reported(ungrain_report* report, const Work& work) noexcept {
  return c::guarded([&] {
    if (report != nullptr) c::checked_size(report);
    c::write_report(work(), report);
  });
}

template <class View>
std::vector<View> views_of(const ungrain_image* const* images, std::size_t count) {
  c::check_there(images, "the list of images");
  if (count > INT_MAX) c::invalid("a sequence of " + std::to_string(count) + " images is too long");
  std::vector<View> views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) views.emplace_back(c::view_of(images[i]));
  return views;
}

}  // namespace

ungrain_status ungrain_cancel_create(ungrain_cancel** cancel) {
  return c::create(cancel, [] { return ungrain_cancel{}; });
}

void ungrain_cancel_destroy(ungrain_cancel* cancel) { delete cancel; }

void ungrain_cancel_set(ungrain_cancel* cancel) {
  if (cancel != nullptr) cancel->token.cancel();
}

ungrain_status ungrain_denoise(const ungrain_params* params, const ungrain_image* in,
                               const ungrain_image* out, const ungrain_options* options,
                               ungrain_report* report) {
  return reported(report, [&] {
    const MethodParams& values = c::there(params).values;
    const ImageView from = c::view_of(in);
    const ImageView to = c::view_of(out);
    Options how = c::options_of(options);
    if (how.images == 0) how.images = 1;
    return Denoiser::create(resolve(values, from), from.spec, how).run(from, to);
  });
}

ungrain_status ungrain_denoiser_create(const ungrain_params* params, const ungrain_image_spec* spec,
                                       const ungrain_options* options, ungrain_denoiser** denoiser) {
  return c::create(denoiser, [&] {
    return ungrain_denoiser{
        Denoiser::create(c::there(params).values, c::spec_of(spec), c::options_of(options))};
  });
}

ungrain_status ungrain_denoiser_clone(const ungrain_denoiser* denoiser, ungrain_denoiser** clone) {
  return c::create(clone, [&] { return ungrain_denoiser{c::there(denoiser).denoiser.clone()}; });
}

void ungrain_denoiser_destroy(ungrain_denoiser* denoiser) { delete denoiser; }

ungrain_status ungrain_denoiser_set_params(ungrain_denoiser* denoiser, const ungrain_params* params) {
  return c::guarded([&] { c::there(denoiser).denoiser.set_params(c::there(params).values); });
}

ungrain_status ungrain_denoiser_get_params(const ungrain_denoiser* denoiser, ungrain_params** params) {
  return c::create(params, [&] { return ungrain_params{c::there(denoiser).denoiser.params()}; });
}

ungrain_status ungrain_denoiser_run(ungrain_denoiser* denoiser, const ungrain_image* in,
                                    const ungrain_image* out, ungrain_report* report) {
  return reported(report, [&] { return c::there(denoiser).denoiser.run(c::view_of(in), c::view_of(out)); });
}

ungrain_status ungrain_denoiser_reach(const ungrain_denoiser* denoiser, ungrain_reach* reach) {
  return c::guarded([&] {
    const Reach from = c::there(denoiser).denoiser.reach();
    c::write({.struct_size = 0,
              .x = from.x,
              .y = from.y,
              .whole = from.whole ? 1 : 0,
              .before = from.before,
              .after = from.after},
             reach);
  });
}

ungrain_status ungrain_denoiser_run_async(ungrain_denoiser* denoiser, const ungrain_image* in,
                                          const ungrain_image* out, void* stream) {
  return c::guarded(
      [&] { c::there(denoiser).denoiser.run_async(c::view_of(in), c::view_of(out), {.handle = stream}); });
}

ungrain_status ungrain_denoiser_wait(ungrain_denoiser* denoiser) {
  return c::guarded([&] { c::there(denoiser).denoiser.wait(); });
}

ungrain_status ungrain_denoiser_run_rows(ungrain_denoiser* denoiser, const ungrain_rows* reader,
                                         const ungrain_rows* writer, const ungrain_image_spec* out_spec,
                                         ungrain_report* report) {
  return reported(report, [&] {
    Denoiser& run = c::there(denoiser).denoiser;
    c::CallbackRows in(reader);
    c::CallbackRows out(writer);
    return run.run(in, out, out_spec_of(out_spec, run.spec()));
  });
}

ungrain_status ungrain_denoiser_run_sequence(ungrain_denoiser* denoiser, const ungrain_image* const* in,
                                             const ungrain_image* const* out, size_t count,
                                             ungrain_report* report) {
  return reported(report, [&] {
    return c::there(denoiser).denoiser.run(views_of<ConstImageView>(in, count),
                                           views_of<ImageView>(out, count));
  });
}

ungrain_status ungrain_denoiser_run_window(ungrain_denoiser* denoiser, const ungrain_image* const* window,
                                           size_t count, size_t centre, const ungrain_image* out,
                                           ungrain_report* report) {
  return reported(report, [&] {
    const std::vector<ConstImageView> views = views_of<ConstImageView>(window, count);
    if (centre >= count) {
      c::invalid("image " + std::to_string(centre) + " is not in a window of " + std::to_string(count));
    }
    return c::there(denoiser).denoiser.run(views, static_cast<int>(centre), c::view_of(out));
  });
}

ungrain_status ungrain_denoiser_run_slices(ungrain_denoiser* denoiser, const ungrain_slices* reader,
                                           const ungrain_slices* writer, const ungrain_image_spec* out_spec,
                                           ungrain_report* report) {
  return reported(report, [&] {
    Denoiser& run = c::there(denoiser).denoiser;
    c::CallbackSlices in(reader, true);
    c::CallbackSlices out(writer, false);
    return run.run(in, out, out_spec_of(out_spec, run.spec()));
  });
}

ungrain_status ungrain_denoise_clip(const ungrain_params* params, const ungrain_image_spec* spec,
                                    const ungrain_slices* reader, const ungrain_slices* writer,
                                    const ungrain_image_spec* out_spec, const ungrain_options* options,
                                    ungrain_report* report) {
  return reported(report, [&] {
    const ImageSpec frames = c::spec_of(spec);
    c::CallbackSlices in(reader, true);
    c::CallbackSlices out(writer, false);
    VideoOptions how;
    how.run = c::options_of(options);
    return denoise_video(c::there(params).values, frames, in, out, out_spec_of(out_spec, frames), how).report;
  });
}
