#include "core/ycbcr.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "core/noise_handling.h"
#include "core/point_curve.h"
#include "core/registry.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"

namespace ungrain {
namespace {

constexpr int colours = 3;

// The channels of luma or of chroma.
struct Part {
  int first;
  int count;
};
constexpr Part luma_part{0, 1};
constexpr Part chroma_part{1, 2};

int up(int value, int step) { return (value + step - 1) / step; }

Rect chroma_rect(const Rect& rect, Subsampling step) {
  return {rect.x0 / step.x, up(rect.y0, step.y), up(rect.x1, step.x), up(rect.y1, step.y)};
}

// ---- parameters

std::shared_ptr<const NoiseModel> part_of(const std::shared_ptr<const NoiseModel>& model, Part part) {
  if (model == nullptr || model->channels.size() != colours) return model;
  NoiseModel divided;
  divided.channels.assign(model->channels.begin() + part.first,
                          model->channels.begin() + part.first + part.count);
  return std::make_shared<const NoiseModel>(std::move(divided));
}

NoiseHandling part_of(NoiseHandling noise, Part part) {
  noise.model = part_of(noise.model, part);
  noise.cut_model = part_of(noise.cut_model, part);
  noise.strength *= part.first == 0 ? noise.luminance : noise.chroma;
  noise.luminance = noise.chroma = 1;
  return noise;
}

// `divided`: a list may be the part's own already.
ParamValue part_of(const Method& method, const Descriptor& d, const ParamValue& value, Part part,
                   bool divided) {
  if (std::holds_alternative<ConstImageView>(value)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: {} cannot be given for ycbcr images", method.name, d.info.name));
  }
  const auto* list = std::get_if<std::vector<double>>(&value);
  if (list == nullptr || list->size() == 1) return value;
  if (divided && static_cast<int>(list->size()) == part.count) return value;
  if (list->size() != colours) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} has {} values, the image {} colour channels",
                                                         method.name, d.info.name, list->size(), colours));
  }
  return std::vector(list->begin() + part.first, list->begin() + part.first + part.count);
}

void divide(const Method& method, void* values, NoiseHandling& noise, Part part, bool divided) {
  for (const Descriptor& d : method.descriptors) {
    const ParamValue value = d.get(values);
    const bool divides =
        std::holds_alternative<std::vector<double>>(value) || std::holds_alternative<ConstImageView>(value);
    if (divides) d.assign(values, part_of(method, d, value, part, divided));
  }
  const std::shared_ptr<const NoiseModel> whole = noise.model;
  noise = part_of(noise, part);
  if (!method.noise_model) return;
  std::shared_ptr<const NoiseModel>& own = method.noise_model(values);
  own = own == whole ? noise.model : part_of(own, part);
}

std::vector<double> sigmas_of(const Method& method, const void* values, int count) {
  const ParamValue value = noise_level_of(method)->get(values);
  std::vector<double> list;
  if (const double* one = std::get_if<double>(&value)) list = {*one};
  if (const auto* several = std::get_if<std::vector<double>>(&value)) list = *several;
  if (list.size() == 1) list.resize(static_cast<std::size_t>(count), list.front());
  return list;
}

}  // namespace

MethodParams YcbcrParams::luma(const MethodParams& params) {
  MethodParams luma = params;
  luma.chroma_.reset();
  divide(find_method(params.method()), luma.writable(), luma.noise_, luma_part, params.chroma_ != nullptr);
  return luma;
}

MethodParams YcbcrParams::chroma(const MethodParams& params) {
  MethodParams chroma = params.chroma_ != nullptr ? *params.chroma_ : params;
  chroma.chroma_.reset();
  divide(find_method(params.method()), chroma.writable(), chroma.noise_, chroma_part,
         params.chroma_ != nullptr);
  return chroma;
}

MethodParams YcbcrParams::joined(MethodParams luma, MethodParams chroma) {
  luma.chroma_ = std::make_shared<const MethodParams>(std::move(chroma));
  return luma;
}

