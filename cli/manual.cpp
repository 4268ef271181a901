// ungrain manual: the manual page, from the same tables as --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.h"
#include "commands.h"
#include "io/image_file.h"
#include "output.h"
#include "ungrain/version.h"

namespace ungrain::cli {
namespace {

// Escapes text for the manual's markup: a minus sign can be copied into a shell, and no character is taken
// for markup.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", escaped(text)); }

// Prints a term and its meaning.
void print_item(const std::string& term, const std::string& meaning) {
  print(".TP\n{}\n{}\n", term, escaped(meaning));
}

void print_options(const std::vector<Option>& options) {
  for (const Option& option : options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names) names.push_back(bold(name));
    const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", escaped(option.value));
    print_item(fmt::format("{}{}", fmt::join(names, ", "), value), option.help);
  }
}

void print_examples() {
  struct Example {
    std::string_view meaning;
    std::string_view line;
  };
  static constexpr Example examples[] = {
      {"Denoise a photograph into photo.ungrain.jpg, its noise measured:", "ungrain photo.jpg"},
      {"Choose the method and its strength:",
       "ungrain photo.tif -o out.tif --method bilateral --radius 7 --sigma-range 25"},
      {"A batch that can be interrupted and taken up again:", "ungrain *.tif -o cleaned/ --resume"},
      {"Every image of a stack:", "ungrain stack.npy --axis 0"},
      {"A clip, its sound kept (ffmpeg does the coding):", "ungrain video in.mkv -o out.mkv"},
      {"In a pipe:", "magick photo.cr2 ppm:- | ungrain - -o - --format png > photo.png"},
  };
  const char* between = ".SH EXAMPLES\n";
  for (const Example& example : examples) {
    print("{}{}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", between, escaped(example.meaning), escaped(example.line));
    between = ".PP\n";
  }
}

void print_synopsis(const std::vector<CommandText>& texts) {
  print(".SH SYNOPSIS\n.B ungrain\n[\\fIOPTIONS\\fR] \\fIFILE\\fR...\n");
  for (const CommandText& text : texts) {
    if (text.name == "denoise") continue;
    print(".br\n{}", bold("ungrain " + text.name));
    print(" [\\fIOPTIONS\\fR]");
    for (const Option& positional : text.positionals) {
      print(" [\\fI{}\\fR{}]", escaped(positional.names.front()), positional.repeated ? "..." : "");
    }
    print("\n");
  }
}

void print_command(const CommandText& text) {
  std::string upper = text.name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  print(".SH \"UNGRAIN {}\"\n{}.\n", upper, escaped(text.summary));
  for (const Option& positional : text.positionals) {
    print_item(fmt::format("\\fI{}\\fR", escaped(positional.names.front())), positional.help);
  }
  print_options(text.options);
}

void print_methods(const std::vector<CommandText>& texts) {
  print(".SH METHODS\n.B ungrain\n, {} and {} take {} and the options of the method chosen.\n",
        bold("ungrain video"), bold("ungrain cluster"), bold("--method"));
  for (const CommandText& text : texts) {
    print(".SS {}\n{}.\n", escaped(text.name), escaped(text.summary));
    print_options(text.options);
  }
}

void print_page() {
  const auto [texts, methods] = describe();
  print(".\\\" Made by \"ungrain manual\" from the program's own tables; do not edit.\n");
  print(".TH UNGRAIN 1 \"\" \"ungrain {}\" \"User Commands\"\n", UNGRAIN_VERSION);
  print(".SH NAME\nungrain \\- image denoising that keeps edges\n");
  print_synopsis(texts);
  print(".SH DESCRIPTION\n");
  print(
      "{} removes noise from images and keeps their edges.\nEach result is written to a file of its own, "
      "which takes its place only once it is\n"
      "complete; a batch that is interrupted leaves no half\\-written file.\n",
      bold("ungrain"));
  print(
      ".PP\nStrengths of noise and of filters are on the scale of 8\\-bit images, 0 to 255, whatever the "
      "file's\n"
      "own samples are.\n");
  print(".PP\nThis build reads {}\nand writes {}.\n",
        escaped(fmt::format("{}", fmt::join(io::readable_extensions(), " "))),
        escaped(fmt::format("{}", fmt::join(io::writable_extensions(), " "))));
  print(".SH COMMANDS\n");
  for (const CommandText& text : texts) print_item(bold(text.name), text.summary);
  print_item(bold("--help") + ", " + bold("-h"), "this list; after a command, its options");
  print_item(bold("--version") + ", " + bold("-V"), "the version");
  for (const CommandText& text : texts) print_command(text);
  print_methods(methods);
  print(".SH ENVIRONMENT\n");
  print_item("\\fBPATH\\fR", "where ungrain video finds ffmpeg and ffprobe, for files that are not Y4M");
  print_item("\\fBTMPDIR\\fR",
             "folder for temporary files: the standard input's copy, stacks that are brought into "
             "another order (default /tmp)");
  print_item("\\fBUNGRAIN_PYTHON\\fR", "the Python that ungrain cluster runs (default python3)");
  print(".SH EXIT STATUS\n");
  print_item("0", "done");
  print_item("1", "an input failed (the others are done), or the run was interrupted");
  print_item("2", "wrong usage: nothing was done");
  print_examples();
}

}  // namespace

int manual_command(const Arguments& arguments) {
  OptionTable table("Print the manual page: ungrain manual | man -l -", "ungrain manual");
  if (!parse(table, arguments)) return exit_done;
  print_page();
  return exit_done;
}

}  // namespace ungrain::cli
