"""Reads the checks in a text: commands in code spans, or commands alone.

A text that could be a command or a sentence does not run. It is a problem that
backticks solve.
"""

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.process.command_folder import in_folder, split_folder
from cdd_agent.tickets.markdown import CodeSpan, code_spans, without_checkbox

_PROGRAMS_TEXT = """
ansible-lint ant autopep8 awk bandit bash bats bazel behave black buf bun bundle
bunx busted cabal cargo cat cmake cmp composer coverage cppcheck ctest curl cypress
dart deno detekt diff django-admin docker docker-compose dotnet echo elixir eslint
find flake8 flutter gcc g++ clang git gitleaks go gofmt golangci-lint gradle gradlew
grep hadolint head helm isort java javac jest jq julia just ktlint kubectl lein
lint-imports ls lua luacheck make markdownlint maven meson mix mkdocs mocha mvn mvnw
mypy ng nim ninja node nosetests nox npm npx nx nyc ocaml opam pdm perl phpstan php
phpunit pint pip pip3 pipenv pixi pnpm poetry pre-commit prettier prove psalm psql
pwd pyflakes pylint pyre pyright pytest python python2 python3 rails rake rebar3 rg
rspec rubocop ruby ruff rustc rustfmt sbt scala sed semgrep sh shellcheck shfmt
sphinx-build sqlfluff sqlite3 stylelint swift swiftlint tail task terraform test
tofu tox trivy tsc tsx ts-node turbo twine unittest uv uvx vale vite vitest vue-tsc
wc xcodebuild yamllint yarn zig zsh
"""
_PROGRAMS = frozenset(_PROGRAMS_TEXT.split())
_TOOLS_TEXT = """
bash bun cabal cargo composer curl dart deno docker docker-compose dotnet elixir flutter
gcc git go gradle helm java jq julia kubectl lua maven node npm npx nx ocaml pdm perl
php pip pip3 pipenv pixi pnpm poetry psql python python2 python3 rails ruby sbt scala
sh sqlite3 swift terraform turbo uv uvx vite yarn zig zsh
"""
_TOOLS = frozenset(_TOOLS_TEXT.split())
_SENTENCE_WORDS_TEXT = """
after an and appears are as at be before both but by can contains correctly each
every exists exit exits fail fails for from gives green has have how if in into
is it its must no not of on or output outputs pass passes print prints reports
returns runs should show shows so still succeed succeeds sure that the their them
then there these they this those to until using when where which while will
with without work works you your
"""
_SENTENCE_WORDS = frozenset(_SENTENCE_WORDS_TEXT.split())
_NO_CHECK = Pattern(
    r"""
    (?: none (?:\s(?:needed|required|necessary))? | n/?a | nil | no | [-–—]+
      | nothing (?:\sto\s(?:check|test|verify|run))?
      | not\s (?:applicable|needed|required|necessary)
      | (?:no|without)\s (?:(?:automated|automatic|unit|additional|further|new)\s)*
        (?:tests?|checks?|testing|verification|command)
        (?:\s(?:is\s|are\s)? (?:needed|required|necessary|possible|applicable|yet))?
      | manual (?:ly)?
        (?:\s(?:tests?|testing|checks?|checking|verification|inspection|review|qa))?
        (?:\s(?:in|by|via|with|on|of)\b[^`]*)?
      | by\shand
    )
    [.!]? \s* (?: [(–—:,;-] .* )?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_UNSPECIFIED = Pattern(
    r"(?:none specified|not specified|unspecified|tbd|todo)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_STRUCK = Pattern(r"~~.+~~[.,;]?", re.DOTALL)
_EMPHASIS = Pattern(r"(\*\*|__|\*|_)(.+)\1")
_RUN = Pattern(
    r"\W*(?:(?:please|then|first|now|also)\s+)*(?:re-?run|run|execute|running|use)?"
    r"(?:\s+the\s+(?:command|tests?|check))?(?:\s+with)?\W*",
    re.IGNORECASE,
)
_RUN_PREFIX = Pattern(r"^(?:re-?run|run|execute)\s*:?\s+", re.IGNORECASE)
_JOIN = Pattern(
    r"\W*(?:(?:and|then|or|plus|also|finally|run)\W*)*", re.IGNORECASE | re.DOTALL
)
_AFTER = Pattern(
    r"\W*(?:(?:must|should|has to|have to|both|all|and)\s+)*(?:pass|passes|succeed"
    r"|succeeds|is green|are green|works?)?\W*",
    re.IGNORECASE,
)
_EXPECTED = Pattern(r"\W*expect\w*\b", re.IGNORECASE)
_FAILURE = Pattern(
    r"\W*expect\w*\W+(?:\w+\s+){0,3}?(?:fail\w*|errors?|red|no match\w*|not found"
    r"|nothing|non-?zero|exit code [1-9])\b",
    re.IGNORECASE,
)
_SHELL_SIGNS = Pattern(r"[|;<>`]|&&|\$\(")
_QUOTED = Pattern(r"'[^']*'|\"[^\"]*\"")
_NO_CHECKERS = frozenset(
    ("cat", "cmp", "echo", "find", "git", "head", "ls", "pwd", "tail")
)
_NO_CHECK_WORDS = Pattern(
    r"\s(?:install|add|ci|start|dev|serve|watch|up|init|create|new|migrate|upgrade|sync)"
    r"(?:\s|$)|^(?:dotnet|cargo|go|deno|bun)\s+run\b|\s--watch\b"
)
_ASSIGNMENT = Pattern(r"[A-Za-z_]\w*=\S*")
_SCRIPT = Pattern(r"(?:\./|\.\\).+|[\w./\\-]+\.(?:sh|bash|bat|cmd|ps1)")
_SOURCE_FILE = Pattern(
    r"[^\s`]*[/\w]\.(?:py|[cm]?[jt]sx?|go|rs|java|kt|rb|php|cs|swift|sh)(?:::\S+)?"
    r"|\S+::\S+"
)
_FLAG = Pattern(r"--?[A-Za-z][\w-]*(?:=\S*)?")
_SHELL_LANGUAGES = frozenset(
    {"", "bash", "sh", "shell", "console", "zsh", "text", "terminal", "powershell"}
)


class CheckText(Struct, frozen=True):
    commands: tuple[str, ...] = ()
    is_none: bool = False
    has_prose: bool = False
    problem: str = ""
    """Why the text is unreadable: completes a sentence that begins with the text."""


def read_check(text: str) -> CheckText:
    """Read a line, list item or table cell about checking a step."""
    text = without_checkbox(text)
    if _STRUCK.fullmatch(text):
        return CheckText(has_prose=True)
    spans = code_spans(text)
    if not spans:
        emphasis = _EMPHASIS.fullmatch(text)
        return _read_plain(emphasis[2].strip() if emphasis else text)
    if len(spans) == 1 and (spans[0].start, spans[0].end) == (0, len(text)):
        return _to_checks([spans[0].text])
    if _EXPECTED.match(text):
        return CheckText(has_prose=True)
    return _read_spans(text, spans)


def read_commands(language: str, lines: Sequence[str]) -> CheckText | None:
    """Read a code block, one command a line; None for other languages.

    If some lines have a prompt (`$ make`), the others are output.
    """
    if language.split(" ")[0] not in _SHELL_LANGUAGES:
        return None
    joined = "\n".join(lines).replace("\\\n", " ")
    written = [line.strip() for line in joined.split("\n")]
    commands = [line for line in written if line and not line.startswith("#")]
    if any(line.startswith("$ ") for line in commands):
        commands = [line[2:].strip() for line in commands if line.startswith("$ ")]
    return _to_checks(commands)


def is_check_command(text: str) -> bool:
    """True if the command can decide about a step: it checks something, ends, and needs
    no shell.
    """
    text = split_folder(text)[1]
    words = text.split()
    if not is_command(text) or _quoting_problem([text]):
        return False
    is_checker = words[0] not in _NO_CHECKERS and not _NO_CHECK_WORDS.search(text)
    return is_checker and not needs_shell(text)


def needs_shell(text: str) -> bool:
    """True for pipes, redirections, variables, or a `cd` other than a leading one."""
    text = split_folder(text)[1]
    first = text.split()[0]
    has_signs = _SHELL_SIGNS.search(_QUOTED.sub("x", text)) is not None
    return has_signs or first == "cd" or _ASSIGNMENT.fullmatch(first) is not None


def split_chain(text: str) -> list[str]:
    """Split `make a && make b`, of which all must pass. A leading folder applies to
    each command. A chain that changes the folder later stays whole.
    """
    folder, chain = split_folder(text)
    parts = [part.strip() for part in chain.split("&&")]
    is_moved = any(part.split()[:1] == ["cd"] for part in parts)
    is_quoted = "&&" in "".join(_QUOTED.findall(chain))
    if is_moved or is_quoted or not all(parts):
        return [text]
    return [in_folder(folder, part) for part in parts]


def expects_failure(text: str) -> bool:
    """True for a line such as "Expected: FAIL": the command above it is no check of the
    finished step.
    """
    return _FAILURE.match(text) is not None


def is_expectation(text: str) -> bool:
    return _EXPECTED.match(text) is not None


def is_command(text: str) -> bool:
    """True if the text begins with a known program or a script."""
    return _is_program(_find_program(split_folder(text)[1].split()))


def is_tool_name(text: str) -> bool:
    """True for a program that is useless without arguments, such as `go`: alone, its
    name means a language or tool.
    """
    return text in _TOOLS


def _read_spans(text: str, spans: Sequence[CodeSpan]) -> CheckText:
    """If the words only join the spans, each span is a command; otherwise only those
    that look like one.
    """
    commands = [span.text.strip() for span in spans]
    starts = [0, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), len(text)]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    has_prose = not all(map(_is_filling, words))
    if has_prose:
        commands = [command for command in commands if _looks_like_command(command)]
    if commands:
        return _to_checks(commands, has_prose=has_prose)
    for span in spans:
        if _SOURCE_FILE.fullmatch(span.text.strip()):
            problem = f"names `{span.text}` and no command that checks it"
            return CheckText(has_prose=True, problem=problem)
    return CheckText(is_none=_NO_CHECK.fullmatch(text) is not None, has_prose=True)


def _read_plain(text: str) -> CheckText:
    if not text or _UNSPECIFIED.fullmatch(text):
        return CheckText()
    if _NO_CHECK.fullmatch(text):
        return CheckText(is_none=True)
    command = _RUN_PREFIX.sub("", text.removeprefix("$ "), count=1).strip()
    if text.startswith("$ "):
        return _to_checks([command])
    words = _split_words(split_folder(command)[1])
    program = _find_program(words)
    if _reads_as_sentence(words):
        return CheckText(has_prose=True, problem=_sentence_problem(program))
    has_flags = program.islower() and any(map(_FLAG.fullmatch, words))
    if _is_program(program) or has_flags:
        return _to_checks([command])
    problem = ""
    if program.rstrip(",.;:") in _PROGRAMS:
        problem = "is a list of commands; put each of them into backticks"
    return CheckText(has_prose=True, problem=problem)


def _sentence_problem(first_word: str) -> str:
    if not _is_program(first_word):
        return ""
    return (
        f"begins with the program `{first_word}` and reads as a sentence; put a"
        " command into backticks, or begin with another word"
    )


def _to_checks(commands: Sequence[str], *, has_prose: bool = False) -> CheckText:
    written = tuple(command for command in commands if command.strip())
    problem = _quoting_problem(written)
    return CheckText(written, has_prose=has_prose, problem=problem)


def _looks_like_command(text: str) -> bool:
    words = text.split()
    has_flags = any(map(_FLAG.fullmatch, words[1:])) and words[0].islower()
    return is_command(text) or has_flags


def _is_program(word: str) -> bool:
    return word in _PROGRAMS or _SCRIPT.fullmatch(word) is not None


def _find_program(words: Sequence[str]) -> str:
    """Skips variables such as `CI=1`."""
    for word in words:
        if not _ASSIGNMENT.fullmatch(word):
            return word
    return ""


def _reads_as_sentence(words: Sequence[str]) -> bool:
    arguments = [word.strip(".,;:!?()").lower() for word in words[1:]]
    # a final `a` may be an argument
    if "a" in arguments[:-1] or not _SENTENCE_WORDS.isdisjoint(arguments):
        return True
    if any(word.endswith((",", ";")) for word in words):
        return len(words) > 1
    return len(words) > 1 and re.search(r"[A-Za-z][.!?]$", words[-1]) is not None


def _split_words(text: str) -> list[str]:
    return re.findall(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"]|['\"])+", text)


def _is_filling(words: str) -> bool:
    patterns = (_RUN, _JOIN, _AFTER)
    return any(pattern.fullmatch(words) for pattern in patterns)


def _quoting_problem(commands: Sequence[str]) -> str:
    for command in commands:
        try:
            shlex.split(command)
        except ValueError:
            return f"has a quote that does not end: `{command}`"
    return ""
