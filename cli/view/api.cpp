#include "view/api.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "denoise_clip.h"
#include "io/browser_picture.h"
#include "io/failure.h"
#include "noise_text.h"
#include "option_values.h"
#include "preset_file.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/noise_model.h"
#include "ungrain/version.h"
#include "video_request.h"
#include "view/clip_document.h"
#include "view_assets.h"

namespace ungrain::cli::view {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int smallest_measured = 32;  // pixels: side of a rectangle whose noise is measured
constexpr std::size_t pictures_held = 3;
constexpr std::size_t documents_held = 3;

std::string json_bytes(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

HttpAnswer failed(int status, const std::string& why) {
  return {status, "application/json", json_bytes({{"error", io::one_line(why)}})};
}

std::optional<std::string> text_in(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::nullopt : std::optional(found->second);
}

template <class Number>
Number number_in(const HttpRequest& request, const std::string& name, std::optional<Number> otherwise = {}) {
  const std::optional<std::string> text = text_in(request, name);
  if (!text && otherwise) return *otherwise;
  const std::optional<Number> number = text ? read_number<Number>(*text) : std::nullopt;
  if (!number) throw UsageError(fmt::format("'{}' takes a number", name));
  return *number;
}

double finite_in(const HttpRequest& request, const std::string& name, double otherwise) {
  const double number = number_in<double>(request, name, otherwise);
  if (!std::isfinite(number)) throw UsageError(fmt::format("'{}' takes a finite number", name));
  return number;
}

json parsed(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) throw UsageError("the request is no JSON");
  return value;
}

int whole_of(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || !found->is_number_integer())
    throw UsageError(fmt::format("'{}' takes a whole number", name));
  const auto value = found->get<std::int64_t>();
  if (value < 0 || value > std::numeric_limits<int>::max())
    throw UsageError(fmt::format("'{}' takes a whole number from 0 up", name));
  return static_cast<int>(value);
}

Window window_in(const HttpRequest& request, const Picture& picture) {
  const Window usual = picture.usual_window();
  return {finite_in(request, "low", usual.low), finite_in(request, "high", usual.high)};
}

// The rectangle of a request, within the picture; all of it where none is named.
Part part_in(const HttpRequest& request, const ImageSpec& spec) {
  if (!text_in(request, "x0")) return {0, 0, spec.width, spec.height};
  const auto side = [&](const char* name, int most) {
    return std::clamp(number_in<int>(request, name), 0, most);
  };
  const Part part{side("x0", spec.width), side("y0", spec.height), side("x1", spec.width),
                  side("y1", spec.height)};
  if (part.empty()) throw UsageError("the rectangle is empty");
  return part;
}

json samples_at(const ConstImageView& view, int x, int y) {
  json samples = json::array();
  std::vector<float> row(static_cast<std::size_t>(view.spec.width));
  for (int channel = 0; channel < view.spec.channels; ++channel) {
    load_row(view, y, channel, row.data());
    const float sample = row[static_cast<std::size_t>(x)];
    samples.push_back(std::isfinite(sample) ? json(sample) : json());
  }
  return samples;
}

// Standard deviations over the levels that were measured, for each curve of the model.
json curves_of(const NoiseModelEstimate& found) {
  json curves = json::array();
  for (const NoiseModel::Channel& channel : found.model.channels) {
    json curve = json::array();
    for (std::size_t i = 0; i < channel.levels.size(); ++i)
      curve.push_back({channel.levels[i], channel.deviations[i]});
    curves.push_back(curve);
  }
  return curves;
}

// Throws UsageError where a value is wrong.
void check_values(const Arguments& words, Treatment treatment) {
  if (treatment != Treatment::clip) {
    read_request(words, methods_of(treatment));
  } else if (VideoRequest request; !request.read(words)) {
    throw UsageError("settings are a list of words");
  }
}

struct Asset {
  std::string_view path;
  std::string_view type;
  std::string_view text;
};

const std::array<Asset, 8>& assets() {
  static constexpr std::array<Asset, 8> list = {
      Asset{"/", "text/html; charset=utf-8", view_html},
      Asset{"/view.css", "text/css; charset=utf-8", view_css},
      Asset{"/view.js", "text/javascript; charset=utf-8", view_js},
      Asset{"/stage.js", "text/javascript; charset=utf-8", stage_js},
      Asset{"/stack.js", "text/javascript; charset=utf-8", stack_js},
      Asset{"/value.js", "text/javascript; charset=utf-8", value_js},
      Asset{"/settings.js", "text/javascript; charset=utf-8", settings_js},
      Asset{"/common.js", "text/javascript; charset=utf-8", common_js}};
  return list;
}

}  // namespace

