#include "arguments.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/convert.h"
#include "core/descriptor.h"
#include "core/nearest.h"
#include "io/image_file.h"
#include "output.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

constexpr const char* preset_option = "--preset";

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

[[noreturn]] void refuse_option(const CLI::App& app, const std::string& option, Whose whose) {
  if (whose != nullptr) {
    if (const std::string owner = whose(option); !owner.empty()) throw UsageError(owner);
  }
  const std::string near = nearest(option, option_names(app));
  throw UsageError(
      fmt::format("there is no option {}{}", option,
                  near.empty() ? "; --help lists them" : fmt::format("; did you mean {}?", near)));
}

// Turns what was typed into the one form that every version of CLI11 reads alike: --name=value, --flag, then
// -- and the files. CLI11 by itself takes the next file for the value of "--radius=", "-3" now for a value
// and now for an option, and a file "[a]" for a list.
class ArgumentReader {
 public:
  ArgumentReader(const CLI::App& app, const Arguments& arguments, Whose whose)
      : app_(app), left_(arguments.begin(), arguments.end()), whose_(whose) {}

  Arguments read() {
    while (!left_.empty()) {
      const std::string argument = take();
      if (argument == "--") {
        while (!left_.empty()) add_file(take());
      } else if (argument.size() > 1 && argument.starts_with('-')) {
        read_option(argument);
      } else {
        add_file(argument);
      }
    }
    options_.emplace_back("--");
    options_.insert(options_.end(), files_.begin(), files_.end());
    return options_;
  }

 private:
  std::string take() {
    std::string first = std::move(left_.front());
    left_.pop_front();
    return first;
  }

  void add_file(const std::string& name) {
    if (name.empty()) throw UsageError("one of the files has an empty name");
    files_.push_back(name.starts_with('[') || name.starts_with('{') ? "./" + name : name);
  }

  void read_option(const std::string& argument) {
    const bool is_long = argument.starts_with("--");
    const std::size_t name_end = is_long ? argument.find('=') : 2;
    const std::string name = argument.substr(0, name_end);
    const CLI::Option* option = app_.get_option_no_throw(name);
    if (option == nullptr || !option->nonpositional()) refuse_option(app_, is_long ? name : argument, whose_);
    const bool joined = name_end < argument.size();
    std::string value = joined ? argument.substr(name_end + (argument[name_end] == '=' ? 1 : 0)) : "";

    const std::string full_name = "--" + option->get_lnames().front();
    if (option->get_items_expected_max() == 0) {
      if (joined && is_long) throw UsageError(fmt::format("{} takes no value, got '{}'", name, value));
      if (joined) refuse_option(app_, argument, whose_);
      options_.push_back(full_name);
      return;
    }
    if (!joined) value = next_value();
    if (value.empty()) throw UsageError(fmt::format("{} needs a value: {}", name, option->get_description()));
    if (!seen_.insert(full_name).second) throw UsageError(fmt::format("{} is given twice", full_name));
    options_.push_back(full_name + "=" + value);
  }

  // Nothing where the next argument is an option: -3 is none, but -q is.
  std::string next_value() {
    if (left_.empty() || left_.front().starts_with("--")) return "";
    if (app_.get_option_no_throw(left_.front()) != nullptr && left_.front().starts_with('-')) return "";
    return take();
  }

  const CLI::App& app_;
  std::deque<std::string> left_;
  Whose whose_;
  Arguments options_;
  Arguments files_;
  std::set<std::string> seen_;
};

// Who wants to see the next app instead of having it read anything; null: nobody.
const std::function<void(const CLI::App&)>*& onlooker() {
  static const std::function<void(const CLI::App&)>* see = nullptr;
  return see;
}

// The library names its parameters as C++ does; the user has typed an option.
template <class Work>
auto naming_option(const std::string& parameter, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    std::string message = error.what();
    if (message.starts_with(parameter)) message.replace(0, parameter.size(), option_name(parameter));
    throw UsageError(message);
  }
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

