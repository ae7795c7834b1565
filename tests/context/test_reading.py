"""Words, definitions, imports and pieces: how texts are taken apart."""

import time
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.context.definitions import Definition, definitions
from cdd_agent.context.excerpts import judged, pieces
from cdd_agent.context.links import Links
from cdd_agent.context.source import Handwritten, Source, read_as_source
from cdd_agent.context.terms import TermWriter, mark_import
from cdd_agent.context.traces import Frame, error_lines, frames
from cdd_agent.context.words import Vocabulary, names_in_code, words_in, words_of
from tests.support.tables import each_row

PYTHON = """\
import os
from a.b import c, d

@cache
def one(x):
    def two():
        pass


class Three:
    async def four(self): ...
"""
SCRIPT = """\
import x from './x.js'
export const five = (a) => a
export class Six {
  seven() {
  }
}
function eight() {}
"""
GO = (
    "package p\n\n"
    "import (\n"
    '\t"fmt"\n'
    '\tq "example.org/p/q"\n'
    ")\n\n"
    "type Nine struct{}\n\n"
    "func (n *Nine) Ten() {}\n"
)
RUST = "use crate::a::B;\nmod c;\npub struct D;\nimpl D {\n    pub fn e(&self) {}\n}\n"
C = (
    '#include "a.h"\n'
    "#define F 1\n"
    "struct g {\n"
    "  int x;\n"
    "};\n"
    "static int *h(int a)\n"
    "{\n"
    "  return 0;\n"
    "}\n"
)


@each_row(
    ("path", "text", "exact", "defined", "imported"),
    [
        (
            "a.py",
            PYTHON,
            ["one", "one.two", "Three", "Three.four"],
            {"one", "two", "Three", "four"},
            {"os", "a.b", "a.b.c", "a.b.d"},
        ),
        (
            "a.js",
            SCRIPT,
            ["five", "Six", "Six.seven", "eight"],
            {"five", "Six", "seven", "eight"},
            {"./x.js"},
        ),
        (
            "a.ts",
            SCRIPT,
            ["five", "Six", "Six.seven", "eight"],
            {"five", "Six", "seven", "eight"},
            {"./x.js"},
        ),
        ("a.go", GO, ["Nine", "Ten"], {"Nine", "Ten"}, {"fmt", "example.org/p/q"}),
        ("a.rs", RUST, ["D", "D", "D.e"], {"c", "D", "e"}, {"crate::a::B", "c"}),
        ("a.c", C, ["g", "h"], {"F", "g", "h"}, {"a.h"}),
    ],
)
def test_definitions_and_imports(
    path: str, text: str, exact: list[str], defined: set[str], imported: set[str]
) -> None:
    source = read_as_source(path, text.encode())

    assert source is not None
    assert [each.name for each in definitions(path, text.encode())] == exact
    assert (source.defined, source.imported) == (defined, imported)


def test_a_definition_has_its_decorators() -> None:
    one = definitions("a.py", PYTHON.encode())[0]

    assert (one.first, one.head, one.last, one.depth) == (4, 5, 7, 0)


@given(
    st.binary(max_size=300),
    st.sampled_from(
        ["a.py", "a.js", "a.tsx", "a.go", "a.rs", "a.c", "a.h", "a.rb", "a.php"]
    ),
)
def test_any_bytes_are_read(data: bytes, path: str) -> None:
    lines = data.count(b"\n") + 1
    for each in definitions(path, data):
        assert 1 <= each.first <= each.head <= each.last <= lines
    read_as_source(path, data)
    for piece in judged(data, definitions(path, data), {"a": 1.0}, Vocabulary()).pieces:
        assert 1 <= piece.first <= piece.last <= lines


@st.composite
def nested(draw: st.DrawFn) -> tuple[int, list[Definition]]:
    lines = draw(st.integers(1, 300))
    spans = draw(
        st.lists(st.tuples(st.integers(1, lines), st.integers(1, lines)), max_size=12)
    )
    ordered = sorted({(min(span), -max(span)) for span in spans})
    return lines, [
        Definition(f"d{at}", first, -last, first, 0)
        for at, (first, last) in enumerate(ordered)
    ]