Api::Api(Shelf& shelf, Guard guard, ApiSettings settings)
    : shelf_(shelf),
      guard_(std::move(guard)),
      settings_(std::move(settings)),
      jobs_(settings_.device),
      preview_(settings_.device, settings_.memory / 2) {}

HttpAnswer Api::admit(const HttpRequest& request) { return guard_.admit(request); }

bool Api::receives(const HttpRequest& request) const { return request.path == "/api/upload"; }

HttpAnswer Api::receive(const HttpRequest& request, const ReadBody& body) {
  try {
    const ShelfFile file = shelf_.add(text_in(request, "name").value_or(""), body, settings_.upload_limit);
    return {200, "application/json", json_bytes({{"file", file.number}})};
  } catch (const std::exception& error) {
    return failed(400, error.what());
  }
}

// Messages name files as the page does: their folders are nobody's business.
std::string Api::without_folders(std::string message) const {
  for (const ShelfFile& file : shelf_.files()) message = with_names(std::move(message), file.path, file.name);
  return message;
}

HttpAnswer Api::answer(const HttpRequest& request) {
  HttpAnswer answer;
  try {
    answer = routed(request);
  } catch (const Outdated&) {
    answer = failed(409, "a newer request has come");
  } catch (const UsageError& error) {
    answer = failed(400, without_folders(error.what()));
  } catch (const Error& error) {
    answer = failed(error.code() == ErrorCode::io ? 404 : 422, without_folders(error.what()));
  } catch (const fs::filesystem_error& error) {
    answer = failed(404, fmt::format("{}: {}", error.path1().filename().string(), error.code().message()));
  } catch (const std::bad_alloc&) {
    answer = failed(507, "out of memory");
  } catch (const std::exception& error) {
    answer = failed(500, error.what());
  }
  answer.headers.emplace_back("Cache-Control", "no-store");
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
  answer.headers.emplace_back("Referrer-Policy", "no-referrer");
  answer.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  answer.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
      "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  return answer;
}

HttpAnswer Api::routed(const HttpRequest& request) {
  const auto json_answer = [](const json& value) {
    return HttpAnswer{200, "application/json", json_bytes(value)};
  };
  const std::string& path = request.path;
  if (request.method == "GET" || request.method == "HEAD") {
    for (const Asset& asset : assets()) {
      if (asset.path == path) return {200, std::string(asset.type), std::string(asset.text)};
    }
    if (path == "/api/session") return json_answer(session());
    if (path == "/api/files") {
      json files = json::array();
      for (const ShelfFile& file : shelf_.files())
        files.push_back({{"file", file.number}, {"name", file.name}, {"bytes", file.bytes}});
      return json_answer({{"files", files}});
    }
    if (path == "/api/info") return json_answer(info(request));
    if (path == "/api/tile") return tile(request);
    if (path == "/api/thumbnail") return thumbnail(request);
    if (path == "/api/histogram") return json_answer(histogram_of(request));
    if (path == "/api/noise") return json_answer(noise(request));
    if (path == "/api/value") return json_answer(value(request));
    if (path == "/api/jobs") return json_answer({{"jobs", jobs_.list()}});
    if (path == "/api/download") return download(request);
    return failed(404, "there is nothing at this address");
  }
  if (request.method != "POST") return failed(405, "the address takes GET or POST");
  const json body = parsed(request.body);
  if (!body.is_object()) throw UsageError("the request is no JSON object");
  if (path == "/api/check") return json_answer(check(body));
  if (path == "/api/preset") return json_answer(preset(body));
  if (path == "/api/save") return json_answer(save(body));
  if (path == "/api/batch") return json_answer(batch(body));
  if (path == "/api/jobs/cancel" || path == "/api/jobs/resume") {
    const int job = whole_of(body, "job");
    if (path == "/api/jobs/cancel") {
      jobs_.cancel(job);
    } else {
      jobs_.resume(job);
    }
    return json_answer({{"job", job}});
  }
  return failed(404, "there is nothing at this address");
}