MethodParams YcbcrParams::with_noise_of(MethodParams params, const MethodParams& luma,
                                        const MethodParams& chroma, const ImageSpec& spec) {
  const Method& method = find_method(params.method());
  params.noise_.clipping = luma.noise_.clipping;
  params.noise_.cut_at_black = luma.noise_.cut_at_black;
  params.noise_.cut_at_white = luma.noise_.cut_at_white;
  const bool has_model = luma.noise_.model != nullptr || chroma.noise_.model != nullptr;
  NoiseModel model;
  std::vector<double> sigma;
  for (const MethodParams* part : {&luma, &chroma}) {
    const ImageSpec part_spec = part == &luma ? luma_spec(spec) : chroma_spec(spec);
    if (part->noise_.model != nullptr) {
      const auto& channels = part->noise_.model->channels;
      model.channels.insert(model.channels.end(), channels.begin(), channels.end());
      continue;
    }
    const std::vector<double> own = sigmas_of(method, part->values_.get(), part_spec.channels);
    sigma.insert(sigma.end(), own.begin(), own.end());
    if (!has_model || own.empty()) continue;
    const NoiseModel white = white_noise_model(part_spec, own);
    model.channels.insert(model.channels.end(), white.channels.begin(), white.channels.end());
  }
  if (has_model) {
    params.noise_.model = std::make_shared<const NoiseModel>(std::move(model));
  } else if (sigma.size() == colours) {
    params.set(noise_level_of(method)->info.name, sigma);
  }
  if (luma.noise_.cut_model != nullptr && chroma.noise_.cut_model != nullptr) {
    NoiseModel cut = *luma.noise_.cut_model;
    cut.channels.insert(cut.channels.end(), chroma.noise_.cut_model->channels.begin(),
                        chroma.noise_.cut_model->channels.end());
    params.noise_.cut_model = std::make_shared<const NoiseModel>(std::move(cut));
  } else {
    params.noise_.cut_model = nullptr;
  }
  return params;
}

// ---- planes

namespace {

// The planes [first, first + count) of chroma, each row in the room of one of luma's.
template <class P>
P chroma_rows(P planes, Subsampling step) {
  planes.rect = chroma_rect(planes.rect, step);
  planes.row_stride *= step.y;
  return planes;
}

template <class T>
BasicPlanes<T> some_planes(BasicPlanes<T> planes, Part part) {
  if (planes.data != nullptr) planes.data += part.first * planes.plane_stride;
  planes.count = part.count;
  return planes;
}

TypedPlanes some_planes(TypedPlanes planes, Part part) {
  if (planes.data != nullptr) {
    planes.data = static_cast<std::byte*>(planes.data) +
                  part.first * planes.plane_stride * static_cast<std::ptrdiff_t>(bytes_of(planes.element));
  }
  planes.count = part.count;
  return planes;
}

// One pipeline's stage within a stage of both.
struct PartStage {
  Stage stage;
  Part part;
  Subsampling step = {};          // from the part's pixels to the image's
  Extent image = {};              // the part's
  std::vector<int> reads = {};    // for each result that the stage reads: which it is of the stage of both
  std::vector<bool> source = {};  // whether that result has the planes of luma and chroma
  bool last = false;              // the planes that it makes are some of the frame's

  Reach reach() const {
    Reach far = stage.reach;
    far.x *= step.x;
    far.y *= step.y;
    return far;
  }
};

// What a part's stage reads and writes.
class PartData {
 public:
  PartData(const StageData& whole, const PartStage& of)
      : image_(of.image), reach_(of.stage.reach), slice_(whole.slice) {
    const auto window = static_cast<std::ptrdiff_t>(whole.reach.slices());
    for (std::size_t read = 0; read < of.reads.size(); ++read) {
      for (int offset = -reach_.before; offset <= reach_.after; ++offset) {
        const auto at = static_cast<std::size_t>(of.reads[read] * window + whole.reach.before + offset);
        in_.push_back(part(whole.in[at], of, of.source[read]));
        typed_in_.push_back(part(whole.typed_in[at], of, of.source[read]));
      }
    }
    out_ = part(whole.out, of, of.last);
    typed_out_ = part(whole.typed_out, of, of.last);
  }

  bool empty() const { return typed_out_.rect.height() <= 0; }
  StageData get() const { return {in_, out_, image_, reach_, typed_in_, typed_out_, slice_}; }

 private:
  template <class P>
  static P part(P planes, const PartStage& of, bool of_frame) {
    if (of_frame) planes = some_planes(planes, of.part);
    return of.part.first == chroma_part.first ? chroma_rows(planes, of.step) : planes;
  }

