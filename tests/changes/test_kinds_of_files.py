"""A file keeps its format: what a parser read before an edit, it reads after it. The
format follows from the name, the first line or the content.
"""

from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest
from msgspec import Struct

from cdd_agent.changes.build import change_set
from cdd_agent.changes.model import Renaming, Replacement, ReplyRefused, WholeFile
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.readability import refuse_unreadable
from cdd_agent.files import kinds
from cdd_agent.files.kinds import FileKind
from tests.changes.applying import apply, tree, write
from tests.support.tables import each_row


@pytest.fixture(autouse=True)
def _no_other_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


class Format(Struct, frozen=True):
    """A text of one format, an edit that it survives, and edits that break it."""

    text: str
    change: tuple[str, str]
    faults: tuple[tuple[str, str], ...]


JSON = Format(
    '{\n  "name": "a",\n  "items": [\n    1,\n    2\n  ]\n}\n',
    ('  "name": "a",', '  "name": "b",'),
    (
        ('  "name": "a",', '  "name": "a"'),
        ("    1,", "    1"),
        ("    2", "    2,"),
        ('  "name": "a",', '  "name": "a", // why'),
    ),
)
COMMENTED = Format(
    '{\n  // why\n  "name": "a", /* b */\n  "items": [\n    1,\n    2,\n  ]\n}\n',
    ('  // why\n  "name": "a", /* b */', '  "name": "//", // because'),
    (
        ('  "name": "a", /* b */', '  "name": "a" /* b */'),
        ("    1,", "    1"),
        ('  "name": "a", /* b */', '  "name": "a", /* b'),
    ),
)
JSON5 = Format(
    "{\n  // why\n  name: 'a\\'b',\n  size: +0x1F,\n  items: [.5, Infinity,],\n}\n",
    ("  size: +0x1F,", "  'size': -1e3, /* it's */"),
    (("  size: +0x1F,", "  size: +0x1F"), ("  size: +0x1F,", "  size: 'a,")),
)
LINES = Format(
    '{"a": 1}\n{"a": 2}\n\n{"a": 3}\n',
    ('{"a": 2}', '{"a": 2, "b": [1]}'),
    (('{"a": 2}', '{"a": 2'), ('{"a": 2}', '{"a": 2},'), ('{"a": 2}', "{'a': 2}")),
)
TOML = Format(
    'version = 1\n\n[[package]]\nname = "a"\nsource = { url = "x" }\n',
    ('name = "a"', 'name = "b"'),
    (
        ('name = "a"', 'name = "a'),
        ('name = "a"', "name: a"),
        ("[[package]]", "[[package]"),
        ('name = "a"', 'name = "a"\nname = "b"'),
    ),
)
YAML = Format(
    "BasedOnStyle: LLVM\nIncludes:\n  - a\n  - {b: 1}\n",
    ("  - a", "  - c"),
    (("  - {b: 1}", "  - {b: 1"), ("  - a", "  - a: b: c"), ("  - a", "\t- a")),
)
PYTHON = Format(
    "#!/usr/bin/env python3\nimport sys\n\nprint(sys.argv)\n",
    ("print(sys.argv)", "print(sys.path)"),
    (
        ("print(sys.argv)", "print(sys.argv"),
        ("print(sys.argv)", "  print(sys.argv)"),
        ("print(sys.argv)", 'print "a"'),
    ),
)
NOTEBOOK = Format(
    """\
{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "metadata": {},
   "outputs": [],
   "source": [
    "a = 1\\n",
    "a"
   ]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
""",
    ('    "a = 1\\n",', '    "a = 2\\n",\n    "b = 3\\n",'),
    (
        ('    "a = 1\\n",', '    "a = 1\\n"'),
        ('    "a"', '    "a",'),
        (' "nbformat": 4,\n', ""),
        (' "nbformat": 4,', ' "nbformat": "4",'),
        (' "cells": [', ' "cell": ['),
        ('   "cell_type": "code",\n', ""),
        (' "cells": [', ' "cells": [\n  1,'),
        ('   "source": [\n    "a = 1\\n",\n    "a"\n   ]', '   "source": 1'),
    ),
)
OLD_NOTEBOOK = Format(
    '{\n "nbformat": 3,\n "nbformat_minor": 0,\n "worksheets": [\n  {\n   "cells": [\n'
    '    {\n     "cell_type": "code",\n     "input": [\n      "a"\n     ],\n'
    '     "outputs": []\n    }\n   ]\n  }\n ]\n}\n',
    ('      "a"', '      "b"'),
    (('      "a"', '      "a",'), (' "worksheets": [', ' "sheets": [')),
)