json Api::session() const {
  json devices = json::array();
  for (const DeviceInfo& device : ungrain::devices()) {
    if (device.usable)
      devices.push_back({{"name", name(device.device)}, {"description", device.description}});
  }
  json kinds = json::object();
  for (const Treatment treatment : {Treatment::pages, Treatment::volume, Treatment::clip}) {
    const MethodOptions::For what = methods_of(treatment);
    kinds[std::string(name(treatment))] = {
        {"methods", describe_methods(what)},
        {"common", describe_common_options(what)},
        {"default_method", treatment == Treatment::volume ? default_volume_method : default_method}};
  }
  return {{"version", UNGRAIN_VERSION},
          {"writable", true},
          {"folder", settings_.output},
          {"devices", devices},
          {"upload_limit", settings_.upload_limit},
          {"kinds", kinds}};
}

const std::vector<Treatment>& Api::treatments_of(int number) {
  const ShelfFile file = shelf_.find(number);
  {
    const std::lock_guard lock(documents_mutex_);
    const auto known = treatments_.find(number);
    if (known != treatments_.end()) return known->second;
  }
  std::vector<Treatment> found = treatments(file, settings_.memory / 2);
  const std::lock_guard lock(documents_mutex_);
  return treatments_.emplace(number, std::move(found)).first->second;
}

Treatment Api::treatment(int file, const std::string& asked) {
  const std::vector<Treatment>& possible = treatments_of(file);
  if (asked.empty()) return possible.front();
  const std::optional<Treatment> named = treatment_of(asked);
  if (!named) throw UsageError("'as' takes pages, volume or clip");
  if (std::find(possible.begin(), possible.end(), *named) == possible.end())
    throw UsageError(fmt::format("{} cannot be taken for a {}", shelf_.find(file).name, asked));
  return *named;
}

Treatment Api::treatment(int file, const json& body) {
  const json asked = body.value("as", json());
  if (!asked.is_null() && !asked.is_string()) throw UsageError("'as' takes pages, volume or clip");
  return treatment(file, asked.is_string() ? asked.get<std::string>() : "");
}

// The same, of a file that may be damaged: its job will tell.
Treatment Api::usual_treatment(const ShelfFile& file, const json& body) {
  try {
    return treatment(file.number, body);
  } catch (const Error&) {
    return io::can_read(file.path) ? Treatment::pages : Treatment::clip;
  }
}

std::shared_ptr<Document> Api::document(int number, Treatment treatment) {
  const ShelfFile file = shelf_.find(number);
  const std::lock_guard lock(documents_mutex_);
  for (auto it = documents_.begin(); it != documents_.end(); ++it) {
    if ((*it)->file().number != number || (*it)->treatment() != treatment) continue;
    documents_.splice(documents_.begin(), documents_, it);
    return documents_.front();
  }
  documents_.push_front(open_document(file, treatment, settings_.memory / 4));
  if (documents_.size() > documents_held) documents_.pop_back();
  return documents_.front();
}

std::shared_ptr<Picture> Api::picture(int number, Treatment treatment, int page) {
  const std::shared_ptr<Document> opened = document(number, treatment);
  const std::lock_guard lock(pictures_mutex_);
  for (auto it = pictures_.begin(); it != pictures_.end(); ++it) {
    if (&(*it)->document() != opened.get() || (*it)->page() != page) continue;
    pictures_.splice(pictures_.begin(), pictures_, it);
    return pictures_.front();
  }
  pictures_.push_front(std::make_shared<Picture>(opened, page, settings_.memory / 2));
  std::size_t held = 0;
  std::size_t count = 0;
  for (auto it = pictures_.begin(); it != pictures_.end();) {
    held += (*it)->bytes();
    ++count;
    const bool kept = count == 1 || (count <= pictures_held && held <= settings_.memory / 2);
    it = kept ? std::next(it) : pictures_.erase(it);
  }
  return pictures_.front();
}

std::shared_ptr<Picture> Api::picture(const HttpRequest& request) {
  const int file = number_in<int>(request, "file");
  return picture(file, treatment(file, text_in(request, "as").value_or("")),
                 number_in<int>(request, "page", 0));
}

