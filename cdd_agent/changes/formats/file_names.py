"""Recognises file names, and the languages that fit them.

The lists are guesses. They decide only about names that project, task and reply do not
identify (`project_names.py`).
"""

import re
import unicodedata
from enum import IntEnum
from pathlib import PurePosixPath

from cdd_agent.pattern import Pattern


def _split(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


BARE_NAMES = _split(
    "Makefile Dockerfile Containerfile Procfile Jenkinsfile Gemfile Rakefile Podfile"
    " Fastfile Vagrantfile Justfile",
    "justfile Pipfile Brewfile Caddyfile Tiltfile Earthfile Snakefile Berksfile gradlew"
    " mvnw crontab CODEOWNERS",
    "LICENSE README CHANGELOG VERSION NOTICE AUTHORS WORKSPACE BUILD GNUmakefile"
    " BSDmakefile Doxyfile Dangerfile",
    "Guardfile Capfile Cartfile Mintfile Appfile Matchfile Puppetfile Steepfile"
    " Thorfile Cakefile Gruntfile Taskfile",
    "Pluginfile Deliverfile Scanfile Snapfile Gymfile Lakefile Modulefile Pulumifile"
    " Kptfile Singularityfile Logfile",
    "SConstruct SConscript wscript Kconfig Kbuild BUCK OWNERS meson.build"
    " meson.options",
)
"""File names without folder or suffix."""
_LIBRARIES = _split("node vue next nuxt react express three d3 chart")
WORDS = _split("README CHANGELOG VERSION NOTICE AUTHORS WORKSPACE BUILD") | {
    f"{name}.js" for name in _LIBRARIES
}
"""File names that are also words of headings."""
_NO_PATHS = {"asp.net", "vb.net", *(f"{name.capitalize()}.js" for name in _LIBRARIES)}
_SUFFIXES = {
    **dict.fromkeys(("python", "py", "python3"), "py pyi pyw"),
    **dict.fromkeys(("javascript", "js", "jsx"), "js mjs cjs jsx"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "ts mts cts tsx"),
    **dict.fromkeys(("yaml", "yml"), "yaml yml"),
    **dict.fromkeys(("markdown", "md"), "md markdown mdx"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "sh bash zsh"),
    **dict.fromkeys(("console", "shell-session", "shellsession", "output"), ""),
    "json": "json",
    "toml": "toml",
    "html": "html htm",
    "css": "css",
    "sql": "sql",
    "rust": "rs",
    "go": "go",
    "java": "java",
    "kotlin": "kt kts",
    "ruby": "rb",
    "php": "php",
    "c": "c h",
    "cpp": "cpp cc cxx hpp h hh",
    "csharp": "cs",
    "swift": "swift",
    "xml": "xml svg",
    "ini": "ini cfg conf",
    "powershell": "ps1",
    "log": "log",
}
"""Suffixes by language."""
SHELLS = _split("bash sh shell zsh")
_PLAIN = _split("text txt plaintext plain")
_DATA = _split("md markdown mdx log ini cfg conf json toml yaml yml xml svg html htm")
_CODE = _split(*_SUFFIXES.values()) - _DATA
_ALL_SUFFIXES = (
    _CODE
    | _DATA
    | _split(
        "txt rst adoc org env lock proto graphql gql tf tfvars hcl vue svelte astro"
        " scss sass less styl dart lua r",
        "rmd qmd pl pm ex exs erl hrl hs elm purs ml mli scala sbt clj cljs cljc edn"
        " groovy gradle zig nim nix jl m",
        "mm vb fs fsx f90 asm s sv svh vhd vhdl v cu cuh wgsl glsl hlsl wat tcl rkt csv"
        " tsv jsonl ndjson json5 jsonc",
        "geojson avsc webmanifest bat cmd fish awk sed tex bib ipynb j2 jinja jinja2"
        " mako tmpl tpl template example",
        "sample dist properties xsd xsl xslt plist desktop service timer rego cue dhall"
        " bzl bazel cmake mk mod sum",
        "gemspec rake ru jbuilder podspec csproj sln props targets patch diff po pot"
        " prisma sol http feature puml mmd",
        "ejs hbs erb haml slim pug njk liquid pyx pxd pth typed in spec cff ac am m4"
        " lockb resolved",
        "editorconfig cabal opam rockspec nimble ipkg asd rosinstall gyp gypi gni gn"
        " pri pro qbs pc pkl gs",
        "code-workspace sublime-project iml nuspec vcxproj fsproj vbproj xcconfig"
        " pbxproj entitlements",
        "flowconfig gpr adb ads scm lisp el vim fnl",
    )
)
"""Suffixes that make a word a file name, unlike those of `os.path` and `example.com`.
"""
_PATH = Pattern(r"[\w.@+\[\](){}$~-]+(?:[/\\][\w.@+\[\](){}$~ -]+)*")
_SUFFIX = Pattern(r"\.[A-Za-z][\w-]{0,14}$")


_CAPTIONS = _split(
    "after answer api backend bash batch before client code command commands config"
    " configuration console contents curl diff",
    "error errors example examples expected explanation fixme fix frontend how"
    " important info input json key log logs",
    "new note notes now old optional options or output prompt python query request"
    " response result results run sample",
    "also and add approach become becomes by change changed checks current for"
    " from if in instead into is",
    "of original previous replace see show to update updated updates was with",
    "finally first here implementation installation layout like next running so",
    "structure thus verification server setup shell snippet solution sql step steps"
    " summary syntax terminal",
    "test testing tests text then tip title toml tree types usage use warning why yaml",
)
"""Words above blocks that are not files."""
_BEGINNINGS = _split(
    "add also and at change changes create edit file for from here here's in modify",
    "new next now of our replace",
    "see show the their then this to update updated your",
)
"""Words before a name in a caption: `For app.py`, `Changes to the app.py`."""
_OPTIONS = Pattern(
    r"(?:no-)?(?:line-?numbers|collapsed-lines|v-pre|wrap|copy|highlight|run)(?:[={"
    r" ].*)?",
    re.IGNORECASE,
)
"""Options of code viewers, after the language."""
_ABSOLUTE = Pattern(
    r"[A-Za-z]:[\\/]|[\\/]|~[\w.-]*(?:[\\/]|$)|file:/|\$\{?HOME\}?/|%\w+%[\\/]",
    re.IGNORECASE,
)
_SYSTEM_PATH = Pattern(
    r"[A-Za-z]:[\\/]\w|[\\/]{2}[\w.]|~|(?i:file:/)|\$\{?HOME|%\w+%"
    r"|[\\/](?:bin|boot|dev|etc|home|lib|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr"
    r"|var|Applications|Library|Users"
    r"|Volumes|Windows)[\\/]"
)
"""Absolute paths, except addresses on a web server such as `/users`."""


_LANGUAGES = (
    _CODE
    | _DATA
    | _PLAIN
    | SHELLS
    | _split(
        *_SUFFIXES,
        "actionscript ada apache applescript asciidoc asm assembly awk batch bat bibtex"
        " c# c++ clojure cmake",
        "cobol cmd coffeescript common-lisp conf crystal csv cuda cython d dart delphi"
        " diff django docker",
        "dockerfile dos dot dotenv elixir elm erlang f# fish fortran fsharp gherkin git"
        " gitignore glsl go-mod",
        "golang gradle graphql groovy handlebars haskell hcl hocon http hlsl idris"
        " jinja jinja2 jsonc json5 jsonl",
        "jsx julia julia-repl just justfile latex less lean lisp liquid lua make"
        " makefile matlab mermaid meson",
        "mysql nasm nginx nim nix objc objective-c ocaml org pascal patch pgsql perl"
        " plantuml plpgsql plsql",
        "postgres postgresql prisma procfile prolog promql properties proto protobuf"
        " ps1 pug puppet purescript",
        "pwsh py3 qml r racket raku rb re reason regex requirements rescript rst ruby"
        " sass scala scheme scss",
        "shell-session smalltalk solidity starlark bazel styl stylus svelte"
        " systemverilog tcl terraform tex tf",
        "thrift tsv twig udiff v vala vb vb.net verilog vhdl vim viml vimscript vue"
        " wasm wat webidl wgsl yacc zig",
    )
)
"""First words of an info string."""


class Grade(IntEnum):
    """Likeness of a text to a file name."""

    NONE = 0
    WORD = 1
    """A word, as in a title."""
    NAME = 2
    """Perhaps the name of something else: `os.path`, `NEWS`, `and/or`."""
    FILE = 3


def grade_name(text: str, language: str = "") -> Grade:
    if is_absolute(text):
        relative = re.sub(r"^[\\/]+", "", text)
        is_certain = _SYSTEM_PATH.match(text) or names_file(relative, language)
        return Grade.FILE if is_certain else Grade.NAME
    if _OPTIONS.fullmatch(text):
        return Grade.NONE
    if not _looks_like_a_path(text):
        return Grade.NAME if _is_odd_name(text) else Grade.NONE
    if names_file(text, language):
        return Grade.NAME if text in WORDS else Grade.FILE
    return _grade_word(text)


def _grade_word(text: str) -> Grade:
    if text.startswith(("-", "@")) or "(" in text or not any(map(str.isalpha, text)):
        return Grade.NONE
    if is_in_capitals(text) or re.search(r"[./\\]|\w[-_]\w|[a-z][A-Z]", text):
        return Grade.NAME
    return Grade.WORD


def _is_odd_name(text: str) -> bool:
    """True for names with unusual characters: `Q&A.md`."""
    suffix = _SUFFIX.search(text)
    if suffix is None or suffix[0][1:].lower() not in _ALL_SUFFIXES:
        return False
    return not re.search(r"[\s:`|<>*?]|[/\\]$", text)


def is_in_capitals(text: str) -> bool:
    """True for `NEWS` or `LICENSE-MIT`."""
    return re.fullmatch(r"[A-Z][A-Z0-9]+(?:[-_.][A-Za-z0-9]+)*", text) is not None


def is_caption(text: str) -> bool:
    """True for a word about the block, such as `Example` or `Output`."""
    return text.casefold() in _CAPTIONS


def is_absolute(text: str) -> bool:
    """True for an absolute path, in the spelling of any system."""
    if text.startswith(("/*", "//*")) or not text.strip("/\\"):
        return False
    return _ABSOLUTE.match(text) is not None


def is_in_language(language: str, path: str) -> bool:
    """True if the suffix or the name fits the language: `Dockerfile`, `.env`."""
    suffix = PurePosixPath(path).suffix.lstrip(".").lower()
    if not language:
        return False
    if suffix:
        return suffix == language or suffix in _SUFFIXES.get(language, "").split()
    return _base_name(path).lower().lstrip(".") in (language, f"{language}file")


def without_beginning(phrase: str) -> str:
    """Return the file of a caption such as `For app.py`, or the whole phrase."""
    words = phrase.split(" ")
    start = len(words) - 1
    while start > 0 and not _precedes_name(words[start - 1]):
        start -= 1
    if start == 0:
        return phrase
    name = " ".join(words[start:])
    return name if names_file(name) or is_spaced(name) else phrase


def _precedes_name(word: str) -> bool:
    is_number = not word.strip("0123456789.")
    return is_number or word.endswith("ing") or word.casefold() in _BEGINNINGS


def is_code(language: str) -> bool:
    """In a programming language, `a.b` is an attribute."""
    return bool(set(_SUFFIXES.get(language, "").split()) & _CODE)


def _looks_like_a_path(text: str) -> bool:
    letters = "".join(
        char for char in text if not unicodedata.category(char).startswith("M")
    )
    if text in _NO_PATHS or "://" in text or not _PATH.fullmatch(letters):
        return False
    return not re.fullmatch(r"v?\d+(?:\.\d+)*\w*", text) and not text.endswith(
        ("/", "\\")
    )


def is_path(text: str) -> bool:
    """True if the text has a folder or a suffix, or is in `BARE_NAMES`."""
    if text in BARE_NAMES:
        return True
    if not _looks_like_a_path(text.removeprefix("/")):
        return False
    name = _base_name(text)
    if name in BARE_NAMES or _SUFFIX.search(name):
        return True
    return "/" in text and not name.isdigit() and " " not in text


def names_file(text: str, language: str = "") -> bool:
    """True for a clear path, unlike `Input/Output` and `os.path`."""
    name = _base_name(text)
    if not is_path(text) or name in BARE_NAMES:
        return is_path(text)
    suffix = _SUFFIX.search(name)
    if suffix is None:
        return False
    if name != text or name.startswith("."):
        return True
    suffix_name = suffix[0][1:].lower()
    if suffix_name in _ALL_SUFFIXES or suffix_name == language:
        return True
    return name.partition(".")[0] in BARE_NAMES


def is_spaced(text: str) -> bool:
    if " " not in text or " " in PurePosixPath(text).suffix:
        return False
    return names_file(text.replace(" ", "_"))


def is_language(word: str) -> bool:
    return word.lower() in _LANGUAGES


def fits(language: str, path: str) -> bool:
    """True if a block in a language can be this file. Shell commands, for example,
    cannot be a Python file.
    """
    name = PurePosixPath(path.replace("\\", "/"))
    suffix = name.suffix.lstrip(".").lower()
    if language in _PLAIN:
        return suffix not in _CODE
    if language in SHELLS and not suffix:
        return name.name not in BARE_NAMES
    suffixes = _SUFFIXES.get(language)
    if suffixes is None or not suffix:
        return suffixes != ""
    if suffix in suffixes.split():
        return True
    return language not in SHELLS and suffixes != ""


def _base_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
