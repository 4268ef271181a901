// ungrain formats: what this build reads, writes and preserves, from the table of src/io alone.
#include "io/formats.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "json_text.h"
#include "output.h"

namespace ungrain::cli {
namespace {

using Words = std::vector<std::string>;

// All rows of the table with one name: extensions of a format can differ in their abilities.
struct FormatText {
  std::string name;
  Words extensions = {};
  bool read = false;
  bool written = false;
  Words types = {};  // from here on: what can be written
  Words layouts = {};
  bool pages = false;
  Words metadata = {};
};

Words words_of_bits(unsigned bits, std::string (*text)(unsigned)) {
  Words words;
  for (unsigned bit = 1; bit != 0; bit *= 2) {
    if ((bits & bit) != 0) words.push_back(text(bit));
  }
  return words;
}

void add_row(const io::Format& row, FormatText& text) {
  text.extensions.insert(text.extensions.end(), row.extensions.begin(), row.extensions.end());
  text.read = text.read || io::can_read(row);
  if (!io::can_write(row)) return;
  text.written = true;
  for (const PixelType type : row.types) text.types.emplace_back(name(type));
  text.layouts = words_of_bits(row.layouts, io::layout_names);
  text.pages = row.pages;
  text.metadata = words_of_bits(row.keeps, io::kinds_text);
}

std::vector<FormatText> describe_formats() {
  std::vector<FormatText> texts;
  for (const io::Format& row : io::formats()) {
    auto same = std::find_if(texts.begin(), texts.end(),
                             [&](const FormatText& text) { return text.name == row.name; });
    if (same == texts.end()) same = texts.insert(same, FormatText{.name = std::string(row.name)});
    add_row(row, *same);
  }
  return texts;
}

std::string joined(const Words& words, std::string_view between) {
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, between));
}

using Cells = std::array<std::string, 7>;

Cells cells_of(const FormatText& text) {
  return {text.name,
          joined(text.extensions, " "),
          text.read ? "yes" : "no",
          text.written ? joined(text.types, " ") : "no",
          joined(text.layouts, ", "),
          !text.written ? "-"
          : text.pages  ? "several"
                        : "one",
          joined(text.metadata, ", ")};
}

void print_table() {
  std::vector<Cells> lines = {
      {"format", "extensions", "read", "written", "channels", "pages", "metadata that are kept"}};
  for (const FormatText& text : describe_formats()) lines.push_back(cells_of(text));
  std::array<std::size_t, std::tuple_size_v<Cells> - 1> widths{};  // the last column is not filled up
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  for (const Cells& cells : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) print("{:<{}}  ", cells[i], widths[i]);
    print("{}\n", cells.back());
  }
}

nlohmann::json to_json(const FormatText& text) {
  return {{"format", text.name},         {"extensions", text.extensions}, {"read", text.read},
          {"written", text.written},     {"types", text.types},           {"channels", text.layouts},
          {"several_pages", text.pages}, {"metadata", text.metadata}};
}

}  // namespace

int formats_command(const Arguments& arguments) {
  bool json = false;
  OptionTable table("List the file formats: what this build reads and writes, and what each can hold.",
                    "ungrain formats");
  table.add("--json", "one JSON object a format", json);
  if (!parse(table, arguments)) return exit_done;
  if (!json) {
    print_table();
    return exit_done;
  }
  for (const FormatText& text : describe_formats()) print("{}\n", json_text(to_json(text)));
  return exit_done;
}

}  // namespace ungrain::cli