NAMES = [
    (
        JSON,
        """package.json data.JSON map.geojson map.topojson site.webmanifest a.jsonld
        a.avsc a.har scene.gltf terraform.tfstate app_en.arb result.sarif
        Localizable.xcstrings pack.mcmeta .prettierrc.json .stylelintrc.json
        composer.lock Pipfile.lock flake.lock package-lock.json symfony.lock
        Package.resolved renv.lock conan.lock MODULE.bazel.lock
        .watchmanconfig .bowerrc .htmlhintrc .all-contributorsrc .firebaserc .nycrc
        data/denominations.json turbocharged.json""",
    ),
    # by content
    (JSON, "data .hidden a.unheardof Data.store .foorc a.c"),
    (
        COMMENTED,
        """tsconfig.json app/tsconfig.build.json jsconfig.json a.jsonc
        a.code-workspace .vscode/settings.json .devcontainer/devcontainer.json
        .jshintrc .hintrc a.sublime-settings a.sublime-project my.code-snippets
        deno.json bun.lock .swcrc .eslintrc .eslintrc.json angular.json turbo.json
        .markdownlint.json game/objects/o.yy""",
    ),
    (JSON5, "a.json5 .babelrc .babelrc.json renovate.json5"),
    (LINES, "a.jsonl a.ndjson a.jsonlines map.geojsonl"),
    (
        TOML,
        """pyproject.toml uv.lock poetry.lock pdm.lock pylock.toml Cargo.lock Pipfile
        Gopkg.lock .cargo/config mise.lock Scarb.lock""",
    ),
    (
        YAML,
        """a.yaml a.yml .clang-format _clang-format .clang-tidy .clangd CITATION.cff
        pnpm-lock.yaml Podfile.lock pubspec.lock Chart.lock pixi.lock dvc.lock
        data.csv.dvc .prettierrc .stylelintrc .lintstagedrc .commitlintrc .releaserc
        .eslintrc .gemrc .condarc a.sublime-syntax .cmake-format .ansible-lint
        .yamllint""",
    ),
    (PYTHON, "a.py a.pyi a.pyw SConstruct lib/SConscript wscript run bin/run a.cgi"),
    (NOTEBOOK, "n.ipynb a/n.ipynb"),
    (OLD_NOTEBOOK, "old.ipynb"),
]
FILES = [(path, kind) for kind, paths in NAMES for path in paths.split()]


def replace(root: Path, path: str, old: str, new: str) -> tuple[str, ...]:
    """Replace whole lines of a file, and return the notes."""
    edit = Replacement(path, tuple(old.splitlines()), tuple(new.splitlines()))
    changes = change_set(root, [edit], EditPolicy(seen=None))
    changes.apply(root)
    return changes.notes


def label(value: object) -> str:
    return value if isinstance(value, str) else ""


@each_row("path, kind", FILES, ids=label)
def test_an_edit_that_breaks_a_file_is_refused(
    tmp_path: Path, path: str, kind: Format
) -> None:
    write(tmp_path, {path: kind.text})
    accepted = []
    for old, new in kind.faults:
        with suppress(ReplyRefused):
            replace(tmp_path, path, old, new)
            accepted.append(new)
            write(tmp_path, {path: kind.text})
    assert accepted == []
    assert (tmp_path / path).read_text() == kind.text


@each_row("path, kind", FILES, ids=label)
def test_an_edit_that_does_not_is_applied(
    tmp_path: Path, path: str, kind: Format
) -> None:
    write(tmp_path, {path: kind.text})
    assert replace(tmp_path, path, *kind.change) == ()
    changed = kind.text.replace(*kind.change)
    assert changed != kind.text
    assert (tmp_path / path).read_text() == changed


@each_row("path, kind", FILES, ids=label)
def test_a_file_that_was_broken_before_is_not_judged(
    tmp_path: Path, path: str, kind: Format
) -> None:
    write(tmp_path, {path: f"{kind.text})]}}\n"})
    assert replace(tmp_path, path, *kind.change) == ()


FORMATS = {
    FileKind.JSON: JSON,
    FileKind.COMMENTED_JSON: COMMENTED,
    FileKind.JSON_LINES: LINES,
    FileKind.NOTEBOOK: NOTEBOOK,
    FileKind.PYTHON: PYTHON,
    FileKind.TOML: TOML,
    FileKind.YAML: YAML,
}


def test_each_pattern_of_names_counts_in_any_folder(tmp_path: Path) -> None:
    unchecked = []
    for kind, patterns in kinds.NAMES:
        for pattern in patterns.split():
            sample = FORMATS[kind or FileKind.JSON]
            path = PurePosixPath("a.b", pattern.replace("*", "x"))
            before = sample.text.encode()
            after = sample.text.replace(*sample.faults[0]).encode()
            try:
                refuse_unreadable(tmp_path, path, before, after)
            except ReplyRefused:
                continue
            if kind is not None:
                unchecked.append(pattern)
    assert unchecked == []


