#include "arguments.h"

#include <algorithm>

#include <fmt/format.h>

#include "output.h"
#include "ungrain/error.h"

namespace ungrain::cli {
namespace {

// If set, receives the next tables instead of their reading the arguments.
std::function<void(const OptionTable&)>& onlooker() {
  static std::function<void(const OptionTable&)> see;
  return see;
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

}  // namespace

bool parse(OptionTable& table, const Arguments& arguments) {
  if (onlooker()) {
    onlooker()(table);
    return false;
  }
  const bool go_on = table.read(arguments);
  if (!go_on) put(table.help());
  return go_on;
}

Tables describe() {
  Tables tables;
  for (const Command& command : commands()) {
    CommandText& text =
        tables.commands.emplace_back(CommandText{std::string(command.name), std::string(command.summary)});
    onlooker() = [&text](const OptionTable& table) {
      for (const Option& option : table.options()) {
        if (option.method.empty()) (option.positional() ? text.positionals : text.options).push_back(option);
        text.has_method = text.has_method || !option.method.empty();
      }
    };
    command.run({});
  }
  onlooker() = nullptr;
  MethodOptions options;
  OptionTable table("", "");
  options.add_to(table);
  for (const MethodInfo& method : methods()) {
    CommandText& text = tables.methods.emplace_back(CommandText{method.name, method.summary});
    for (const Option& option : table.options()) {
      if (option.method == method.name) text.options.push_back(option);
    }
  }
  return tables;
}

void add_format_option(OptionTable& table, std::string& format) {
  // libvips is asked, and takes 20 ms to start.
  const auto extensions = [] {
    std::vector<std::string> list = io::writable_extensions();
    for (std::string& extension : list) extension.erase(0, 1);  // the dot
    return list;
  };
  table
      .add("--format EXT",
           "format of the standard output, by its extension such as png, tif or npy (default: the input's)",
           format)
      .slow_choices = extensions;
}

void add_device_option(OptionTable& table, std::string help, Device& device) {
  const auto set = [&device](const std::string& text) {
    device = naming_option("device", [&] { return parse_device(text); });
  };
  table.add("-d,--device NAME", std::move(help), set).choices = {"auto", "cpu", "cuda", "cuda:all",
                                                                 "reference"};
}

void add_range_option(OptionTable& table, std::string help, std::optional<double>& range) {
  table.add("--range WHITE", std::move(help),
            [&range](const std::string& text) { range = parse_range(text); });
}

void add_depth_option(OptionTable& table, std::string help, std::optional<PixelType>& depth) {
  std::vector<std::pair<std::string, std::optional<PixelType>>> choices;
  for (const PixelTypeInfo& known : pixel_types) choices.emplace_back(known.name, known.type);
  table.add("--depth TYPE", std::move(help), depth, choices);
}

void add_open_options(OptionTable& table, io::OpenOptions& options) {
  table.add(
      "--axis N",
      "axis of NPY and HDF5 arrays that counts the images of a stack, negative from the end (default: none)",
      [&options](const std::string& text) {
        options.axis = read_number<int>(text);
        if (!options.axis) throw UsageError(fmt::format("--axis takes a whole number, got '{}'", text));
      });
  table.add("--dataset PATH",
            "array of an HDF5 file: /entry/data/data (default: the only one, or NeXus' default)",
            options.dataset);
  table.add("--pages LIST", "pages of a file of several, counted from 1: 1,4-6,9- (default: all)",
            [&options](const std::string& text) { options.pages = parse_pages(text); });
  table.add("--alpha WHICH",
            "whether the last of two or four channels is alpha: {} (default: as the file says)",
            options.alpha, {{"yes", true}, {"no", false}});
}

void add_series_option(OptionTable& table, io::OpenOptions& options) {
  table.add("--series N",
            "of a folder with several DICOM series: the number or the identifier of one (default: the only "
            "one)",
            options.series);
}

void add_save_options(OptionTable& table, io::SaveOptions& options, bool& quality_given) {
  table.add("--jpeg-quality N", "quality of JPEG, WebP, HEIF, JPEG XL and JPEG 2000, 1 to 100 (default 95)",
            [&](const std::string& text) {
              options.quality = static_cast<int>(parse_whole("--jpeg-quality", text, 100, 1));
              quality_given = true;
            });
  using io::TiffCompression;
  table.add("--compression KIND", "of TIFF: {}; of HDF5: none or deflate (default: the input's, or none)",
            options.compression,
            {{"none", TiffCompression::none},
             {"lzw", TiffCompression::lzw},
             {"deflate", TiffCompression::deflate},
             {"packbits", TiffCompression::packbits},
             {"zstd", TiffCompression::zstd},
             {"lzma", TiffCompression::lzma},
             {"jpeg", TiffCompression::jpeg}});
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