  std::vector<ConstPlanes> in_;
  std::vector<TypedPlanes> typed_in_;
  Planes out_;
  TypedPlanes typed_out_;
  Extent image_;
  Reach reach_;
  int slice_;
};

std::size_t scratch_for(const PartStage& part, int rows) {
  const Stage& stage = part.stage;
  return stage.scratch_for ? stage.scratch_for(up(rows, part.step.y)) : stage.scratch;
}

// `parts` work on the same stage of the joined pipeline, one after the other.
Stage stage_of(std::vector<PartStage> parts, std::string name, int planes, std::vector<int> reads,
               int chroma_y) {
  Stage whole{.name = std::move(name), .planes = planes, .element = parts.front().stage.element};
  whole.reads = std::move(reads);
  bool sized_by_rows = false;
  for (const PartStage& part : parts) {
    const Reach reach = part.reach();
    whole.reach = {std::max(whole.reach.x, reach.x), std::max(whole.reach.y, reach.y),
                   whole.reach.whole || reach.whole, std::max(whole.reach.before, reach.before),
                   std::max(whole.reach.after, reach.after)};
    const Stage& stage = part.stage;
    whole.scratch = std::max(whole.scratch, stage.scratch);
    whole.shared_per_pixel = std::max(whole.shared_per_pixel, stage.shared_per_pixel);
    whole.shared = std::max(whole.shared, stage.shared);
    whole.repeated_rows = std::max(whole.repeated_rows, stage.repeated_rows * part.step.y);
    sized_by_rows = sized_by_rows || stage.scratch_for;
  }
  whole.reach.y = up(whole.reach.y, chroma_y) * chroma_y;
  const bool on_host = static_cast<bool>(parts.front().stage.run);
  const auto shared = std::make_shared<const std::vector<PartStage>>(std::move(parts));
  if (sized_by_rows) {
    whole.scratch_for = [shared](int rows) {
      std::size_t most = 0;
      for (const PartStage& part : *shared) most = std::max(most, scratch_for(part, rows));
      return most;
    };
  }
  if (on_host) {
    whole.run = [shared](const StageCall& call) {
      for (const PartStage& part : *shared) {
        const PartData data(call, part);
        if (!data.empty()) part.stage.run({data.get(), call.workers, call.scratch, call.shared});
      }
    };
  } else {
    whole.launch = [shared](const DeviceStageCall& call) {
      for (const PartStage& part : *shared) {
        const PartData data(call, part);
        if (!data.empty()) part.stage.launch({data.get(), call.stream, call.scratch});
      }
    };
  }
  return whole;
}

Stage copying_stage(int planes, const PointwiseStages& make) {
  Stage stage{.name = "copy", .planes = planes, .reads = {0}};
  make.curves(stage, std::vector<PointCurve>(static_cast<std::size_t>(planes), {{}, {0, 1}}));
  return stage;
}

// Rows beyond the edges are the other edge's: chroma's do not lie where luma's do, so that all rows are taken
// at once.
void take_whole_images(Pipeline& pipeline) {
  if (!pipeline.wraps) return;
  for (Stage& stage : pipeline.stages) stage.reach.whole = true;
  pipeline.wraps = false;
}

Direct joined_direct(const Direct& luma, const Direct& chroma) {
  const bool on_host = luma.run && chroma.run;
  const bool on_device = luma.launch && chroma.launch;
  if (!on_host && !on_device) return {};
  Direct both = luma;
  both.scratch = std::max(luma.scratch, chroma.scratch);
  both.chroma = std::make_shared<const Direct>(chroma);
  return both;
}

class Joining {
 public:
  explicit Joining(const ImageSpec& spec) : spec_(spec) {}

  // All stages but the last one, each as a stage of its own.
  void add_stages(const Pipeline& pipeline, Part part) {
    const int before = static_cast<int>(stages_.size());
    const char* which = part.first == 0 ? "luma" : "chroma";
    for (std::size_t index = 0; index + 1 < pipeline.stages.size(); ++index) {
      const Stage& stage = pipeline.stages[index];
      PartStage work = part_stage(stage, part);
      std::vector<int> reads;
      for (std::size_t read = 0; read < stage.reads.size(); ++read) {
        work.reads.push_back(static_cast<int>(read));
        reads.push_back(result_of(stage.reads[read], before));
      }
      stages_.push_back(stage_of({std::move(work)}, fmt::format("{} ({})", stage.name, which), stage.planes,
                                 std::move(reads), spec_.chroma.y));
    }
    last_.push_back(part_stage(pipeline.stages.back(), part));
    last_.back().last = true;
    for (const int result : pipeline.stages.back().reads) {
      const int joined = result_of(result, before);
      const auto found = std::find(last_reads_.begin(), last_reads_.end(), joined);
      last_.back().reads.push_back(static_cast<int>(found - last_reads_.begin()));
      if (found == last_reads_.end()) last_reads_.push_back(joined);
    }
  }

  std::vector<Stage> finish() {
    const std::string& luma = last_.front().stage.name;
    const std::string& chroma = last_.back().stage.name;
    const std::string name = luma == chroma ? luma : fmt::format("{}, {}", luma, chroma);
    stages_.push_back(stage_of(std::move(last_), name, colours, std::move(last_reads_), spec_.chroma.y));
    return std::move(stages_);
  }

 private:
  static int result_of(int result, int before) { return result == 0 ? 0 : before + result; }

  PartStage part_stage(const Stage& stage, Part part) const {
    PartStage work{.stage = stage, .part = part};
    const bool chroma = part.first == chroma_part.first;
    if (chroma) work.step = spec_.chroma;
    const ImageSpec own = chroma ? chroma_spec(spec_) : luma_spec(spec_);
    work.image = {own.width, own.height};
    for (const int result : stage.reads) work.source.push_back(result == 0);
    return work;
  }