io::PageList parse_pages(const std::string& text) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("--pages takes numbers from 1 up and ranges of them such as 1,4-6,9-, got '{}'", text));
  };
  io::PageList pages;
  std::string_view rest = text;
  while (true) {
    const std::string_view part = rest.substr(0, std::min(rest.find(','), rest.size()));
    const std::size_t dash = part.find('-');
    const std::optional<std::int64_t> first =
        read_number<std::int64_t>(part.substr(0, std::min(dash, part.size())));
    std::optional<std::int64_t> last = first;
    if (dash != std::string_view::npos) {
      const std::string_view end = part.substr(dash + 1);
      last = end.empty() ? io::PageList::open_end : read_number<std::int64_t>(end);
    }
    if (!first || !last || *first < 1 || *last < *first) refuse();
    pages.add(*first, *last);
    if (part.size() == rest.size()) return pages;
    rest.remove_prefix(part.size() + 1);
  }
}

constexpr std::array compressions = {
    std::pair{std::string_view("none"), io::TiffCompression::none},
    std::pair{std::string_view("lzw"), io::TiffCompression::lzw},
    std::pair{std::string_view("deflate"), io::TiffCompression::deflate},
    std::pair{std::string_view("packbits"), io::TiffCompression::packbits},
    std::pair{std::string_view("zstd"), io::TiffCompression::zstd},
    std::pair{std::string_view("lzma"), io::TiffCompression::lzma},
    std::pair{std::string_view("jpeg"), io::TiffCompression::jpeg},
};

void check_choice(std::string_view option, std::string_view choices, const std::string& text) {
  const std::vector<std::string> words = words_of(choices);
  if (std::find(words.begin(), words.end(), text) != words.end()) return;
  throw UsageError(fmt::format("{} takes one of {}, got '{}'", option, choices, text));
}

io::TiffCompression parse_compression(const std::string& text) {
  check_choice("--compression", compression_choices(), text);
  return std::find_if(compressions.begin(), compressions.end(),
                      [&](const auto& known) { return text == known.first; })
      ->second;
}

// Floats from 0 to 1 beside an image from 0 to 1: on the 0-255 scale they would do nothing.
bool is_in_own_units(const ConstImageView& map, double white) {
  if (!is_float(map.spec.type) || white >= 255) return false;
  std::vector<float> row(static_cast<std::size_t>(map.spec.width));
  for (int y = 0; y < map.spec.height; ++y) {
    for (int channel = 0; channel < map.spec.channels; ++channel) {
      load_row(map, y, channel, row.data());
      if (std::any_of(row.begin(), row.end(), [white](float value) { return value > white; })) return false;
    }
  }
  return true;
}

}  // namespace

void see_options_of(int (*command)(const Arguments&), const std::function<void(const CLI::App&)>& see) {
  onlooker() = &see;
  command({});
  onlooker() = nullptr;
}

bool parse(CLI::App& app, const Arguments& arguments, Whose whose) {
  if (onlooker() != nullptr) {
    (*onlooker())(app);
    return false;
  }
  app.allow_extras();
  try {
    Arguments plain = ArgumentReader(app, arguments, whose).read();
    std::reverse(plain.begin(), plain.end());  // CLI11 takes them from the back
    app.parse(plain);
  } catch (const CLI::CallForHelp&) {
    print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra != "--") throw UsageError(fmt::format("'{}' is one argument too many", extra));
  }
  return true;
}