json Api::info(const HttpRequest& request) {
  const auto shown = picture(request);
  Document& opened = shown->document();
  const io::FileInfo& about = opened.info();
  json kinds = json::array();
  for (const Treatment possible : treatments_of(shown->file().number)) kinds.push_back(name(possible));
  json volume = nullptr;
  if (about.volume) volume = {{"depth", about.volume->depth}, {"spacing", about.volume->spacing}};
  const auto* clip = dynamic_cast<const ClipDocument*>(&opened);
  const bool complete = opened.complete();  // before pages(): what is complete has all of them
  const Window window = shown->usual_window();
  return {{"file", shown->file().number},
          {"name", shown->file().name},
          {"as", name(opened.treatment())},
          {"kinds", kinds},
          {"format", about.format},
          {"width", about.spec.width},
          {"height", about.spec.height},
          {"pages", opened.pages()},
          {"complete", complete},
          {"rate", opened.rate() > 0 ? json(opened.rate()) : json()},
          {"channels", about.spec.channels},
          {"colour", name(about.spec.colour)},
          {"alpha", about.spec.alpha},
          {"type", name(about.spec.type)},
          {"white", about.spec.white()},
          {"low", window.low},
          {"high", window.high},
          {"volume", volume},
          {"note", clip != nullptr ? clip->note() : about.note}};
}

Arguments Api::checked_words(const json& words, Treatment treatment) const {
  const Arguments list = words_of(words);
  check_words(list, methods_of(treatment));
  return models_.with_files(list);
}

HttpAnswer Api::tile(const HttpRequest& request) {
  const auto shown_picture = picture(request);
  Picture& page = *shown_picture;
  const int level = number_in<int>(request, "level", 0);
  if (level < 0 || level >= page.levels()) throw UsageError("there is no such level");
  const ImageSpec& spec = page.level(level).spec();
  const int x = number_in<int>(request, "x");
  const int y = number_in<int>(request, "y");
  if (x < 0 || y < 0 || x > (spec.width - 1) / tile_side || y > (spec.height - 1) / tile_side)
    throw UsageError("there is no such tile");
  const Part part{x * tile_side, y * tile_side, std::min(spec.width, (x + 1) * tile_side),
                  std::min(spec.height, (y + 1) * tile_side)};
  const Part own{0, 0, part.width(), part.height()};
  const Window window = window_in(request, page);
  const std::string kind = text_in(request, "kind").value_or("noisy");
  std::vector<std::uint8_t> bytes;
  bool exact = true;
  if (kind == "noisy") {
    bytes = shown(page.level(level).view(), part, window);
  } else if (kind == "clean" || kind == "difference" || kind == "removed") {
    Preview::Wish wish;
    wish.picture = shown_picture;
    wish.words = checked_words(parsed(text_in(request, "words").value_or("[]")), page.document().treatment());
    wish.level = level;
    wish.x = x;
    wish.y = y;
    wish.exact = text_in(request, "exact") == "1";
    wish.client = text_in(request, "client").value_or("");
    wish.turn = number_in<std::int64_t>(request, "turn", 0);
    if (text_in(request, "vx0")) {
      wish.view = {number_in<int>(request, "vx0"), number_in<int>(request, "vy0"),
                   number_in<int>(request, "vx1"), number_in<int>(request, "vy1")};
    }
    const CleanTile clean = preview_.tile(wish);
    exact = clean.exact;
    // What is saved may have another white level than what was read.
    const double scale = clean.pixels->spec().white() / page.spec().white();
    const Window saved{window.low * scale, window.high * scale};
    if (kind == "clean") {
      bytes = shown(clean.pixels->view(), own, saved);
    } else {
      const double gain = finite_in(request, "gain", 4);
      ConstImageView noisy = part_view(page.level(level).view(), part);
      bytes = scale != 1             ? shown(clean.pixels->view(), own, saved)
              : kind == "difference" ? shown_difference(clean.pixels->view(), noisy, own, window, gain, false)
                                     : shown_difference(noisy, clean.pixels->view(), own, window, gain, true);
    }
  } else {
    throw UsageError("'kind' takes noisy, clean, difference or removed");
  }
  HttpAnswer answer{200, "application/octet-stream", std::string(bytes.begin(), bytes.end())};
  answer.headers = {{"X-Width", std::to_string(part.width())},
                    {"X-Height", std::to_string(part.height())},
                    {"X-Exact", exact ? "1" : "0"}};
  return answer;
}