OTHER_KINDS = [
    # a file may become one of another format
    ("data", '{\n"a": 1\n}\n', "name,size\na,1\n"),
    (".prettierrc", '{\n\t"a": 1\n}\n', "a: 1\n"),
    ("run", "#!/usr/bin/python3\nprint(1)\n", "#!/bin/sh\necho $((1\n))\n"),
    # Python 2 is not read here
    ("run", "#!/usr/bin/env python2\nprint(1)\n", "#!/usr/bin/env python2\nprint 1\n"),
    # prose, templates, and languages that contain JSON
    ("a.txt", '{"a": 1}\n', '{"a": 1\n'),
    ("a.json.j2", '{"a": 1}\n', '{"a": {{ b }}\n'),
    ("a.js", '[{"a": 1}]\n', '[{"a": f()}]\n'),
    ("a.jsonnet", '{"a": 1}\n', '{"a": f()}\n'),
    # lock files that no parser here reads
    ("yarn.lock", 'a@^1:\n  version "1"\n', 'a@^1:\n  version "1\n'),
    ("Gemfile.lock", "GEM\n  specs:\n", "GEM\n  specs: {\n"),
    # not data, although a parser would take it
    ("list.edn", "[1]\n", "[1 2]\n"),
    ("empty", "{}\n", "{:a 1}\n"),
    # YAML or JSON with comments
    (".eslintrc", "# why\na: 1\n", "# why\na: 2 # b\n"),
]


@each_row("path, before, after", OTHER_KINDS)
def test_other_formats_are_not_judged(
    tmp_path: Path, path: str, before: str, after: str
) -> None:
    write(tmp_path, {path: before})
    assert apply(tmp_path, f"~~~~text:./{path}\n{after}~~~~\n") == ()


NEW_FILES = [
    (False, "a.py", "x = (\n"),
    (False, "run", "#!/usr/bin/env -S uv run --script\nx = (\n"),
    (False, "run", "#! /usr/bin/python3.12 -u\nx = (\n"),
    (False, "n.ipynb", '{"cells": []}\n'),
    (False, "n.ipynb", '{"cells": ["{{x}}" ], "nbformat": 4\n'),
    (False, "a.jsonl", "{}\n{\n"),
    (False, "a.geojson", '{"a": 1,}\n'),
    (False, "uv.lock", "version = \n"),
    (False, "tsconfig.json", '{"a": }\n'),
    (True, ".eslintrc", "root: true\n"),
    (True, ".eslintrc", "{root: true, // why\n}\n"),
    (True, "a.yaml", "a: {{ b }}\n"),
    (True, "a.json", '{"a": {{ b }}}\n'),
    (True, "a.py", "x = {{ b }}\ny = (\n"),
    (True, "tests/broken/a.json", "{\n"),
    (True, "data", '{"a": \n'),
    (True, "a.json", "\n"),
]


@each_row("is_taken, path, content", NEW_FILES)
def test_a_new_file_is_judged_by_its_name_and_first_line(
    tmp_path: Path, is_taken: bool, path: str, content: str
) -> None:
    edit = WholeFile(path, content)
    if is_taken:
        assert change_set(tmp_path, [edit], EditPolicy(seen=None)).changes
        return
    with pytest.raises(ReplyRefused):
        change_set(tmp_path, [edit], EditPolicy(seen=None))


def test_a_file_is_judged_in_its_own_encoding(tmp_path: Path) -> None:
    for codec in ("utf-8-sig", "utf-16", "cp1252"):
        text = '{\n"a": "Müller, Schröder und Söhne",\n"b": 1\n}\n'
        (tmp_path / "a.json").write_bytes(text.encode(codec))
        content = (tmp_path / "a.json").read_bytes()
        broken = text.replace('",', '"').encode(codec)
        path = PurePosixPath("a.json")
        with pytest.raises(ReplyRefused):
            refuse_unreadable(tmp_path, path, content, broken)
        assert refuse_unreadable(tmp_path, path, broken, content) == ""
        template = '{"a": {{ b }}}\n'.encode(codec)
        assert refuse_unreadable(tmp_path, path, None, template) == ""


def test_a_broken_file_may_be_renamed(tmp_path: Path) -> None:
    write(tmp_path, {"old.json": "{\n"})
    renaming = Renaming("old.json", "new.json")
    changes = change_set(tmp_path, [renaming], EditPolicy(seen=None))
    changes.apply(tmp_path)
    assert tree(tmp_path) == {"new.json": "{\n"}