std::string option_name(const std::string& parameter) {
  std::string name = "--" + parameter;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string option_help(const ParamInfo& info) {
  std::string scale;
  if (info.unit == Unit::intensity || info.unit == Unit::intensity_squared) scale = ", on the 0-255 scale";
  if (info.unit == Unit::pixels) scale = ", pixels";
  const std::string fallback = info.default_text.empty() ? "" : "; default " + info.default_text;
  return fmt::format("{} ({}{}{})", info.help, what_it_takes(info), scale, fallback);
}

MethodOptions::MethodOptions(const Arguments& arguments, std::string_view default_method)
    : default_method_(default_method), method_(default_method) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") break;
    constexpr std::string_view joined = "--method=";
    if ((argument == "--method" || argument == "-m") && i + 1 < arguments.size()) method_ = arguments[i + 1];
    if (argument.starts_with(joined)) method_ = argument.substr(joined.size());
    if (argument.starts_with("-m") && argument.size() > 2)
      method_ = argument.substr(argument[2] == '=' ? 3 : 2);
  }
  try {
    method_ = method_info(method_).name;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void MethodOptions::add_to(CLI::App& app) {
  std::vector<std::string> names;
  for (const MethodInfo& method : methods()) names.push_back(method.name);
  app.add_option("-m,--method", method_,
                 fmt::format("{} (default {})", fmt::join(names, ", "), default_method_))
      ->type_name("NAME")
      ->expected(1);
  const MethodInfo info = method_info(method_);
  if (!info.presets.empty()) {
    std::vector<std::string> presets;
    for (const PresetInfo& preset : info.presets) {
      presets.push_back(fmt::format("{} ({})", preset.name, preset.help));
    }
    app.add_option(preset_option, preset_,
                   fmt::format("values to start from: {} (default none)", fmt::join(presets, ", ")))
        ->type_name("NAME");
  }
  const std::string group =
      fmt::format("Options of {} (ungrain methods NAME tells another method's)", method_);
  for (const ParamInfo& param : info.params) {
    app.add_option_function<std::string>(
           option_name(param.name),
           [this, name = param.name](const std::string& text) { given_[name] = text; }, option_help(param))
        ->type_name("")
        ->group(group);
  }
}

MethodParams MethodOptions::read() const { return read_for(255); }

MethodParams MethodOptions::read_for(double white) const {
  MethodParams params = MethodParams::defaults(method_);
  const MethodInfo info = method_info(method_);
  const auto is_image = [&](const std::string& name) {
    return std::any_of(info.params.begin(), info.params.end(),
                       [&](const ParamInfo& p) { return p.name == name && p.kind == ParamKind::image; });
  };
  const auto set_given = [&] {
    for (const auto& [name, text] : given_) {
      naming_option(name, [&, &name = name, &text = text] {
        if (is_image(name) && text != "none") {
          params.set(name, image(name, white).view());
        } else {
          params.set_text(name, text);
        }
      });
    }
  };
  set_given();
  if (!preset_.empty()) {
    // A preset may follow what was given, and what was given stands.
    naming_option("preset", [&] { params.apply_preset(preset_, 255); });
    set_given();
  }
  params.scale_strengths(white / 255);
  return params;
}

MethodParams MethodOptions::for_image(const ImageSpec& spec) const { return read_for(spec.white()); }

std::string MethodOptions::given(const std::string& parameter) const {
  const auto found = given_.find(parameter);
  return found == given_.end() ? "" : found->second;
}

std::string MethodOptions::take(const std::string& parameter) {
  std::string text = given(parameter);
  given_.erase(parameter);
  return text;
}

const Image& MethodOptions::image(const std::string& parameter, double white) const {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(parameter, white);
  if (const auto found = images_.find(key); found != images_.end()) return found->second;
  try {
    const Image file = io::read_image(given_.at(parameter));
    const ConstImageView from = file.view();
    ImageSpec spec = from.spec;
    spec.type = PixelType::f32;
    spec.range = 0;
    Image image(spec);
    const Strides& strides = image.view().strides;
    std::vector<float> row(static_cast<std::size_t>(spec.width));
    const float scale = static_cast<float>(is_in_own_units(from, white) ? 1 : white / 255);
    for (int y = 0; y < spec.height; ++y) {
      for (int channel = 0; channel < spec.channels; ++channel) {
        load_row(from, y, channel, row.data());
        auto* to = static_cast<std::byte*>(image.view().data) + y * strides.y + channel * strides.channel;
        for (int x = 0; x < spec.width; ++x) *reinterpret_cast<float*>(to + x * strides.x) = row[x] * scale;
      }
    }
    return images_.emplace(key, std::move(image)).first->second;
  } catch (const Error& error) {
    throw UsageError(fmt::format("{}: {}", option_name(parameter), error.what()));
  }
}

std::string MethodOptions::images_text() const {
  std::string text;
  for (const ParamInfo& info : method_info(method_).params) {
    const auto given = given_.find(info.name);
    if (info.kind != ParamKind::image || given == given_.end() || given->second == "none") continue;
    const Image& pixels = image(info.name, 255);
    const ConstImageView view = pixels.view();
    const std::string_view bytes(static_cast<const char*>(view.data),
                                 static_cast<std::size_t>(view.strides.y) * view.spec.height);
    text += fmt::format(" {}#{:x}", info.name, std::hash<std::string_view>{}(bytes));
  }
  return text;
}

std::string other_methods_option(const std::string& option) {
  std::vector<std::string> owners;
  for (const MethodInfo& method : methods()) {
    if (option == preset_option && !method.presets.empty()) owners.push_back(method.name);
    for (const ParamInfo& info : method.params) {
      if (option_name(info.name) == option) owners.push_back(method.name);
    }
  }
  if (owners.empty()) return "";
  return fmt::format("{} is an option of {}, not of the method chosen", option, fmt::join(owners, ", "));
}

Device parse_device_option(const std::string& text) {
  return naming_option("device", [&] { return parse_device(text); });
}

std::size_t parse_bytes(const std::string& text) {
  const auto fail = [&] {
    throw UsageError(fmt::format("--memory takes a size such as 512M or 2G, got '{}'", text));
  };
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  if (digits.size() > 1 && digits.ends_with('B')) digits.remove_suffix(1);
  double factor = 1;
  if (!digits.empty()) {
    constexpr std::string_view suffixes = "KMGT";
    const std::size_t power = suffixes.find(static_cast<char>(std::toupper(digits.back())));
    if (power != std::string_view::npos) {
      factor = std::pow(1024.0, static_cast<double>(power) + 1);
      digits.remove_suffix(1);
    }
  }
  const double bytes = read_number<double>(digits).value_or(0) * factor;
  if (!(bytes >= 1) || bytes > 1e18) fail();
  return static_cast<std::size_t>(bytes);
}

PixelType parse_pixel_type(const std::string& text) {
  for (const PixelTypeInfo& known : pixel_types) {
    if (text == known.name) return known.type;
  }
  throw UsageError(fmt::format("--depth takes one of u8, u16, f16, f32, got '{}'", text));
}

NonFinite parse_nonfinite(const std::string& text) {
  if (text == "fill") return NonFinite::fill;
  if (text == "keep") return NonFinite::keep;
  if (text == "error") return NonFinite::error;
  throw UsageError(fmt::format("--nonfinite takes one of fill, keep, error, got '{}'", text));
}

double parse_range(const std::string& text) {
  const double value = read_number<double>(text).value_or(0);
  if (!std::isfinite(value) || value <= 0) {
    throw UsageError(fmt::format("--range takes a number above 0, got '{}'", text));
  }
  return value;
}

std::uint64_t parse_whole(std::string_view option, const std::string& text, std::uint64_t largest,
                          std::uint64_t smallest) {
  const std::optional<std::uint64_t> value = read_number<std::uint64_t>(text);
  if (!value || *value > largest || *value < smallest) {
    throw UsageError(
        fmt::format("{} takes a whole number from {} to {}, got '{}'", option, smallest, largest, text));
  }
  return *value;
}

std::uint64_t parse_seed(const std::string& text) {
  return parse_whole("--seed", text, std::numeric_limits<std::uint64_t>::max());
}

double parse_amount(const ParamInfo& info, const std::string& text) {
  return naming_option(info.name, [&] { return std::get<double>(parse_value(info, text)); });
}

Size parse_size(const std::string& text) {
  const std::size_t cross = std::min(text.find('x'), text.size());
  const std::string_view height = std::string_view(text).substr(std::min(cross + 1, text.size()));
  const Size size{read_number<int>(std::string_view(text).substr(0, cross)).value_or(0),
                  read_number<int>(height).value_or(0)};
  constexpr int largest = 65536;
  if (size.width < 1 || size.height < 1 || size.width > largest || size.height > largest) {
    throw UsageError(fmt::format("--size takes WIDTHxHEIGHT, each from 1 to {}, got '{}'", largest, text));
  }
  return size;
}

void add_format_option(CLI::App& app, std::string& format) {
  app.add_option(
         "--format", format,
         "format of the standard output, by its extension such as png, tif or npy (default: the input's)")
      ->type_name("EXT");
}

void add_open_options(CLI::App& app, io::OpenOptions& options) {
  app.add_option_function<std::string>(
         "--axis",
         [&options](const std::string& text) {
           options.axis = read_number<int>(text);
           if (!options.axis) throw UsageError(fmt::format("--axis takes a whole number, got '{}'", text));
         },
         "axis of NPY arrays that counts the images of a stack, negative from the end (default: none)")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--pages", [&options](const std::string& text) { options.pages = parse_pages(text); },
         "pages of a file of several, counted from 1: 1,4-6,9- (default: all)")
      ->type_name("LIST");
  app.add_option_function<std::string>(
         "--alpha",
         [&options](const std::string& text) {
           check_choice("--alpha", alpha_choices, text);
           options.alpha = text == "yes";
         },
         fmt::format("whether the last of two or four channels is alpha: {} (default: as the file says)",
                     alpha_choices))
      ->type_name("WHICH");
}

