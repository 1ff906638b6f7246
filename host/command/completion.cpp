// SPDX-License-Identifier: Apache-2.0
// Scripts by which bash, zsh and fish complete the words of a command.
#include <algorithm>
#include <utility>

#include "host/command/manual.h"
#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

// The first clause: one line of a menu.
std::string brief(const std::string& description) {
  return description.substr(0, std::min(description.find("; "), description.find(". ")));
}

std::string with_escapes(const std::string& text, const std::string& special, const std::string& escape) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) out += escape;
    out += c;
  }
  return out;
}

std::string fish_quoted(const std::string& text) { return "'" + with_escapes(text, "\\'", "\\") + "'"; }

// What the value of an option may be, in the words of each script.
struct Values {
  std::string bash;  // words, or a word of _pointsman below
  std::string zsh;   // an action
  bool fish_takes_files;
  std::string fish;  // the rest of a `complete` command
};

Values values_of(const OptionRow& row) {
  const std::string words = joined(row.choices, " ");
  if (!words.empty()) return {words, "(" + words + ")", false, " -a " + fish_quoted(words)};
  if (row.value == kModelValue)
    return {"@models", "_pointsman_models", true, " -a '(pointsman --models 2>/dev/null)'"};
  if (row.value == kFileValue || row.value == "TEXT") return {"@files", "_files", true, ""};
  return {"@nothing", " ", false, ""};
}

// ---- bash

// The arms of a case: what stands behind a flag or in a place, and all flags.
std::string bash_arms(const Command& command) {
  std::vector<std::pair<std::string, std::string>> arms;  // value, pattern
  std::vector<std::string> flags;
  int place = 0;
  for (const OptionRow& row : command.rows()) {
    std::string pattern = joined(row.names, "|");
    if (row.is_positional) {
      pattern = row.is_repeated ? "[0-9]*" : std::to_string(place++);
    } else {
      flags.insert(flags.end(), row.names.begin(), row.names.end());
    }
    if (row.value.empty()) continue;
    const std::string value = values_of(row).bash;
    const auto same =
        std::find_if(arms.begin(), arms.end(), [&](const auto& arm) { return arm.first == value; });
    if (same == arms.end() || row.is_positional) {
      arms.emplace_back(value, pattern);
    } else {
      same->second += "|" + pattern;
    }
  }
  std::string text;
  for (const auto& [value, pattern] : arms) text += "        " + pattern + ") value=\"" + value + "\" ;;\n";
  return text + "        flags) value=\"" + joined(flags, " ") + "\" ;;\n";
}

constexpr const char* kBashFunction = R"(
_pointsman() {
  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} value= place=0 first=2 i word quoted words=()
  COMPREPLY=()
  [[ $command == -* || $COMP_CWORD == 1 ]] && command= first=1
  if [[ $current == = ]]; then
    current=
  elif [[ $flag == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  [[ $flag == -?* ]] && _pointsman_value "$command" "$flag"
  if [[ -z $value && $current == -* ]]; then
    _pointsman_value "$command" flags
  elif [[ -z $value ]]; then
    for ((i = first; i < COMP_CWORD; ++i)); do
      value=
      case ${COMP_WORDS[i]} in
        -?*)
          if [[ ${COMP_WORDS[i + 1]} == = ]]; then
            ((i += 2))
          else
            _pointsman_value "$command" "${COMP_WORDS[i]}"
            [[ -n $value ]] && ((++i))
          fi
          ;;
        *) ((++place)) ;;
      esac
    done
    value=
    _pointsman_value "$command" "$place"
  fi
  case $value in
    @nothing) return ;;
    @files) compopt -o default ;;
    @models)
      mapfile -t words < <("$1" --models 2>/dev/null)
      compopt -o default
      ;;
    *) IFS=' ' read -ra words <<<"$value" ;;
  esac
  # compgen -W would expand the words, and with them what the name of a file says.
  for word in "${words[@]}"; do
    printf -v quoted %q "$word"
    [[ $word == "$current"* || $quoted == "$current"* ]] && COMPREPLY+=("$quoted")
  done
}

complete -F _pointsman pointsman
)";

std::string bash_completion(const Command& program) {
  std::string text =
      "# bash completion of pointsman, made by `pointsman --completion bash`\n\n"
      "# Sets `value` to what may stand behind flag $2 of subcommand $1, or in its place number $2.\n"
      "_pointsman_value() {\n  case $1 in\n";
  const std::string names = joined(program.subcommands, " ", &Command::name);
  text += "    \"\")\n      case $2 in\n        0) value=\"" + names + "\" ;;\n" + bash_arms(program) +
          "      esac\n      ;;\n";
  for (const Command& one : program.subcommands) {
    text += "    " + one.name + ")\n      case $2 in\n" + bash_arms(one) + "      esac\n      ;;\n";
  }
  return text + "  esac\n}\n" + kBashFunction;
}

