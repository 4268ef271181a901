#include "io/vips_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "io/failure.h"
#include "ungrain/error.h"

namespace ungrain::io {
namespace {

// Loaders of other things than photographs (text, tables, drawings, documents), of formats that we read
// ourselves, and of formats with a better loader (OpenSlide for TIFF, ImageMagick for anything).
constexpr const char* blocked_loaders[] = {
    "VipsForeignLoadMagick", "VipsForeignLoadCsv",     "VipsForeignLoadMatrix", "VipsForeignLoadRaw",
    "VipsForeignLoadMat",    "VipsForeignLoadPdf",     "VipsForeignLoadSvg",    "VipsForeignLoadOpenslide",
    "VipsForeignLoadPpm",    "VipsForeignLoadAnalyze", "VipsForeignLoadNifti",  "VipsForeignLoadVips",
};

void block_loaders() {
#if VIPS_MAJOR_VERSION > 8 || VIPS_MINOR_VERSION >= 13
  for (const char* loader : blocked_loaders) vips_operation_block_set(loader, TRUE);
#else
  static_cast<void>(blocked_loaders);  // open_vips() refuses their formats
#endif
}

// The last warning, for failures whose reason libvips reports nowhere else (a damaged PNG).
struct LastWarning {
  std::mutex mutex;
  std::string text;
};

LastWarning& last_warning() {
  static LastWarning warning;
  return warning;
}

void keep_warning(const gchar* /*domain*/, GLogLevelFlags level, const gchar* message, gpointer /*data*/) {
  if ((level & (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_CRITICAL)) == 0) return;
  const std::lock_guard lock(last_warning().mutex);
  last_warning().text = one_line(message);
}

std::string take_warning() {
  const std::lock_guard lock(last_warning().mutex);
  return std::exchange(last_warning().text, {});
}

// The program prints its own messages, made from what libvips returns.
void silence_log() {
  constexpr auto levels =
      static_cast<GLogLevelFlags>(G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING | G_LOG_LEVEL_MESSAGE |
                                  G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG);
  g_log_set_handler("VIPS", levels, &keep_warning, nullptr);
}

// "pngload: end of stream" -> "end of stream".
std::string_view without_domain(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || line.substr(0, colon).find(' ') != std::string_view::npos)
    return line;
  return line.substr(colon + 2);
}

}  // namespace

void start_vips() {
  static std::once_flag once;
  std::call_once(once, [] {
    silence_log();
    if (VIPS_INIT("ungrain") != 0) {
      throw Error(ErrorCode::internal, fmt::format("libvips cannot be started: {}", take_vips_message()));
    }
    vips_concurrency_set(1);  // encoders then request rows in order; the processors are left to the filters
    vips_cache_set_max(0);    // each file is read once, so nothing is worth caching
    block_loaders();
  });
}

std::string vips_nickname(const char* type_name) {
  const GType type = g_type_from_name(type_name);
  if (type == 0) return {};
  void* type_class = g_type_class_ref(type);
  std::string nickname = VIPS_OBJECT_CLASS(type_class)->nickname;
  g_type_class_unref(type_class);
  return nickname;
}

bool has_vips_operation(std::string_view nickname) {
  start_vips();
  const GType type = vips_type_find("VipsOperation", std::string(nickname).c_str());
  return type != 0 && !G_TYPE_IS_ABSTRACT(type);
}

std::string take_vips_message() {
  const std::unique_ptr<char, decltype(&g_free)> buffer(vips_error_buffer_copy(), &g_free);
  std::vector<std::string> lines;
  std::string_view rest(buffer.get());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string line = one_line(without_domain(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  // A system error (a full disk) is the whole reason.
  constexpr std::string_view system = "unix error: ";
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("unix error: Unknown"); });
  for (const std::string& line : lines) {
    if (line.starts_with(system)) return line.substr(system.size());
  }
  const std::string warning = take_warning();
  if (!lines.empty()) return fmt::format("{}", fmt::join(lines, "; "));
  return warning.empty() ? "libvips failed without a message" : warning;
}

void copy_vips_field(VipsImage* from, VipsImage* to, const char* field) {
  GValue value = G_VALUE_INIT;
  if (vips_image_get(from, field, &value) != 0) {
    vips_error_clear();
    return;
  }
  vips_image_set(to, field, &value);
  g_value_unset(&value);
}

VipsCall::VipsCall(std::string_view operation)
    : operation_(vips_operation_new(std::string(operation).c_str())) {
  if (!operation_) throw Error(ErrorCode::internal, take_vips_message());
}

bool VipsCall::has(const char* property) const {
  return g_object_class_find_property(G_OBJECT_GET_CLASS(operation_.get()), property) != nullptr;
}

bool VipsCall::run() {
  VipsOperation* operation = operation_.release();
  const bool good = vips_cache_operation_buildp(&operation) == 0;
  if (!good) vips_object_unref_outputs(VIPS_OBJECT(operation));
  operation_.reset(operation);
  return good;
}

VipsCall::Blob VipsCall::buffer() const {
  VipsBlob* blob = nullptr;
  if (has("buffer")) g_object_get(operation_.get(), "buffer", &blob, nullptr);
  return Blob(blob);
}

VipsPointer<VipsImage> VipsCall::output() const {
  VipsImage* image = nullptr;
  g_object_get(operation_.get(), "out", &image, nullptr);
  vips_object_unref_outputs(VIPS_OBJECT(operation_.get()));
  return VipsPointer<VipsImage>(image);
}

}  // namespace ungrain::io