  ImageSpec spec_;
  std::vector<Stage> stages_;
  std::vector<PartStage> last_;
  std::vector<int> last_reads_;
};

}  // namespace

Pipeline joined_pipeline(Pipeline luma, Pipeline chroma, const ImageSpec& spec, const PointwiseStages& make) {
  if (luma.stages.empty() && chroma.stages.empty()) return {};
  const Border slow_border = luma.stages.empty() ? chroma.slow_border : luma.slow_border;
  if (luma.stages.empty()) luma.stages.push_back(copying_stage(luma_part.count, make));
  if (chroma.stages.empty()) chroma.stages.push_back(copying_stage(chroma_part.count, make));
  take_whole_images(luma);
  take_whole_images(chroma);
  Joining joining(spec);
  joining.add_stages(luma, luma_part);
  joining.add_stages(chroma, chroma_part);
  Direct direct = joined_direct(luma.direct, chroma.direct);
  return {.stages = joining.finish(), .slow_border = slow_border, .direct = std::move(direct)};
}

// ---- conversions

namespace {

// Luma, and alpha where there is one.
template <class View>
View filtered_rows(const View& view) {
  View part = luma_view(view);
  if (!view.spec.alpha) return part;
  part.spec.channels = 2;
  part.spec.alpha = true;
  part.strides.channel = colours * view.strides.channel;
  return part;
}

template <class View>
View chroma_or_none(const View& view) {
  return view.data != nullptr ? chroma_view(view) : view;
}

}  // namespace

std::array<LoadCall, 2> split(const LoadCall& call) {
  LoadCall luma = call;
  luma.raw = luma_view(call.raw);
  luma.planes = some_planes(call.planes, luma_part);
  LoadCall chroma = call;
  const Subsampling step = call.raw.spec.chroma;
  chroma.raw = chroma_view(call.raw);
  chroma.planes = chroma_rows(some_planes(call.planes, chroma_part), step);
  chroma.row_shift = call.row_shift / step.y;
  chroma.counted = {up(call.counted.begin, step.y), up(call.counted.end, step.y)};
  chroma.step = step;
  return {luma, chroma};
}

std::array<StoreCall, 2> split(const StoreCall& call) {
  StoreCall luma = call;
  luma.planes = some_planes(call.planes, luma_part);
  luma.raw = filtered_rows(call.raw);
  luma.out = filtered_rows(call.out);
  StoreCall chroma = call;
  chroma.planes = chroma_rows(some_planes(call.planes, chroma_part), call.out.spec.chroma);
  chroma.raw = chroma_or_none(call.raw);
  chroma.out = chroma_view(call.out);
  return {luma, chroma};
}

std::array<DirectData, 2> split(const DirectData& data) {
  const Subsampling step = data.in.spec.chroma;
  DirectData luma = data;
  luma.in = filtered_rows(data.in);
  luma.out = filtered_rows(data.out);
  const DirectData chroma{chroma_view(data.in),
                          chroma_view(data.out),
                          chroma_rect(data.in_rect, step),
                          chroma_rect(data.out_rect, step),
                          {up(data.image.width, step.x), up(data.image.height, step.y)}};
  return {luma, chroma};
}

std::array<DeviceDirectCall, 2> split(const DeviceDirectCall& call) {
  const Subsampling step = call.in.spec.chroma;
  DeviceDirectCall luma = call;
  luma.in = filtered_rows(call.in);
  luma.out = filtered_rows(call.out);
  DeviceDirectCall chroma = call;
  chroma.in = chroma_view(call.in);
  chroma.out = chroma_view(call.out);
  chroma.image = {up(call.image.width, step.x), up(call.image.height, step.y)};
  chroma.step = step;
  return {luma, chroma};
}

std::vector<ByteRows> undefined_room(const ImageView& view) {
  std::vector<ByteRows> room;
  const ImageView chroma = chroma_view(view);
  const auto sample = static_cast<std::size_t>(bytes_per_sample(view.spec.type));
  const auto add = [&](std::byte* first, int columns, int rows) {
    if (columns > 0 && rows > 0)
      room.push_back({first, chroma.strides.y, static_cast<std::size_t>(columns) * sample, rows});
  };
  for (int channel = 0; channel < chroma_part.count; ++channel) {
    std::byte* first = static_cast<std::byte*>(chroma.data) + channel * view.strides.channel;
    add(first + chroma.spec.width * view.strides.x, view.spec.width - chroma.spec.width, chroma.spec.height);
    for (int between = 1; between < view.spec.chroma.y; ++between) {
      const int rows = up(view.spec.height - between, view.spec.chroma.y);
      add(first + between * view.strides.y, view.spec.width, rows);
    }
  }
  return room;
}

}  // namespace ungrain