HttpAnswer Api::thumbnail(const HttpRequest& request) {
  // A page of its own: the pictures on the screen stay held. One at a time, for the memory.
  const ShelfFile file = shelf_.find(number_in<int>(request, "file"));
  const std::lock_guard lock(thumbnails_mutex_);
  if (const auto made = thumbnails_.find(file.number); made != thumbnails_.end()) return made->second;
  const Picture page(open_document(file, treatments_of(file.number).front(), settings_.memory / 4), 0,
                     settings_.memory / 2);
  const Image& small = page.thumbnail();
  const ImageSpec& spec = small.spec();
  const std::vector<std::uint8_t> rgba =
      shown(small.view(), {0, 0, spec.width, spec.height}, page.usual_window());
  std::vector<std::uint8_t> rgb;
  for (std::size_t i = 0; i < rgba.size(); ++i) {
    if (i % 4 != 3) rgb.push_back(rgba[i]);
  }
  const io::BrowserPicture encoded = io::browser_picture(rgb, spec.width, spec.height, 3);
  return thumbnails_[file.number] = {200, std::string(encoded.media_type), encoded.bytes};
}

json Api::histogram_of(const HttpRequest& request) {
  const auto page = picture(request);
  const Part part = part_in(request, page->spec());
  // Of a large part a smaller level tells the same.
  int level = 0;
  constexpr double enough = 4e6;
  while (level + 1 < page->levels() &&
         static_cast<double>(part.width() >> level) * (part.height() >> level) > enough)
    ++level;
  const ImageSpec& spec = page->level(level).spec();
  const Part scaled{std::min(part.x0 >> level, spec.width - 1), std::min(part.y0 >> level, spec.height - 1),
                    std::clamp(((part.x1 - 1) >> level) + 1, 1, spec.width),
                    std::clamp(((part.y1 - 1) >> level) + 1, 1, spec.height)};
  return {{"channels", histogram(page->level(level).view(), scaled, window_in(request, *page))}};
}

json Api::noise(const HttpRequest& request) {
  const auto page = picture(request);
  const Part part = part_in(request, page->spec());
  if (part.width() < smallest_measured || part.height() < smallest_measured) {
    throw UsageError(
        fmt::format("noise is measured in {} x {} pixels or more", smallest_measured, smallest_measured));
  }
  // Of a frame: its luma. Models of that are not for the frame, nor those of a photograph for its raw file.
  const bool is_raw = dynamic_cast<const RawDocument*>(&page->document()) != nullptr;
  const bool is_frame = page->pixels().spec().colour == Colour::ycbcr;
  const ConstImageView pixels = page->pixels().view();
  const ConstImageView measured = is_frame ? luma_view(pixels) : pixels;
  const NoiseModelEstimate found = estimate_noise_model(part_view(measured, part), page->noise_options());
  const double largest = *std::max_element(found.deviations.begin(), found.deviations.end());
  const bool any = largest > 1e-6 * page->spec().white();
  const std::string text = noise_text(found, measured.spec, page->noise_options().iso);
  return {{"text", is_frame ? "luma: " + text
                   : is_raw ? "as developed: " + text
                            : text},
          {"found", any},
          {"curves", curves_of(found)},
          {"white", page->spec().white()},
          {"model", any && !is_frame && !is_raw ? json(models_.add(found.model, page->spec())) : json()}};
}

json Api::value(const HttpRequest& request) {
  const auto page = picture(request);
  const ImageSpec& spec = page->spec();
  const int x = number_in<int>(request, "x");
  const int y = number_in<int>(request, "y");
  if (x < 0 || y < 0 || x >= spec.width || y >= spec.height) throw UsageError("there is no such pixel");
  const Arguments words =
      checked_words(parsed(text_in(request, "words").value_or("[]")), page->document().treatment());
  const auto tile = preview_.known_tile(*page, words, x / tile_side, y / tile_side);
  return {{"noisy", samples_at(page->level(0).view(), x, y)},
          {"clean", tile ? samples_at(tile->view(), x % tile_side, y % tile_side) : json()}};
}

json Api::check(const json& body) {
  const int number = whole_of(body, "file");
  const Treatment as = treatment(number, body);
  const auto page = picture(number, as, body.contains("page") ? whole_of(body, "page") : 0);
  const Arguments words = words_of(body.value("words", json::array()));
  const auto variant = preview_.variant(page, checked_words(body.value("words", json::array()), as));
  json params = json::array();
  for (const ParamInfo& param : method_info(variant->params().method()).params)
    params.push_back({param.name, variant->params().get_text(param.name)});
  const std::string& file = page->file().name;
  return {{"command", command_line(words, file, methods_of(as))},
          {"python", python_call(words, file, methods_of(as))},
          {"params", params},
          {"noise", variant->noise_text()},
          {"preset", preset_text(words)}};
}

