// ungrain completion: completion scripts for bash, zsh and fish, from the same tables as --help.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.h"
#include "commands.h"
#include "output.h"

namespace ungrain::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<std::string> names_of(const std::vector<Option>& options) {
  std::vector<std::string> names;
  for (const Option& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  for (const CommandText& command : commands) names.push_back(command.name);
  return names;
}

bool takes_files(const CommandText& command) {
  return std::any_of(command.positionals.begin(), command.positionals.end(),
                     [](const Option& positional) { return positional.file; });
}

std::vector<std::string> words_of(const CommandText& command) {
  return command.positionals.empty() ? std::vector<std::string>{} : command.positionals.front().choices;
}

// ---- bash

void print_bash_tables(const Tables& tables) {
  std::vector<CommandText> all = tables.commands;
  for (CommandText method : tables.methods) {
    method.name.insert(0, "--method ");
    all.push_back(std::move(method));
  }
  print("_ungrain_options() {{  # command or --method NAME\n  case $1 in\n");
  for (const CommandText& each : all) {
    print("    '{}') echo '{}' ;;\n", each.name, joined(names_of(each.options)));
  }
  print(
      "  esac\n}}\n\n_ungrain_values() {{  # command or --method NAME, option: its words, @files or nothing; "
      "fails "
      "where nothing follows\n  case \"$1 $2\" in\n");
  for (const CommandText& each : all) {
    for (const Option& option : each.options) {
      const std::string between = fmt::format("'|'{} ", each.name);
      if (!option.flag())
        print("    '{} {}') echo '{}' ;;\n", each.name, joined(option.names, between),
              option.file ? "@files" : joined(option.completed_values()));
    }
  }
  print("    *) return 1 ;;\n  esac\n}}\n\n");

  print("_ungrain_words() {{  # command: what stands where there is no option\n  case $1 in\n");
  for (const CommandText& command : tables.commands) {
    print("    {}) echo '{}' ;;\n", command.name,
          takes_files(command) ? "@files" : joined(words_of(command)));
  }
  print("  esac\n}}\n\n");
}

constexpr std::string_view bash_start = R"(# Completion of ungrain in bash; made by "ungrain completion bash".

)";

// Bash splits words at = and :, and replaces only what follows the split.
constexpr std::string_view bash_rest =
    R"bash(_ungrain_reply() {  # words, "@files" before them where files may stand too; what was typed
  local IFS=$' \t\n' words=${1#@files}
  COMPREPLY=()
  if [[ $1 == @files* ]]; then
    compopt -o filenames 2>/dev/null
    IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$2"))
    IFS=$' \t\n'
  fi
  [[ -z $words ]] || COMPREPLY+=($(compgen -W "$words" -- "$2"))
  if [[ $2 == *:* && $COMP_WORDBREAKS == *:* ]]; then
    local before=${2%"${2##*:}"} i
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$before"}; done
  fi
}

_ungrain_follows() {  # command, method, option: as _ungrain_values
  _ungrain_values "$1" "$3" || { _ungrain_values "$1" --method >/dev/null && _ungrain_values "--method $2" "$3"; }
}