void add_save_options(CLI::App& app, io::SaveOptions& options, bool& quality_given) {
  app.add_option_function<std::string>(
         "--jpeg-quality",
         [&](const std::string& text) {
           options.quality = static_cast<int>(parse_whole("--jpeg-quality", text, 100, 1));
           quality_given = true;
         },
         "quality of JPEG, WebP, HEIF, JPEG XL and JPEG 2000, 1 to 100 (default 95)")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--compression",
         [&options](const std::string& text) { options.compression = parse_compression(text); },
         fmt::format("of TIFF: {} (default: the input's, or none)", compression_choices()))
      ->type_name("KIND");
}

std::string compression_choices() {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : compressions) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> words_of(std::string_view choices) {
  constexpr std::string_view between = ", ";
  std::vector<std::string> words;
  while (true) {
    const std::size_t end = choices.find(between);
    words.emplace_back(choices.substr(0, end));
    if (end == std::string_view::npos) return words;
    choices.remove_prefix(end + between.size());
  }
}

std::string parse_channels(const std::string& text, io::OpenOptions& open) {
  check_choice("--channels", channels_choices, text);
  if (text != "auto") open.alpha = text == "gray-alpha" || text == "rgba";
  return text;
}

void check_device(Device wanted) {
  if (wanted.kind != Device::Kind::cuda) return;
  const std::vector<DeviceInfo> list = devices();
  // Without a GPU there is no cuda:all either, for the same reason.
  const bool listed =
      std::any_of(list.begin(), list.end(), [&](const DeviceInfo& info) { return info.device == wanted; });
  const Device reason_of = listed || wanted.index != Device::all_gpus ? wanted : Device{Device::Kind::cuda};
  for (const DeviceInfo& info : list) {
    if (info.device != reason_of) continue;
    if (info.usable) return;
    throw Error(ErrorCode::no_device, fmt::format("--device {}: {}", name(wanted), info.reason));
  }
  throw Error(ErrorCode::no_device, fmt::format("--device {}: there is no such device", name(wanted)));
}

}  // namespace ungrain::cli