@given(nested())
def test_pieces_cover_each_line_once_and_are_small(
    given_: tuple[int, list[Definition]],
) -> None:
    lines, found = given_

    result = pieces(lines, found)

    assert result[0].first == 1
    assert result[-1].last == lines
    assert all(after.first == before.last + 1 for before, after in pairwise(result))
    assert all(0 < piece.last - piece.first + 1 <= 30 for piece in result)


@each_row("text", ["", "parse_range", "HTTPServer x9", "Größe ÄNDERN parse_range"])
def test_each_word_of_a_text_leads_to_a_term_of_it(text: str) -> None:
    writer = TermWriter()
    source = Source(frozenset({"parseAll"}), frozenset({"net/http-kit"}))
    terms = writer.write_terms("lib/mail.py", text.encode(), source).split()
    words = writer.take_words()
    assert {word for word, _ in words} == {
        *(word for name in text.split() for word in words_of(name)),
        *("=pars", "=all", "/lib", "/mail", "/py"),
    }
    assert {term for _, term in words} <= set(terms)
    assert mark_import("http-kit") in terms
    assert writer.take_words() == []


def test_a_piece_is_a_definition_where_that_is_small_enough() -> None:
    text = "".join(
        f"def part_{number}():\n" + "    x = 1\n" * 8 + "\n\n" for number in range(3)
    )

    names = [
        (piece.first, piece.name)
        for piece in pieces(33, definitions("a.py", text.encode()))
    ]

    assert [name for _, name in names] == ["part_0", "part_1", "part_2"]


def test_words_of_names_and_of_texts_are_alike() -> None:
    assert (
        words_in("parseRanges")
        == words_in("parsing_range")
        == words_in("parsed ranges")
        == ["pars", "rang"]
    )
    assert words_in("HTTPServer2 x class") == ["http", "server", "class"]
    assert words_in("x" * 61) == []
    assert names_in_code(
        "See parse_range or HTTPServer or sha1, not Range or HTTP"
    ) == [
        "parse_range",
        "HTTPServer",
        "sha1",
    ]


FILES = """
app/__init__.py app/till.py app/sub/roll.py lib/x/index.ts src/a.h src/sub/b.c
pkg/q/q.go pkg/q/r.go crates/c/src/walk.rs
"""
LINKS = Links(FILES.split())


@each_row(
    ("name", "importer", "meant"),
    [
        ("app.till", "main.py", ["app/till.py"]),
        ("app.till.Till", "main.py", ["app/till.py"]),
        (".till", "app/door.py", ["app/till.py"]),
        ("..till", "app/sub/roll.py", ["app/till.py"]),
        (".", "app/till.py", ["app/__init__.py"]),
        ("../x", "lib/y/z.ts", ["lib/x/index.ts"]),
        ("../a.h", "src/sub/b.c", ["src/a.h"]),
        ("a.h", "src/sub/b.c", ["src/a.h"]),
        ("example.org/me/pkg/q", "main.go", ["pkg/q/q.go", "pkg/q/r.go"]),
        ("crate::walk::Walker", "crates/c/src/lib.rs", ["crates/c/src/walk.rs"]),
        ("json", "main.py", []),
        ("../../../../etc/passwd", "a.js", []),
    ],
)
def test_imports_mean_files(name: str, importer: str, meant: list[str]) -> None:
    assert LINKS.imported(name, importer) == meant


@given(
    st.text("./:\\ab*@", max_size=12), st.sampled_from(["a.py", "b/a.py", "b/c/a.rs"])
)
def test_any_import_means_some_files_or_none(name: str, importer: str) -> None:
    assert isinstance(LINKS.imported(name, importer), list)


