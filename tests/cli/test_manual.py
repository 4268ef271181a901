"""The manual page and the shells' completions: made from the program's own tables, so that nothing is missing."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from support import Workspace

COMMANDS = ("denoise", "video", "noise", "compare", "estimate", "methods", "devices", "formats", "cluster", "demo", "manual", "completion")
SHELLS = ("bash", "zsh", "fish")


def cut(line: str) -> list[str]:
    """A command line in words as bash cuts it."""
    return [word for part in line.split(" ") for word in (re.findall(r"[=:]|[^=:]+", part) or [""])] + (
        [""] if re.search(r"[=:]$", line) else [])


class TestManual(Workspace):
    def options(self) -> dict[str, set[str]]:
        """Every option of --help, by command; those of denoise with every method."""
        found: dict[str, set[str]] = {command: set() for command in COMMANDS}
        methods = [line.split()[0] for line in self.done("methods").out.split("\n\n")[0].splitlines()]
        pages = [(command, self.done(command, "--help").out) for command in COMMANDS]
        pages += [("denoise", self.done("--method", method, "--help").out) for method in methods]
        for command, page in pages:
            for line in re.findall(r"^  (-\S+)", page, re.M):
                found[command].update(line.split(","))
        assert len(found["denoise"]) > 40
        return found

    def script(self, shell: str) -> str:
        return self.done("completion", shell).out

    def checked(self, *command: str, given: str = "") -> str:
        """The standard output of another program that must not complain."""
        done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=self.folder, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), command
        return done.stdout

    def needs(self, program: str) -> None:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")

    def test_every_option_is_in_the_manual(self) -> None:
        page = self.done("manual").out.replace("\\-", "-")
        for command, options in self.options().items():
            if command != "denoise":
                assert f"\n.SH \"UNGRAIN {command.upper()}\"\n" in page
            for option in options:
                assert f"\\fB{option}\\fR" in page, command

    def test_every_option_is_completed(self) -> None:
        for shell in SHELLS:
            script = self.script(shell)
            for command, options in self.options().items():
                assert command in script
                for option in options:
                    spelt = option
                    if shell == "fish":
                        spelt = f"-l {option[2:]} " if option.startswith("--") else f"-s {option[1:]} "
                    assert spelt in script, f"{shell} {command}"

    def test_groff_has_no_complaint(self) -> None:
        self.needs("groff")
        text = self.checked("groff", "-ww", "-man", "-Tascii", given=self.done("manual").out)
        text = re.sub(".\b", "", text)  # bold: a letter over itself
        for heading in ("NAME", "SYNOPSIS", "METHODS", "EXIT STATUS", "EXAMPLES"):
            assert heading in text

    def test_man_has_no_complaint(self) -> None:
        self.needs("man")
        self.path("ungrain.1").write_text(self.done("manual").out)
        assert "ungrain" in self.checked("man", "--warnings", "-l", "ungrain.1")

    def test_mandoc_has_no_complaint(self) -> None:
        self.needs("mandoc")
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=self.done("manual").out, text=True,
                              capture_output=True, timeout=60)
        complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
        assert complaints == []

    @pytest.mark.parametrize("shell", SHELLS)
    def test_syntax(self, shell: str) -> None:
        self.needs(shell)
        self.path("script").write_text(self.script(shell))
        self.checked(shell, "-n", "script")

    # ---- what they complete

    def bash(self, line: str) -> set[str]:
        """What a real bash completes at the end of the line."""
        words = cut(line)
        script = ('source ./script\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\nCOMP_LINE="$*"\nCOMP_POINT=${#COMP_LINE}\n'
                  '_ungrain\nprintf "%s\\n" "${COMPREPLY[@]}"\n')
        return set(self.checked("bash", "--norc", "-c", script, "bash", *words).splitlines()) - {""}

    def test_bash(self, subtests: pytest.Subtests) -> None:
        self.needs("bash")
        self.path("script").write_text(self.script("bash"))
        self.path("two words.pgm").write_bytes(b"")
        for line, expected in (("ungrain --met", {"--method"}),
                               ("ungrain --method ", None),
                               ("ungrain --method nlm-", {"nlm-bilateral"}),
                               ("ungrain --method=bilat", {"bilateral"}),
                               ("ungrain -m medi", {"median"}),
                               ("ungrain --device cuda:", {"all"}),
                               ("ungrain --device=cuda:a", {"all"}),
                               ("ungrain --depth u", {"u8", "u16"}),
                               ("ungrain --nonfinite ", {"fill", "keep", "error"}),
                               ("ungrain --alpha ", {"yes", "no"}),
                               ("ungrain --channels gray", {"gray", "gray-alpha"}),
                               ("ungrain --compression=l", {"lzw", "lzma"}),
                               ("ungrain --prof", {"--profile"}),
                               ("ungrain --method nlm --prof", set()),
                               ("ungrain --method=bilateral --sigma-r", {"--sigma-range"}),
                               ("ungrain --sigma-r", set()),
                               ("ungrain --profile f", {"fast"}),
                               ("ungrain --profile=d", {"dabov2007"}),
                               ("ungrain --preset ", {"paper-002"}),
                               ("ungrain denoise --met", {"--method"}),
                               ("ungrain est", {"estimate"}),
                               ("ungrain gr", {"gray.pgm"}),
                               ("ungrain two", {"two words.pgm"}),
                               ("ungrain gray.pgm -o col", {"colour.ppm"}),
                               ("ungrain gray.pgm --threads ", set()),
                               ("ungrain gray.pgm -q col", {"colour.ppm"}),
                               ("ungrain -- col", {"colour.ppm"}),
                               ("ungrain --vers", {"--version"}),
                               ("ungrain noise gray.pgm --gau", {"--gaussian"}),
                               ("ungrain noise --met", set()),
                               ("ungrain methods bm", {"bm3d", "bm4d"}),
                               ("ungrain cluster --sched", {"--scheduler"}),
                               ("ungrain cluster -m nlm --patch-", {"--patch-sigma"}),
                               ("ungrain cluster --profile f", {"fast"}),
                               ("ungrain cluster g", {"gray.pgm"}),
                               ("ungrain completion ", set(SHELLS)),
                               ("ungrain compare g", {"gray.pgm"}),
                               ("ungrain devices ", set())):
            with subtests.test(line=line):
                found = self.bash(line)
                if expected is None:
                    assert "bm3d" in found
                    assert len(found) >= 8
                else:
                    assert found == expected

    def test_fish(self, subtests: pytest.Subtests) -> None:
        self.needs("fish")
        self.path("script").write_text(self.script("fish"))
        for line, expected in (("ungrain --met", {"--method"}),
                               ("ungrain --method nlm-", {"nlm-bilateral"}),
                               ("ungrain --depth u", {"u8", "u16"}),
                               ("ungrain --prof", {"--profile"}),
                               ("ungrain --method nlm --prof", set()),
                               ("ungrain --method=bilateral --sigma-r", {"--sigma-range"}),
                               ("ungrain --profile f", {"fast"}),
                               ("ungrain est", {"estimate"}),
                               ("ungrain noise --gau", {"--gaussian"}),
                               ("ungrain cluster --sched", {"--scheduler"}),
                               ("ungrain cluster -m nlm --patch-", {"--patch-sigma"}),
                               ("ungrain methods bm", {"bm3d", "bm4d"}),
                               ("ungrain completion ", set(SHELLS))):
            with subtests.test(line=line):
                done = subprocess.run(["fish", "--no-config", "-c", f'source ./script; complete -C "{line}"'],
                                      capture_output=True, text=True, cwd=self.folder, timeout=60,
                                      env={"HOME": str(self.folder), "PATH": "/usr/local/bin:/usr/bin:/bin"})
                found = {found.split("\t")[0] for found in done.stdout.splitlines()}
                assert found == expected, done.stderr

    def test_zsh(self, subtests: pytest.Subtests) -> None:
        """In a terminal of zsh's own, as a user has it."""
        self.needs("zsh")
        self.path("functions").mkdir()
        self.path("functions/_ungrain").write_text(self.script("zsh"))
        script = """
zmodload zsh/zpty || exit 3
zpty shell zsh -f -i
zpty -w shell 'PS1=; PS2=; unsetopt zle_bracketed_paste 2>/dev/null; stty cols 500 2>/dev/null; COLUMNS=500'
zpty -w shell 'fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D'
zpty -w shell 'show() { print -r "BUFFER<$BUFFER>" }; zle -N show; bindkey "^X" show; print READY-FOR-IT'
zpty -r -m shell line '*READY-FOR-IT*READY-FOR-IT*'
zpty -w -n shell "$1"$'\\t\\x18'
for i in {1..100}; do
  sleep 0.05
  while zpty -r -t shell line; do print -rn -- "$line"; seen+=$line; done
  [[ $seen != *'BUFFER<'*'>'* ]] || break
done
zpty -d shell
"""
        for line, expected in (("ungrain --met", "--method"), ("ungrain --method nlm-", "nlm-bilateral"),
                               ("ungrain --prof", "--profile"), ("ungrain -m bilateral --sigma-r", "--sigma-range"),
                               ("ungrain est", "estimate"), ("ungrain noise --gau", "--gaussian"),
                               ("ungrain cluster --sched", "--scheduler"),
                               ("ungrain cluster -m nlm --patch-", "--patch-sigma"),
                               ("ungrain methods bm3", "bm3d"), ("ungrain gray.p", "gray.pgm")):
            with subtests.test(line=line):
                done = subprocess.run(["zsh", "-f", "-c", script, "zsh", line], capture_output=True, text=True,
                                      cwd=self.folder, timeout=60)
                if done.returncode == 3:
                    pytest.skip("this zsh has no zpty")
                line_now = re.search(r"BUFFER<ungrain ([^>]*)>", done.stdout)
                assert line_now is not None, done.stdout + done.stderr
                assert expected in line_now[1]

    def test_usage(self) -> None:
        for arguments in (("completion",), ("completion", "tcsh")):
            result = self.run_here(*arguments)
            assert result.code == 2
            assert re.search(r"\Aungrain: completion takes one of bash, zsh, fish, got [^\n]*\n\Z", result.err)