// ---- zsh

std::string zsh_quoted(const std::string& text) { return "'" + with_escapes(text, "'", "'\\'") + "'"; }

// ":MESSAGE:ACTION" of a value, or nothing.
std::string zsh_action(const OptionRow& row) {
  if (row.value.empty()) return {};
  const std::string message = row.is_positional ? row.names.front() : row.value;
  return ":" + with_escapes(message, ":", "\\") + ":" + values_of(row).zsh;
}

std::string zsh_argument(const OptionRow& row, int place) {
  if (row.is_positional) return zsh_quoted((row.is_repeated ? "*" : std::to_string(place)) + zsh_action(row));
  const std::string rest = "[" + with_escapes(brief(row.description), "[]:\\", "\\") + "]" + zsh_action(row);
  const std::string excluded = row.is_repeated ? "*" : "(" + joined(row.names, " ") + ")";
  const auto spelled = [&](const std::string& name) {
    return row.value.empty() ? name : name + (name.starts_with("--") ? "=" : "+");
  };
  if (row.names.size() == 1) return zsh_quoted(excluded + spelled(row.names.front()) + rest);
  return zsh_quoted(excluded) + "{" + joined(row.names, ",", spelled) + "}" + zsh_quoted(rest);
}

std::string zsh_arguments(const Command& command, const std::string& indent) {
  std::string text;
  int place = 1;
  for (const OptionRow& row : command.rows()) {
    text += indent + zsh_argument(row, place) + " \\\n";
    if (row.is_positional) ++place;
  }
  return text;
}

constexpr const char* kZshModels = R"zsh(
_pointsman_models() {
  local -a names
  names=(${(f)"$(_call_program models pointsman --models 2>/dev/null)"})
  _alternative 'models:model:compadd -a names' 'files:file:_files'
}

_pointsman() {
  local curcontext="$curcontext" state line ret=1
  local -a subcommands
  subcommands=(
)zsh";

constexpr const char* kZshEnd = R"zsh(      esac
      ;;
  esac
  return ret
}

if [[ $funcstack[1] == _pointsman ]]; then
  _pointsman "$@"
else
  compdef _pointsman pointsman
fi
)zsh";

std::string zsh_completion(const Command& program) {
  std::string text =
      "#compdef pointsman\n# zsh completion of pointsman, made by `pointsman --completion zsh`\n";
  text += kZshModels;
  for (const Command& one : program.subcommands)
    text += "    " + zsh_quoted(one.name + ":" + with_escapes(one.description, ":\\", "\\")) + "\n";
  text += "  )\n  _arguments -C -S \\\n" + zsh_arguments(program, "    ") +
          "    '1:subcommand:->subcommand' \\\n    '*::argument:->argument' && ret=0\n"
          "  case $state in\n    subcommand) _describe -t commands subcommand subcommands && ret=0 ;;\n"
          "    argument)\n      case $words[1] in\n";
  for (const Command& one : program.subcommands) {
    if (one.has_own_parser) continue;
    text += "        " + one.name + ")\n          _arguments -S \\\n" + zsh_arguments(one, "            ") +
            "            && ret=0\n          ;;\n";
  }
  return text + kZshEnd;
}

// ---- fish

std::string fish_line(const OptionRow& row, const std::string& condition) {
  const Values values = values_of(row);
  std::string text = "complete -c pointsman -n " + fish_quoted(condition);
  if (row.is_positional) return text + (values.fish_takes_files ? " -F" : "") + values.fish + "\n";
  for (const std::string& name : row.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!row.value.empty()) text += (values.fish_takes_files ? " -r -F" : " -x") + values.fish;
  return text + " -d " + fish_quoted(brief(row.description)) + "\n";
}

std::string fish_completion(const Command& program) {
  std::string text =
      "# fish completion of pointsman, made by `pointsman --completion fish`\ncomplete -c pointsman -f\n";
  for (const OptionRow& row : program.rows()) text += fish_line(row, "__fish_use_subcommand");
  for (const Command& one : program.subcommands) {
    text += "complete -c pointsman -n __fish_use_subcommand -a " + one.name + " -d " +
            fish_quoted(brief(one.description)) + "\n";
  }
  for (const Command& one : program.subcommands) {
    for (const OptionRow& row : one.rows()) text += fish_line(row, "__fish_seen_subcommand_from " + one.name);
  }
  return text;
}

}  // namespace

std::string completion(const Command& program, const std::string& shell) {
  return shell == "bash"  ? bash_completion(program)
         : shell == "zsh" ? zsh_completion(program)
                          : fish_completion(program);
}

}  // namespace pointsman