@each_row(
    "said",
    [
        'File "/home/p/src/a.py", line 7, in f',
        'File "src/a.py", line 7, in f',
        "src/a.py:7: AssertionError",
        "    at f (/home/p/src/a.py:7:13)",
        "  --> src/a.py:7:5",
        "\t./src/a.py:7 +0x1d",
        "src\\a.py(7): error C2065",
        "    at file:///home/p/src/a.py:7:13",
        "p/src/a.py:7: in the folder around",
        "../src/a.py:7: beside",
        "\texample.org/p/q/src/a.py:7 +0x1d",
        "a.py:7: said in its folder",
    ],
)
def test_frames_of_many_tools(said: str) -> None:
    files = ["src/a.py"] if said.startswith("a.py") else ["src/a.py", "b/a.py"]
    assert frames(f"other.py:3\n{said}\n", files, Path("/home/p")) == [
        Frame("src/a.py", 7)
    ]


@each_row(
    "said",
    [
        'File "/usr/lib/python3/src/a.py", line 7, in f',
        'File "/usr/my lib/src/a.py", line 7, in f',
        "    at f (/home/p2/src/a.py:7:13)",
        "../../usr/lib/python3/src/a.py:7: beside",
        "node_modules/x/src/a.py:7",
        "src/a.py:0",
    ],
)
def test_a_frame_outside_of_the_project_is_in_none_of_its_files(said: str) -> None:
    assert frames(said, ["src/a.py"], Path("/home/p")) == []


def test_a_frame_in_a_project_that_is_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real place").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real place")
    for root in ("real place", "link"):
        said = f'File "{tmp_path}/real place/a.py", line 7, in f'
        assert frames(said, ["a.py"], tmp_path / root) == [Frame("a.py", 7)]


def test_the_last_frame_comes_first_and_the_last_errors_are_kept() -> None:
    assert frames("a.py:1\nb.py:2\na.py:1\n", ["a.py", "b.py"], Path("/p")) == [
        Frame("a.py", 1),
        Frame("b.py", 2),
    ]
    assert error_lines("fine\nTypeError: no range\nfine") == ["TypeError: no range"]


@each_row("said", ["a", "a.", "a/", "\\", "-", 'File "', "a.py:"])
def test_no_output_takes_long(said: str) -> None:
    begun = time.process_time()

    frames(said * (200_000 // len(said)), ["a.py"], Path("/p"))

    assert time.process_time() - begun < 5


def test_attributes_say_what_is_written_by_hand() -> None:
    by_hand = Handwritten(
        "*.gen.py\tlinguist-generated\n"
        "vendor/own.js linguist-vendored=false\n"
        "docs/* -linguist-documentation\n"
    )

    assert [
        by_hand(path)
        for path in (
            "a.gen.py",
            "vendor/own.js",
            "vendor/other.js",
            "docs/a.py",
            "a.py",
        )
    ] == [
        False,
        True,
        False,
        True,
        True,
    ]


@each_row(
    ("begins", "is_source"),
    [
        ("// Code generated by protoc-gen-go. DO NOT EDIT.", False),
        ("# This file is automatically generated by a tool", False),
        ("/* Generated by re2c 1.0 */", False),
        ("// @generated", False),
        (
            (
                "//! Formats the help that is generated by the parser, auto-generated"
                " or not"
            ),
            True,
        ),
        ('"""Reads generated code."""', True),
    ],
)
def test_a_generated_file_says_so_at_the_beginning_of_a_line(
    begins: str, is_source: bool
) -> None:
    assert (
        read_as_source("a.rs", f"{begins}\nfn a() {{}}\n".encode()) is not None
    ) == is_source


@each_row("path", ["a.py", "a.js", "a.go", "a.rs", "a.c", "a.java"])
@each_row("line", ["a ", "a.", "(", "\t", " public", "from ", '"', "x: ", "<a, "])
def test_no_line_takes_long(path: str, line: str) -> None:
    begun = time.process_time()

    read_as_source(path, (line * 30_000 + "\n").encode() + b"x\n" * 2_000)

    assert time.process_time() - begun < 10