json Api::preset(const json& body) {
  const json as = body.value("as", json("pages"));
  const json text = body.value("text", json());
  const std::optional<Treatment> named = as.is_string() ? treatment_of(as.get<std::string>()) : std::nullopt;
  if (!named) throw UsageError("'as' takes pages, volume or clip");
  if (!text.is_string()) throw UsageError("'text' takes the content of a preset file");
  return {{"words", words_of_preset(text.get<std::string>(), methods_of(*named))}};
}

FilePair Api::files_for(const ShelfFile& file, Treatment as, const std::string& name,
                        const std::string& folder) const {
  fs::path target = folder.empty() ? file.path.parent_path() : fs::path(folder);
  if (name.empty() && as == Treatment::clip) {
    VideoSettings clip;
    clip.input = file.path.string();
    if (!folder.empty()) clip.output = (target / file.path.filename()).string();
    return {file.path, clip_output(clip)};
  }
  if (name.empty()) {
    const std::vector<FilePair> pairs =
        pair_outputs({file.path}, folder.empty() ? "" : (target / "").string());
    return pairs.front();
  }
  const fs::path output = target / plain_name(name);
  for (const ShelfFile& other : shelf_.files()) {
    std::error_code error;
    if (fs::equivalent(other.path, output, error))
      throw UsageError(fmt::format("{} is one of the pictures: results do not replace them", name));
  }
  return {file.path, output};
}

json Api::save(const json& body) {
  const ShelfFile file = shelf_.find(whole_of(body, "file"));
  const Treatment as = treatment(file.number, body);
  const Arguments words = checked_words(body.value("words", json::array()), as);
  check_values(words, as);  // a wrong value is told at once
  const json name = body.value("name", json());
  if (!name.is_null() && !name.is_string()) throw UsageError("'name' takes text");
  const FilePair files =
      files_for(file, as, name.is_string() ? name.get<std::string>() : "", settings_.output);
  std::string why_not;
  if (as != Treatment::clip && !io::can_write(files.output, &why_not)) throw UsageError(why_not);
  return {{"job", jobs_.start("save", {{files, words, file.name, as}})}};
}

json Api::batch(const json& body) {
  const json list = body.value("files", json());
  constexpr std::size_t most = 100'000;
  if (!list.is_array() || list.empty() || list.size() > most)
    throw UsageError("'files' takes a list of files");
  const json folder_name = body.value("folder", json());
  std::string folder = settings_.output;
  std::vector<JobFile> files;
  for (const json& each : list) {
    if (!each.is_object()) throw UsageError("'files' takes a list of files");
    const ShelfFile file = shelf_.find(whole_of(each, "file"));
    if (folder_name.is_string() && !folder_name.get<std::string>().empty()) {
      const fs::path parent = settings_.output.empty() ? file.path.parent_path() : fs::path(settings_.output);
      folder = (parent / plain_name(folder_name.get<std::string>())).string();
    }
    const Treatment as = usual_treatment(file, each);
    const Arguments words = checked_words(each.value("words", json::array()), as);
    check_values(words, as);
    if (!folder.empty()) fs::create_directories(folder);
    files.push_back({files_for(file, as, "", folder), words, file.name, as});
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (files[i].files.output == files[k].files.output)
        throw UsageError(fmt::format("two files would become {}", files[i].files.output.filename().string()));
    }
  }
  return {{"job", jobs_.start("batch", std::move(files))}};
}

HttpAnswer Api::download(const HttpRequest& request) {
  const fs::path path = jobs_.output(number_in<int>(request, "job"), number_in<int>(request, "output"));
  HttpAnswer answer{200, "application/octet-stream", "", path.string()};
  std::string plain;
  for (const char c : path.filename().string()) {
    const auto byte = static_cast<unsigned char>(c);
    plain += byte < 0x20 || byte > 0x7e || c == '"' || c == '\\' ? '_' : c;
  }
  answer.headers = {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"", plain)}};
  return answer;
}

}  // namespace ungrain::cli::view