_ungrain() {
  COMPREPLY=()
  local words=() word joined= i
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ ${#words[@]} -gt 1 && ( -n $joined || $word == [=:] ) ]]; then
      words[${#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
    joined=
    [[ $word != [=:] ]] || joined=yes
  done
  local last=$((${#words[@]} - 1)) command=denoise method=@method@ ended=
  local current=${words[last]} previous=${words[last-1]}
  if ((last > 1)) && [[ " $_ungrain_commands " == *" ${words[1]} "* ]]; then command=${words[1]}; fi
  for ((i = 1; i < last; ++i)); do
    case ${words[i]} in
      --) ended=yes ;;
      -m|--method) method=${words[i+1]} ;;
      --method=*) method=${words[i]#*=} ;;
    esac
  done

  local values
  if [[ -n $ended ]]; then
    _ungrain_reply @files "$current"
  elif [[ $current == --*=* ]]; then
    values=$(_ungrain_follows "$command" "$method" "${current%%=*}") || return 0
    _ungrain_reply "$values" "${current#*=}"
    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/${current%%=*}=}")
  elif ((last > 1)) && [[ $previous == -* ]] && values=$(_ungrain_follows "$command" "$method" "$previous"); then
    _ungrain_reply "$values" "$current"
  elif [[ $current == -* ]]; then
    values=$(_ungrain_options "$command")
    [[ $values != *--method* ]] || values+=" $(_ungrain_options "--method $method")"
    ((last > 1)) || values+=' --version -V'
    _ungrain_reply "$values" "$current"
  elif ((last == 1)); then
    _ungrain_reply "@files $_ungrain_commands" "$current"
  else
    _ungrain_reply "$(_ungrain_words "$command")" "$current"
  fi
}

complete -F _ungrain ungrain
)bash";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

void print_bash(const Tables& tables) {
  put(bash_start);
  print("_ungrain_commands='{}'\n\n", joined(names_of(tables.commands)));
  print_bash_tables(tables);
  put(replaced(std::string(bash_rest), "@method@", default_method));
}

// ---- zsh

std::string zsh_quoted(const std::string& text) { return "'" + replaced(text, "'", R"('\'')") + "'"; }

std::string zsh_help(std::string text) {
  for (const std::string_view special : {"\\", "[", "]"})
    text = replaced(text, special, fmt::format("\\{}", special));
  return text;
}

std::string zsh_action(const Option& option) {
  if (option.file) return "_files";
  if (option.completed_values().empty()) return " ";
  return fmt::format("({})", replaced(joined(option.completed_values()), ":", "\\:"));
}

// '(-o --output)'{-o+,--output=}'[help]:PATH:_files'
std::string zsh_option(const Option& option) {
  const bool flag = option.value.empty();
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(name + (flag ? "" : name.starts_with("--") ? "=" : "+"));
  }
  const std::string spelt = joined(names, ",");
  const std::string once = zsh_quoted(fmt::format("({})", fmt::join(option.names, " ")));
  const std::string rest = fmt::format("[{}]{}", zsh_help(option.help),
                                       flag ? "" : fmt::format(":{}:{}", option.value, zsh_action(option)));
  return once + (names.size() > 1 ? "{" + spelt + "}" : spelt) + zsh_quoted(rest);
}

void print_zsh_options(const std::vector<Option>& options, std::string_view indent) {
  for (const Option& option : options) print("{}{}\n", indent, zsh_option(option));
}

void print_zsh(const Tables& tables) {
  print(
      "#compdef ungrain\n# Completion of ungrain in zsh; made by \"ungrain completion zsh\".\n\n_ungrain() "
      "{{\n");
  print("  local command=denoise method={} i\n  local -a commands specs\n  commands=(\n", default_method);
  for (const CommandText& command : tables.commands) {
    print("    {}\n", zsh_quoted(command.name + ":" + replaced(command.summary, ":", "\\:")));
  }
  print(
      "  )\n"
      "  if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then _describe -t commands command commands; fi\n"
      "  if ((CURRENT > 2)) && ((${{commands[(I)$words[2]:*]}})); then\n"
      "    command=$words[2]\n    shift words\n    ((CURRENT--))\n  fi\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case $words[i] in\n"
      "      (-m|--method) method=$words[i+1] ;;\n"
      "      (--method=*) method=${{words[i]#*=}} ;;\n"
      "    esac\n  done\n"
      "  case $command in\n");
  for (const CommandText& command : tables.commands) {
    print("    ({})\n      specs=(\n", command.name);
    print_zsh_options(command.options, "        ");
    if (command.name == "denoise") print("        '(-V --version)'{{-V,--version}}'[the version]'\n");
    int place = 0;
    for (const Option& positional : command.positionals) {
      const std::string where = positional.repeated ? "*" : std::to_string(++place);
      print("        {}\n",
            zsh_quoted(fmt::format("{}:{}:{}", where, positional.names.front(), zsh_action(positional))));
    }
    print("      )\n      ;;\n");
  }
  print("  esac\n  ((${{specs[(I)*--method=*]}})) && case $method in\n");
  for (const CommandText& method : tables.methods) {
    print("    ({})\n      specs+=(\n", method.name);
    print_zsh_options(method.options, "        ");
    print("      )\n      ;;\n");
  }
  print("  esac\n  _arguments -s -S $specs\n}}\n\n");
  // Autoloaded from a folder of $fpath, this file is the function's body; read by `source`, it defines the
  // function.
  print("if [[ $funcstack[1] == _ungrain ]]; then _ungrain \"$@\"; else compdef _ungrain ungrain; fi\n");
}

// ---- fish

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

void print_fish_options(const std::vector<Option>& options, const std::string& when) {
  for (const Option& option : options) {
    print("complete -c ungrain -n {}", fish_quoted(when));
    for (const std::string& name : option.names) {
      print(" {}", name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1));
    }
    if (option.file) {
      print(" -r -F");
    } else if (!option.value.empty()) {
      print(" -x");
    }
    if (!option.completed_values().empty()) print(" -a {}", fish_quoted(joined(option.completed_values())));
    print(" -d {}\n", fish_quoted(option.help));
  }
}

