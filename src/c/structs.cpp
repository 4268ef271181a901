#include "c/structs.h"

#include "c/handles.h"
#include "ungrain/volume.h"

namespace ungrain::c {
namespace {

// A number of the C API as the enumeration of C++ that it stands for.
template <class Enum>
Enum choice(std::int32_t given, Enum last, const char* what) {
  if (given < 0 || given > static_cast<std::int32_t>(last)) {
    invalid(std::string(what) + " takes 0 to " + std::to_string(static_cast<int>(last)) + ", got " +
            std::to_string(given));
  }
  return static_cast<Enum>(given);
}

int channels_of(const ungrain_image_spec& given, Colour colour) {
  if (given.channels != 0) return given.channels;
  if (colour == Colour::multi) invalid("independent channels: their number must be given");
  return (colour == Colour::gray ? 1 : 3) + (given.alpha != 0 ? 1 : 0);
}

}  // namespace

ImageSpec spec_of(const ungrain_image_spec* pointer) {
  const ungrain_image_spec given = read(pointer);
  ImageSpec spec;
  spec.width = given.width;
  spec.height = given.height;
  spec.type = choice(given.type, PixelType::f32, "the type of samples");
  spec.colour = choice(given.colour, Colour::ycbcr, "the colour");
  spec.channels = channels_of(given, spec.colour);
  spec.alpha = given.alpha != 0;
  spec.range = given.range;
  spec.chroma = {.x = given.chroma_x == 0 ? 1 : given.chroma_x,
                 .y = given.chroma_y == 0 ? 1 : given.chroma_y};
  spec.slice = {.width = given.slice_width,
                .height = given.slice_height,
                .x = given.slice_x,
                .y = given.slice_y,
                .whole_width = given.slice_whole_width,
                .whole_height = given.slice_whole_height};
  validate(spec);
  return spec;
}

ungrain_image_spec c_spec(const ImageSpec& spec) {
  ungrain_image_spec c{};
  c.struct_size = sizeof c;
  c.width = spec.width;
  c.height = spec.height;
  c.channels = spec.channels;
  c.type = static_cast<std::int32_t>(spec.type);
  c.colour = static_cast<std::int32_t>(spec.colour);
  c.alpha = spec.alpha ? 1 : 0;
  c.range = spec.range;
  c.chroma_x = spec.chroma.x;
  c.chroma_y = spec.chroma.y;
  c.slice_width = spec.slice.width;
  c.slice_height = spec.slice.height;
  c.slice_x = spec.slice.x;
  c.slice_y = spec.slice.y;
  c.slice_whole_width = spec.slice.whole_width;
  c.slice_whole_height = spec.slice.whole_height;
  return c;
}

ImageView view_of(const ungrain_image* pointer) {
  const ungrain_image given = read(pointer);
  check_there(given.data, "the image's data");
  const ImageSpec spec = spec_of(given.spec);
  ImageView view(given.data, spec);
  if (given.stride_x != 0 || given.stride_y != 0 || given.stride_channel != 0) {
    view.strides = {.x = given.stride_x, .y = given.stride_y, .channel = given.stride_channel};
  }
  view.space = {.memory = choice(given.memory, Space::Memory::cuda, "the memory"), .device = given.gpu};
  view.region = {
      .x = given.x, .y = given.y, .image_width = given.image_width, .image_height = given.image_height};
  return view;
}

CImage::CImage(const ImageView& view) : spec_(c_spec(view.spec)), image_() {
  image_.struct_size = sizeof image_;
  image_.memory = static_cast<std::int32_t>(view.space.memory);
  image_.spec = &spec_;
  image_.data = view.data;
  image_.stride_x = view.strides.x;
  image_.stride_y = view.strides.y;
  image_.stride_channel = view.strides.channel;
  image_.x = view.region.x;
  image_.y = view.region.y;
  image_.image_width = view.region.image_width;
  image_.image_height = view.region.image_height;
  image_.gpu = view.space.device;
}

// C has one struct for images that are read and for those that are written; the header says which is which.
CImage::CImage(const ConstImageView& view)
    : CImage(ImageView(const_cast<void*>(view.data), view.spec, view.strides, view.space, view.region)) {}

Options options_of(const ungrain_options* pointer) {
  Options options;
  if (pointer == nullptr) return options;
  const ungrain_options given = read(pointer);
  if (given.device != nullptr) options.device = parse_device(given.device);
  options.threads = given.threads;
  options.memory = static_cast<std::size_t>(std::min<std::uint64_t>(given.memory, SIZE_MAX));
  options.nonfinite = choice(given.nonfinite, NonFinite::error, "nonfinite");
  options.band_rows = given.band_rows;
  options.images = given.images;
  if (given.progress != nullptr) {
    options.progress = [call = given.progress, user = given.user](double fraction) {
      set_message("");
      go_on(call(user, fraction), "the progress callback");
    };
  }
  if (given.cancel != nullptr) options.cancel = given.cancel->token;
  return options;
}

void write_report(const Report& report, ungrain_report* to) {
  if (to == nullptr) return;
  ungrain_report c{};
  c.threads = report.threads;
  c.bands = report.bands;
  c.gpus = report.gpus;
  c.queues = report.queues;
  c.ms = report.ms;
  c.buffer_bytes = report.buffer_bytes;
  c.nonfinite_pixels = report.nonfinite_pixels;
  copy_text(name(report.device), c.device);
  copy_text(report.choice, c.choice);
  write(c, to);
}

}  // namespace ungrain::c

ungrain_status ungrain_volume_spec(const ungrain_image_spec* slice, int32_t depth,
                                   ungrain_image_spec* volume) {
  using namespace ungrain;
  return c::guarded([&] { c::write(c::c_spec(volume_spec(c::spec_of(slice), depth)), volume); });
}
