"""File formats that a parser can check, recognised by name, first line or content."""

import re
from enum import Enum, auto
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePosixPath

from cdd_agent.pattern import Pattern


class FileKind(Enum):
    JSON = auto()
    COMMENTED_JSON = auto()
    """JSON with comments and trailing commas, up to JSON5."""
    JSON_LINES = auto()
    """A JSON value on each line."""
    NOTEBOOK = auto()
    PYTHON = auto()
    TOML = auto()
    YAML = auto()
    """Includes files that may be JSON, which is almost always valid YAML."""


NAMES: tuple[tuple[FileKind | None, str], ...] = (
    (
        FileKind.COMMENTED_JSON,
        """*.jsonc *.json5 *.hujson *.code-workspace *.code-snippets *.yy *.yyp
        *.sublime-build *.sublime-color-scheme *.sublime-commands *.sublime-completions
        *.sublime-keymap *.sublime-menu *.sublime-mousemap *.sublime-project
        *.sublime-settings *.sublime-theme
        .vscode/*.json .zed/*.json .devcontainer/*.json devcontainer*.json
        tsconfig*.json *.tsconfig.json jsconfig*.json tsdoc.*json typedoc.*json
        tslint.*json api-extractor.*json biome.*json deno.*json bun.lock turbo.*json
        nx.json angular.*json rush.json wrangler.*json knip.json .knip.json dprint.json
        .dprint.json renovate.json .renovaterc .renovaterc.json babel.config.json
        .babelrc .babelrc.json .swcrc .parcelrc .eslintrc .eslintrc.json .oxlintrc.json
        .jshintrc .jscsrc .jsbeautifyrc .hintrc .ember-cli firebase.json
        language-configuration.json pyrightconfig.*json cspell.*json .cspell.*json
        .markdownlint.*json .mocharc.json .luarc.json appsettings.*json
        launchsettings.json global.json""",
    ),
    (
        FileKind.JSON,
        """*.json *.geojson *.topojson *.webmanifest *.jsonld *.importmap *.avsc *.har
        *.gltf *.tfstate *.arb *.sarif *.xcstrings *.mcmeta *.excalidraw *.tsbuildinfo
        composer.lock pipfile.lock flake.lock deno.lock symfony.lock renv.lock
        conan.lock devbox.lock module.bazel.lock package.resolved
        .watchmanconfig .bowerrc .htmlhintrc .all-contributorsrc .firebaserc .nycrc
        .arcconfig .arclint .imgbotconfig""",
    ),
    (FileKind.JSON_LINES, "*.jsonl *.ndjson *.jsonlines *.ldjson *.geojsonl"),
    (FileKind.NOTEBOOK, "*.ipynb"),
    (FileKind.PYTHON, "*.py *.pyi *.pyw sconstruct sconscript wscript"),
    (
        FileKind.TOML,
        """*.toml pipfile .cargo/config .replit
        uv.lock poetry.lock pdm.lock cargo.lock gopkg.lock scarb.lock mise.lock""",
    ),
    (
        FileKind.YAML,
        """*.yaml *.yml *.cff *.dvc *.sublime-syntax
        podfile.lock pubspec.lock chart.lock pixi.lock dvc.lock buf.lock shard.lock
        stack.yaml.lock
        .clang-format _clang-format .clang-tidy .clangd .cmake-format .gemrc .condarc
        .mambarc .yamllint .ansible-lint .rdoc_options .roomodes .eslintrc .prettierrc
        .stylelintrc .lintstagedrc .commitlintrc .releaserc .postcssrc .textlintrc
        .remarkrc""",
    ),
    # prose and records
    (
        None,
        """*.md *.markdown *.mdx *.rst *.txt *.adoc *.org *.log *.out *.snap *.http
        *.rest *.diff *.patch""",
    ),
    # templates
    (
        None,
        """*.j2 *.jinja *.jinja2 *.njk *.liquid *.tmpl *.gotmpl *.tpl *.template *.in
        *.erb *.ejs *.hbs *.mustache""",
    ),
    # languages in which JSON is an expression
    (
        None,
        """*.js *.mjs *.cjs *.jsx *.ts *.mts *.cts *.tsx *.vue *.svelte *.jsonnet
        *.libsonnet *.hjson *.cson *.cue *.jq *.hocon *.conf *.rego *.rb *.groovy
        *.gradle *.dart *.star *.bzl *.gyp *.gypi *.pyx""",
    ),
)
"""Patterns of lower-case names. A pattern with a slash matches the end of a path. A
name may have several formats, most likely first. `None` is any other format, whatever
the content.
"""
_FIRST_LINES = tuple(
    (kind, Pattern(rb"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?" + program))
    for kind, program in (
        (FileKind.PYTHON, rb"(?:python(?:3(?:\.\d+)?)?|pypy3?)(?:\s|$)"),
        (FileKind.PYTHON, rb"uv\s+run\b.*--script"),
        (FileKind.YAML, rb"ansible-playbook(?:\s|$)"),
    )
)
"""First lines that name a file's program, for files without a known name."""
_OBJECT = Pattern(rb'\s*(?:\[\s*)*\{\s*"')
"""The beginning of JSON that has an object with a key."""


def kinds_of(
    path: PurePosixPath, before: bytes | None, after: bytes
) -> tuple[FileKind, ...]:
    """Return the formats that a file may have after a change, most likely first.
    `before` is None for a new file.

    Without a known name, the first line decides. A file that was JSON stays JSON as
    long as it begins with a bracket.
    """
    by_name = _find_by_name(str(path).lower())
    kinds = list(kinds_by_name(path))
    if not by_name:
        by_line = _find_by_first_line(after)
        if by_line is not None:
            kinds.append(by_line)
    if not by_name or FileKind.YAML in by_name:
        was_json = before is not None and _OBJECT.match(before) is not None
        if was_json and after.lstrip()[:1] in (b"{", b"["):
            kinds.append(FileKind.JSON)
    return tuple(kinds)


def kinds_by_name(path: PurePosixPath) -> tuple[FileKind, ...]:
    """Return the formats that a file may have by its name, most likely first."""
    by_name = _find_by_name(str(path).lower())
    return tuple(kind for kind in by_name if kind is not None)


@lru_cache(1_000)
def _find_by_name(path: str) -> tuple[FileKind | None, ...]:
    return tuple(kind for pattern, kind in _compile_names() if pattern.match(path))


@lru_cache(1)
def _compile_names() -> tuple[tuple[re.Pattern[str], FileKind | None], ...]:
    compiled = []
    for kind, names in NAMES:
        alternatives = "|".join(translate(name) for name in names.split())
        compiled.append((re.compile(rf"(?:.*/)?(?:{alternatives})"), kind))
    return tuple(compiled)


def _find_by_first_line(content: bytes) -> FileKind | None:
    for kind, pattern in _FIRST_LINES:
        if pattern.match(content):
            return kind
    return None
