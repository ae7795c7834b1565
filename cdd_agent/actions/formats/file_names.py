"""What files are called: whether a text is a file's path, and whether a block in some language can be that file."""

import re
import unicodedata
from pathlib import PurePosixPath


def _split(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


BARE_NAMES = _split(
    "Makefile Dockerfile Containerfile Procfile Jenkinsfile Gemfile Rakefile Podfile Fastfile Vagrantfile Justfile",
    "justfile Pipfile Brewfile Caddyfile Tiltfile Earthfile Snakefile Berksfile gradlew mvnw crontab CODEOWNERS",
    "LICENSE README CHANGELOG VERSION NOTICE AUTHORS WORKSPACE BUILD",
)
"""Names that need neither a folder nor a suffix."""
_LIBRARIES = _split("node vue next nuxt react express three d3 chart")
WORDS = _split("README CHANGELOG VERSION NOTICE AUTHORS WORKSPACE BUILD") | {f"{name}.js" for name in _LIBRARIES}
"""Names of files that are words of headings, too."""
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
"""What files in a language are called, for those that models use; of any other language nothing is known."""
SHELLS = _split("bash sh shell zsh")
_PLAIN = _split("text txt plaintext plain")
_DATA = _split("md markdown mdx log ini cfg conf json toml yaml yml xml svg html htm")
_CODE = _split(*_SUFFIXES.values()) - _DATA
_KNOWN = (
    _CODE
    | _DATA
    | _split(
        "txt rst adoc org env lock proto graphql gql tf tfvars hcl vue svelte astro scss sass less styl dart lua r",
        "rmd qmd pl pm ex exs erl hrl hs elm purs ml mli scala sbt clj cljs cljc edn groovy gradle zig nim nix jl m",
        "mm vb fs fsx f90 asm s sv svh vhd vhdl v cu cuh wgsl glsl hlsl wat tcl rkt csv tsv jsonl ndjson json5 jsonc",
        "geojson avsc webmanifest bat cmd fish awk sed tex bib ipynb j2 jinja jinja2 mako tmpl tpl template example",
        "sample dist properties xsd xsl xslt plist desktop service timer rego cue dhall bzl bazel cmake mk mod sum",
        "gemspec rake ru jbuilder podspec csproj sln props targets patch diff po pot prisma sol http feature puml mmd",
        "ejs hbs erb haml slim pug njk liquid pyx pxd pth typed in",
    )
)
"""Suffixes by which a name without a folder is a file's: `os.path` and `example.com` are none."""
_PATH = re.compile(r"[\w.@+\[\](){}$~-]+(?:[/\\][\w.@+\[\](){}$~ -]+)*")
_SUFFIX = re.compile(r"\.[A-Za-z][\w-]{0,14}$")


def is_path(text: str) -> bool:
    """Whether a text looks like a file's path: with a folder or a suffix, or one of the names that need none."""
    if text in BARE_NAMES:
        return True
    letters = "".join(char for char in text if not unicodedata.category(char).startswith("M")).removeprefix("/")
    if text in _NO_PATHS or "://" in text or not _PATH.fullmatch(letters):
        return False
    if re.fullmatch(r"v?\d+(?:\.\d+)*\w*", text) or text.endswith(("/", "\\")):
        return False
    name = _last(text)
    return name in BARE_NAMES or bool(_SUFFIX.search(name)) or ("/" in text and not name.isdigit() and " " not in text)


def names_file(text: str, language: str = "") -> bool:
    """Whether it is a file's path and can hardly be anything else, as `Input/Output` and `os.path` can."""
    name = _last(text)
    if not is_path(text) or name in BARE_NAMES:
        return is_path(text)
    suffix = _SUFFIX.search(name)
    if suffix is None:
        return False
    is_known = suffix[0][1:].lower() in _KNOWN | {language} or name.partition(".")[0] in BARE_NAMES
    return is_known or name != text or name.startswith(".")


def is_spaced(text: str) -> bool:
    """Whether it is the name of a file with spaces before its suffix."""
    return " " in text and " " not in PurePosixPath(text).suffix and names_file(text.replace(" ", "_"))


def is_language(word: str) -> bool:
    return word.lower() in _SUFFIXES


def fits(language: str, path: str) -> bool:
    """Whether a block in a language can be this file: commands below a file's name are not the file."""
    name = PurePosixPath(path.replace("\\", "/"))
    suffix = name.suffix.lstrip(".").lower()
    if language in _PLAIN:
        return suffix not in _CODE
    if language in SHELLS and not suffix:
        return name.name not in BARE_NAMES
    if language not in _SUFFIXES or not suffix:
        return _SUFFIXES.get(language) != ""
    return suffix in _SUFFIXES[language].split() or (language not in SHELLS and bool(_SUFFIXES[language]))


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