constexpr std::string_view fish_functions = R"(
function __ungrain_command
    set -l words (commandline -opc)
    if set -q words[2]; and contains -- $words[2] $__ungrain_commands
        echo $words[2]
    else
        echo denoise
    end
end

function __ungrain_at_start
    test (count (commandline -opc)) -eq 1
end

function __ungrain_is
    test (__ungrain_command) = $argv[1]
end

function __ungrain_method
    set -l words (commandline -opc)
    set -l method @method@
    set -l next
    for word in $words
        if test -n "$next"
            set method $word
        end
        set next
        switch $word
            case -m --method
                set next yes
            case '--method=*'
                set method (string replace -- --method= '' $word)
        end
    end
    test $method = $argv[1]; and contains -- (__ungrain_command) @commands@
end

)";

void print_fish(const Tables& tables) {
  print(
      "# Completion of ungrain in fish; made by \"ungrain completion fish\".\n\nset -g __ungrain_commands "
      "{}\n",
      joined(names_of(tables.commands)));
  const std::string functions = replaced(std::string(fish_functions), "@method@", default_method);
  std::string with_method;
  for (const CommandText& command : tables.commands)
    with_method += command.has_method ? command.name + " " : "";
  put(replaced(functions, "@commands@", with_method));
  for (const CommandText& command : tables.commands) {
    print("complete -c ungrain -n __ungrain_at_start -a {} -d {}\n", command.name,
          fish_quoted(command.summary));
  }
  print("complete -c ungrain -n __ungrain_at_start -s V -l version -d 'the version'\n");
  for (const CommandText& command : tables.commands) {
    const std::string when = "__ungrain_is " + command.name;
    const std::vector<std::string> words = words_of(command);
    if (!takes_files(command)) print("complete -c ungrain -n {} -f\n", fish_quoted(when));
    if (!words.empty()) {
      print("complete -c ungrain -n {} -a {}\n", fish_quoted(when), fish_quoted(joined(words)));
    }
    print_fish_options(command.options, when);
  }
  for (const CommandText& method : tables.methods)
    print_fish_options(method.options, "__ungrain_method " + method.name);
}

}  // namespace

int completion_command(const Arguments& arguments) {
  std::string shell;
  OptionTable table("Print the completions of a shell: source <(ungrain completion bash)",
                    "ungrain completion");
  table.add("shell", "bash, zsh or fish", shell).choices = {"bash", "zsh", "fish"};
  if (!parse(table, arguments)) return exit_done;
  if (shell == "bash") {
    print_bash(describe());
  } else if (shell == "zsh") {
    print_zsh(describe());
  } else if (shell == "fish") {
    print_fish(describe());
  } else {
    throw UsageError(fmt::format("completion takes one of bash, zsh, fish, got {}",
                                 shell.empty() ? "none" : "'" + shell + "'"));
  }
  return exit_done;
}

}  // namespace ungrain::cli
