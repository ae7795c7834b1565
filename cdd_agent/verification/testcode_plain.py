"""The tests in a text of any language, by how they are declared: `it(…)`,
`func TestX(`, `#[test]`, `@Test`, `TEST(…)`.

This is a plain recogniser and no parser: comments and what is within quotes are blanked
out, brackets are counted, or lines by their indentation. It is for comparing two
versions of a file, and both are read alike.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.verification.testcode import CODE, SCRIPTS, Declared, Skipped

_C_COMMENTS = r"//[^\n]*|/\*.*?(?:\*/|\Z)|^[ \t]*\#if\ +0\b.*?(?:^[ \t]*\#endif|\Z)"
_QUOTED = r'"""(?:\\.|.)*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"'
_CHARACTER = r"'(?:\\[^'\n]{1,8}|[^'\\\n])'"
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_TICKS = r"`(?:\\.|[^`\\])*`"
_REGEX = (
    r"(?<=[(,=:\[!&|?{};])"
    r"[ ]*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n]){0,100}\]|[^/\\\n\[]){1,300}/"
)
_HASH_COMMENTS = r"(?<![$\\\w'\"])\#[^\n]*"


def _noise(comments: str, *strings: str) -> re.Pattern[str]:
    return re.compile(
        f"(?P<comment>{comments})|(?:{'|'.join(strings)})", re.DOTALL | re.MULTILINE
    )


_NOISE_OF_C = _noise(
    _C_COMMENTS,
    r'R"(\w*)\(.*?(?:\)\2"|\Z)',
    r'r(#+)".*?(?:"\3|\Z)',
    _QUOTED,
    _CHARACTER,
)
_NOISE_OF_GO = _noise(_C_COMMENTS, _QUOTED, _CHARACTER, _TICKS)
_NOISE_OF_JS = _noise(_C_COMMENTS, _QUOTED, _SINGLE, _TICKS, _REGEX)
_NOISE_OF_SCRIPTS = _noise(_HASH_COMMENTS, _QUOTED, _SINGLE)
_NOISE_OF_PHP = _noise(rf"{_C_COMMENTS}|(?:(?<=\s)|^)\#(?!\[)[^\n]*", _QUOTED, _SINGLE)
_NOISE_OF_LUA = _noise(r"--\[\[.*?(?:\]\]|\Z)|--[^\n]*", _QUOTED, _SINGLE)

_CHECK = re.compile(
    r"\b(?:\w{0,60}?[aA]ssert\w*+|ASSERT\w*|EXPECT\w*|CHECK\w*|REQUIRE\w*|expect\w*"
    r"|should\w*|must_\w+|verify\w*|Verify\w*"
    r"|refute\w*|fail\w*|Fail\w*|Error(?:f|Is)?|Fatal(?:f)?|XCT\w+|panic|is_deeply|is"
    r"|isnt|ok|like|cmp_ok|throw|throws(?=\s*[(.])|deepEqual|check\w*"
    r"|TEST_ASSERT\w*|ck_\w+|raise_error|diff|cmp|grep|exit|die)(?=!?\s*[(.]|"
    r"[ \t]+(?!=|from\b))"
    r"|\[\[?\s|\btest\s+[-\"$]|\bThen\b"
)
"""An assertion in one of these languages, or what may well be one."""
_IDLE_CHECK = re.compile(
    r"\b(?:expect|\w{0,60}?assert(?:\.\w+)?!?|(?:XCT)?[Aa]ssert(?:\w*True|\w*Equals?)?"
    r"|ASSERT_\w+|EXPECT_\w+|REQUIRE|CHECK)\s*\(\s*"
    r"(?:true|True|TRUE|\d+)(?:\s*,\s*(?:true|True|TRUE|\d+))*\s*\)"
)
"""An assertion about nothing: `expect(true)`, `assert(1, 1)`."""
_CALL = re.compile(r"\b([A-Za-z_]\w*+)!?\s*+\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
_UNCLOSED = 500
"""Characters that are looked at where a bracket is never closed."""
_MOST_READ = 4_000_000
"""Characters of all bodies of a file's tests together: one test may be in another."""
_DEEPEST = 20
"""Groups in groups that a test's name tells of."""
_NO_CALLS = frozenset(
    (
        *(
            "if",
            "for",
            "while",
            "switch",
            "catch",
            "return",
            "function",
            "func",
            "fn",
            "def",
            "sizeof",
        ),
        *("print", "println", "printf", "puts", "log", "echo"),
    )
)
_IDLE = frozenset(
    (
        *(
            "return",
            "undefined",
            "null",
            "nil",
            "None",
            "pass",
            "true",
            "false",
            "async",
            "function",
            "func",
            "fn",
        ),
        *("done", "end", "do", "void", "t", "assert", "expect", "begin"),
    )
)


class _Text(Struct, frozen=True):
    """A text with the places of its comments and strings blanked out; all three are of
    one length.
    """

    whole: str
    code: str
    """Without comments."""
    bare: str
    """Without what is within quotes, too."""
    closes: Mapping[int, int]
    """Of each opening bracket, where the one is that closes it."""
    counts: Mapping[str, int]
    """How often each word is there."""

    @classmethod
    def of(cls, text: str, noise: re.Pattern[str]) -> "_Text":
        code = noise.sub(
            lambda found: (
                _blank(found[0]) if found["comment"] is not None else found[0]
            ),
            text,
        )
        bare = noise.sub(
            lambda found: _blank(found[0], quotes=found["comment"] is None), text
        )
        # each kind of bracket is counted by itself
        opened: dict[str, list[int]] = {
            ")": [],
            "]": [],
            "}": [],
        }
        closing = {"(": ")", "[": "]", "{": "}"}
        closes: dict[int, int] = {}
        for found in re.finditer(r"[()\[\]{}]", bare):
            if (mark := found[0]) in closing:
                opened[closing[mark]].append(found.start())
            elif opened[mark]:
                closes[opened[mark].pop()] = found.start()
        return cls(text, code, bare, closes, Counter(_WORD.findall(bare)))

    def close_of(self, opening: int) -> int:
        """Just after the bracket that closes one; where none does, a little further."""
        unclosed = min(len(self.bare), opening + _UNCLOSED) - 1
        return self.closes.get(opening, unclosed) + 1


def _blank(text: str, *, quotes: bool = False) -> str:
    blank = re.sub(r"[^\n]", " ", text)
    return f"{text[0]}{blank[1:-1]}{text[-1]}" if quotes and len(text) > 1 else blank


class _Place(Struct, frozen=True):
    """Where a declaration is: from `start`, with a body from `inside`, to `end`."""

    start: int
    inside: int
    end: int
    name: str
    marks: str
    """All that is said of it, beside its name and its body."""
    is_test: bool = True
    """Not a group of tests."""
    skipped: Skipped = Skipped.NO
    is_alone: bool = False
    """Where one is so, the others are not run."""


_Finder = Callable[[_Text], Iterator[_Place]]

# `it("…", () => { … })`

_BLOCK = re.compile(
    r"(?<![\w$.])(?<!function"
    r" )(?:t\.|Deno\.)?(?P<off>[xf](?=it\b|describe\b|test\b|context\b|specify\b))?"
    r"(?P<word>it|test|specify|testWidgets|test_that|describe|context|suite|group)\b"
    r"(?P<mods>(?:\s*\.\s*\w+)*)(?=\s*[(`])"
)
_TESTS = ("it", "test", "specify", "testWidgets", "test_that")
_WITH_TABLE = ("each", "for", "skipIf", "runIf", "if", "failing")
_FUNCTION = re.compile(r"=>|\bfunction\b")
_STRING = re.compile(r"""\s*(["'`])""")


def _blocks(text: _Text) -> Iterator[_Place]:
    for found in _BLOCK.finditer(text.bare):
        mods, place = re.findall(r"\w+", found["mods"]), found.end()
        place = _after_space(text.bare, place)
        if mods and mods[-1] in _WITH_TABLE and text.bare[place] == "`":
            place = _after_space(
                text.bare, text.bare.find("`", place + 1) + 1 or len(text.bare)
            )
        elif mods and mods[-1] in _WITH_TABLE and text.bare[place] == "(":
            after = _after_space(text.bare, text.close_of(place))
            place = after if text.bare[after : after + 1] == "(" else place
        if text.bare[place : place + 1] != "(":
            continue
        end = text.close_of(place)
        name, inside = _first_argument(text, place + 1, end)
        # Scala, Kotlin
        if (
            text.bare[_after_space(text.bare, end) : _after_space(text.bare, end) + 1]
            == "{"
        ):
            end = text.close_of(_after_space(text.bare, end))
        elif not _STRING.match(text.bare, place + 1) and not _FUNCTION.search(
            text.bare, place, end
        ):
            continue  # a call of something else that is called so
        options = re.match(r"\s*,?\s*\{[^{}]*\}\s*,", text.bare[inside:end])
        chained = re.match(r"\s*->\s*(skip|todo)\b", text.bare[end : end + 40])
        is_off = (
            found["off"] == "x"
            or not {"skip", "todo", "failing", "fixme"}.isdisjoint(mods)
            or chained is not None
        )
        is_off |= (
            options is not None
            and re.search(r"\b(skip|todo)\s*:\s*(?!false)", options[0]) is not None
        )
        is_group = found["word"] not in _TESTS or "describe" in mods
        is_pending = not is_group and not text.bare[inside:end].strip(" \n\t,)")
        is_perhaps = not {"skipIf", "runIf", "if"}.isdisjoint(mods)
        yield _Place(
            found.start(),
            inside,
            end,
            name,
            text.code[found.end("word") : place],
            is_test=not is_group,
            skipped=(
                Skipped.YES
                if is_off or is_pending
                else Skipped.PERHAPS
                if is_perhaps
                else Skipped.NO
            ),
            is_alone=found["off"] == "f" or "only" in mods,
        )


def _first_argument(text: _Text, start: int, end: int) -> tuple[str, int]:
    """A test's name, and where it ends."""
    if quoted := _STRING.match(text.bare, start):
        close = text.bare.find(quoted[1], quoted.end())
        close = close if 0 <= close < end else end
        return text.whole[quoted.end() : close], close + 1
    comma = text.bare.find(",", start, end)
    comma = comma if comma >= 0 else end - 1
    return " ".join(text.whole[start:comma].split())[:80], (
        comma if "=>" not in text.bare[start:comma] else start
    )


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


# functions and macros


def _functions(
    pattern: re.Pattern[str], text: _Text, *, marks: bool = False
) -> Iterator[_Place]:
    """Functions by their names: `name` and the bracket after it are found by a
    pattern.
    """
    for found in pattern.finditer(text.bare):
        body = text.bare.find("{", text.close_of(found.end() - 1))
        if body < 0 or ";" in text.bare[text.close_of(found.end() - 1) : body]:
            continue  # it is only announced
        name = text.whole[found.start("name") : found.end("name")].strip('`" ')
        start = _after_boundary(text.bare, found.start()) if marks else found.start()
        yield _Place(
            start,
            body,
            text.close_of(body),
            name,
            text.code[start : found.start("name")],
        )


_MARK = re.compile(
    r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate"
    r"|Property|Theory)\b"
    r"|(?:#?\[)\s*(?:[\w:.]+\s*(?:\([^()\]]*\))?\s*,\s*)*(?:\w+(?:::|\.))*"
    r"(?:test|rstest|test_case|bench|quickcheck|wasm_bindgen_test|proptest|Test|Fact"
    r"|Theory|TestMethod|TestCase|DataTestMethod)\b"
)
_NAME = re.compile(r"(?P<name>`[^`\n]+`|\w+)\s*(?:<[^<>]*>)?\s*(?=\()")


def _marked(text: _Text) -> Iterator[_Place]:
    """Functions by what stands before them: `@Test`, `#[test]`, `[Fact]`."""
    seen: set[int] = set()
    place = 0
    for found in _MARK.finditer(text.bare):
        if found.start() < place:
            continue  # it was passed with one before it
        place = found.start()
        while True:  # past this mark, and those after it
            if text.bare.startswith(("#[", "["), place):
                place = text.close_of(text.bare.index("[", place))
            elif mark := re.compile(r"@[\w.]+\s*").match(text.bare, place):
                place = mark.end()
                place = (
                    text.close_of(place) if text.bare.startswith("(", place) else place
                )
            else:
                break
            place = _after_space(text.bare, place)
        head = re.compile(r"[^(){};]{0,1000}").match(text.bare, place)
        if head is None or not text.bare.startswith("(", head.end()):
            continue  # it stands before something else than a function
        name = next(
            iter([*_NAME.finditer(text.bare, place, head.end() + 1)][-1:]), None
        )
        if name is None or name.start() in seen:
            continue
        seen.add(name.start())
        after = text.close_of(text.bare.index("(", name.end()))
        body = re.compile(r"[^;{}]{0,1000}?\{").match(text.bare, after)
        end = text.close_of(body.end() - 1) if body else text.bare.find("\n", after)
        start = _after_boundary(text.bare, found.start())
        shown = text.whole[name.start("name") : name.end("name")].strip("`")
        yield _Place(
            start,
            name.end(),
            end if end > 0 else len(text.bare),
            shown,
            text.code[start : name.start()],
        )


def _after_boundary(bare: str, place: int) -> int:
    return max(bare.rfind(mark, 0, place) for mark in ";{}") + 1


_MACRO = re.compile(
    r"^[ \t]*(?:TYPED_)?(?:TEST|TEST_F|TEST_P|TEST_CASE\w*|SCENARIO"
    r"|BOOST_\w*TEST_CASE\w*|START_TEST|TEST_METHOD"
    r"|CTEST\d?|UNIT_TEST|SUBCASE|SECTION|ZTEST\w*|MU_TEST|Test|TEST_P)\s*(?=\()",
    re.MULTILINE,
)


def _macros(text: _Text) -> Iterator[_Place]:
    for found in _MACRO.finditer(text.bare):
        inside = text.close_of(found.end())
        name = " ".join(
            re.sub(r"[\s\"]+", " ", text.whole[found.end() + 1 : inside - 1])
            .replace(" ,", ",")
            .split()
        )
        body = _after_space(text.bare, inside)
        if text.bare[body : body + 1] == "{":
            is_off = "DISABLED_" in name
            skipped = Skipped.YES if is_off else Skipped.NO
            yield _Place(
                found.start(),
                body,
                text.close_of(body),
                name.replace("DISABLED_", ""),
                "",
                skipped=skipped,
            )


_PLAIN_C = re.compile(
    r"^(?:static[ \t]+)?(?:void|int|bool)"
    r"[ \t]+(?P<name>test\w*|\w+_test|should\w*)\s*(?=\()\(",
    re.MULTILINE,
)


def _c_functions(text: _Text) -> Iterator[_Place]:
    """A test that the file calls, and one that it does not call (any more)."""
    for place in _functions(_PLAIN_C, text):
        is_called = text.counts.get(place.name, 0) > 1
        yield replace(place, marks="", skipped=Skipped.NO if is_called else Skipped.YES)


_GO = re.compile(
    r"^func\s+(?:\(\s*\w+\s+\*?\w+\s*\)\s*)?(?P<name>(?:Test|Benchmark|Fuzz"
    r"|Example)\w*)\s*\(",
    re.MULTILINE,
)
_GO_RUN = re.compile(r"\.Run\s*(?=\(\s*[\"`])")


def _go_runs(text: _Text) -> Iterator[_Place]:
    for found in _GO_RUN.finditer(text.bare):
        name, inside = _first_argument(
            text, found.end() + 1, end := text.close_of(found.end())
        )
        yield _Place(found.start(), inside, end, name, "")


_JUNIT3 = re.compile(r"\bvoid\s+(?P<name>test\w+)\s*\(")
_SPOCK = re.compile(r"\bdef\s+(?P<name>\"[^\"\n]*\")\s*\(")
_SWIFT = re.compile(r"\bfunc\s+(?P<name>test\w*)\s*\(")
_PHP = re.compile(r"\bfunction\s+(?P<name>test\w*)\s*\(")
_SHELL = re.compile(r"^\s*(?:function\s+)?(?P<name>test\w*)\s*\(", re.MULTILINE)
_BATS = re.compile(
    r"^\s*@test\s+(?P<name>\"[^\"\n]*\"|'[^'\n]*')\s*(?P<open>\{)", re.MULTILINE
)


def _bats(text: _Text) -> Iterator[_Place]:
    for found in _BATS.finditer(text.bare):
        name = text.whole[found.start("name") + 1 : found.end("name") - 1]
        yield _Place(
            found.start(),
            found.start("open"),
            text.close_of(found.start("open")),
            name,
            "",
        )


# blocks by indentation

_INDENTED = re.compile(
    r"^(?P<indent>[ \t]*)"
    r"(?:@?(?P<off>[xf](?=it\b|describe\b|context\b|specify\b|scenario\b)"
    r"|pending\s+(?=\"))?"
    r"(?P<word>it|specify|test|should|scenario|describe|context|feature|testset"
    r"|property)"
    r"\b[ (]*(?P<quote>[\"'])"
    r"|(?:async\s+)?def\s+(?:self\.)?(?P<name>test\w*[?!]?)|class\s+(?P<group>\w+))",
    re.MULTILINE,
)


_LINES_OF_MARKS = re.compile(r"(?:^[ \t]*@[^\n]*\n)+\Z", re.MULTILINE)
_LINE = re.compile(r"^(?P<indent>[ \t]*)(?P<word>\S+)[^\n]*$", re.MULTILINE)
_NEAR = 2000
"""Characters above a declaration in which its marks are looked for."""


def _indented(text: _Text, *, ended: bool) -> Iterator[_Place]:
    """Blocks that go on as long as lines are further to the right; with `ended`, to a
    line that closes them.
    """
    for found in _INDENTED.finditer(text.bare):
        line_end = text.bare.find("\n", found.end())
        end = line_end = line_end if line_end >= 0 else len(text.bare)
        for line in _LINE.finditer(text.bare, end + 1):
            if len(line["indent"]) <= len(found["indent"]):
                is_close = ended and line["word"].startswith(("end", "}"))
                end = line.end() if is_close else end
                break
            end = line.end()
        name, inside = found["name"] or found["group"] or "", found.end()
        if found["quote"]:
            close = text.bare.find(found["quote"], found.end())
            name, inside = text.whole[found.end() : close], close + 1
        first = text.bare[inside:line_end]
        above = _LINES_OF_MARKS.search(
            text.code[max(0, found.start() - _NEAR) : found.start()]
        )
        is_off = found["off"] not in (None, "f") or bool(
            re.search(r"[:,(]\s*:?(?:skip|pending)\b", first)
        )
        yield _Place(
            found.start(),
            inside,
            end,
            name,
            above[0] if above else "",
            is_test=found["word"] not in ("describe", "context", "feature")
            and not found["group"],
            skipped=Skipped.YES if is_off else Skipped.NO,
        )


# languages


class _Language(Struct, frozen=True):
    noise: re.Pattern[str]
    finders: tuple[_Finder, ...] = ()


def _by_name(pattern: re.Pattern[str], *, marks: bool = False) -> _Finder:
    return partial(_functions, pattern, marks=marks)


_JAVASCRIPT = _Language(_NOISE_OF_JS, (_blocks,))
_JVM = _Language(_NOISE_OF_C, (_marked, _by_name(_JUNIT3), _by_name(_SPOCK), _blocks))
_C = _Language(_NOISE_OF_C, (_macros, _c_functions))
_RUBY = _Language(_NOISE_OF_SCRIPTS, (partial(_indented, ended=True),))
_SCRIPT = _Language(_NOISE_OF_SCRIPTS, (_bats, _by_name(_SHELL)))
_LANGUAGES = {
    **dict.fromkeys(
        (
            ".js",
            ".jsx",
            ".mjs",
            ".cjs",
            ".ts",
            ".tsx",
            ".mts",
            ".cts",
            ".vue",
            ".coffee",
            ".dart",
        ),
        _JAVASCRIPT,
    ),
    **dict.fromkeys((".java", ".kt", ".kts", ".groovy", ".scala"), _JVM),
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".m", ".mm"), _C),
    **dict.fromkeys((".rb", ".ex", ".exs", ".cr", ".jl"), _RUBY),
    **dict.fromkeys(SCRIPTS, _SCRIPT),
    ".py": _Language(_NOISE_OF_SCRIPTS, (partial(_indented, ended=False),)),
    ".go": _Language(_NOISE_OF_GO, (_by_name(_GO), _go_runs)),
    ".rs": _Language(_NOISE_OF_C, (_marked,)),
    ".cs": _Language(_NOISE_OF_C, (_marked,)),
    ".swift": _Language(_NOISE_OF_C, (_by_name(_SWIFT), _marked)),
    ".php": _Language(_NOISE_OF_PHP, (_by_name(_PHP, marks=True), _marked, _blocks)),
    ".lua": _Language(_NOISE_OF_LUA, (_blocks,)),
    ".r": _Language(_NOISE_OF_SCRIPTS, (_blocks,)),
}
_UNKNOWN = _Language(_noise(r"(?!)", r"(?!)"))
"""Nothing is taken for a comment."""
_SKIP_WITHIN = re.compile(
    r"\b(?:t|b|this|tc|self|pytest)\s*\.\s*(?:Skip\w*|skip\w*)\s*\(|\b(?:GTEST_SKIP"
    r"|markTestSkipped|markTestIncomplete|XCTSkip\w*)\b"
    r"|\bTEST_IGNORE\w*|\bAssert\.(?:Ignore|Inconclusive)\s*\(|^\s*(?:skip"
    r"|pending)\b(?!\s*[=:.])",
    re.MULTILINE,
)
_SKIP_MARK = re.compile(
    r"@tag\s*:?skip|@(?:\w+\.)*(?:[sS]kip\w*|xfail|expectedFailure)\b"
    r"|@(?:\w+\.)*(?:Disabled|Ignore|Ignored|DisabledIf\w*|DisabledOn\w*|EnabledIf\w*"
    r"|EnabledOn\w*)\b"
    r"|#\[\s*(?:ignore|cfg_attr\([^\]]*ignore)|\[\s*(?:[^\]\n]*,\s*)?(?:Ignore"
    r"|Explicit|Skip)\b|\bSkip\s*=|\.disabled\("
)
_ON_A_CONDITION = re.compile(r"@\w*(?:If|On)\w*|cfg_attr")
_SKIP_FILE = re.compile(
    r"^//\s*(?:go:build|\+build)\s+ignore\b|^@file:Ignore|^\s*@moduletag\s*:?\s*skip",
    re.MULTILINE,
)


def read_plainly(suffix: str, text: str) -> tuple[Declared, ...]:
    """The tests that are declared; else the file as the one test that it may be as a
    whole.
    """
    # data that tests go by, such as an expected output: it is there or it is not
    if suffix not in CODE:
        return (
            Declared(
                "", text, "", frozenset(), frozenset(), 0, is_empty=not text.strip()
            ),
        )
    language = _LANGUAGES.get(suffix, _UNKNOWN)
    parts = _Text.of(text, language.noise)
    found = sorted(
        (each for finder in language.finders for each in finder(parts)),
        key=lambda each: each.start,
    )
    found = [
        each
        for number, each in enumerate(found)
        if not number or each.inside != found[number - 1].inside
    ]
    tests = tuple(_declared(parts, found))
    return tests or _as_a_whole(parts, suffix, is_known=language is not _UNKNOWN)


def _declared(text: _Text, found: list[_Place]) -> Iterator[Declared]:
    all_skipped = Skipped.YES if _SKIP_FILE.search(text.whole) else Skipped.NO
    is_some_alone = any(each.is_alone for each in found)
    longest = _MOST_READ // max(len(found), 1)
    found = [
        (
            replace(each, end=min(each.end, each.inside + longest))
            if each.is_test
            else each
        )
        for each in found
    ]
    starts = [each.start for each in found]
    skips = [_skip_of(text, each) for each in found]
    around: list[int] = []
    for number, each in enumerate(found):
        around = [
            outer for outer in around[-_DEEPEST:] if found[outer].end > each.start
        ]
        chain = (*around, number)
        if each.is_test:
            skipped = max(all_skipped, *(skips[one] for one in chain))
            if is_some_alone and not any(found[one].is_alone for one in chain):
                inner = found[number : bisect_left(starts, each.end)]
                skipped = skipped if any(one.is_alone for one in inner) else Skipped.YES
            yield _as_declared(
                text, each, " > ".join(found[one].name for one in chain), skipped
            )
        around.append(number)


def _skip_of(text: _Text, each: _Place) -> Skipped:
    found = each.skipped
    if mark := _SKIP_MARK.search(each.marks):
        found = max(
            found, Skipped.PERHAPS if _ON_A_CONDITION.search(mark[0]) else Skipped.YES
        )
    if each.is_test and (skip := _SKIP_WITHIN.search(text.bare, each.inside, each.end)):
        body = text.bare[each.inside : skip.start()]
        depth = body.count("{") - body.count("}")
        in_branch = (
            depth > 1 or re.search(r"\bif\b[^\n;{}]*\Z|\bunless\b", body) is not None
        )
        after = text.bare[skip.end() : text.bare.find("\n", skip.end())]
        in_branch |= re.search(r"\b(?:if|unless)\b", after) is not None
        found = max(found, Skipped.PERHAPS if in_branch else Skipped.YES)
    return found


def _as_declared(text: _Text, each: _Place, name: str, skipped: Skipped) -> Declared:
    code, bare = _live(text, each)
    inner = bare[bare.find("{") + 1 :] if "{" in bare else bare
    tokens = set(_WORD.findall(inner)) - _IDLE
    checks = len(_CHECK.findall(bare)) - len(_IDLE_CHECK.findall(bare))
    calls = frozenset(_CALL.findall(bare)) - _NO_CALLS
    return Declared(
        name,
        body=_squeezed(f"{each.marks} {code}"),
        # the names of things are all one
        shape=_squeezed(_WORD.sub("_", bare) + " ".join(sorted(_values(code)))),
        words=frozenset(
            {
                *(call for call in calls if not _CHECK.match(f"{call}(")),
                *_values(each.marks + code),
            }
        ),
        calls=calls,
        checks=max(checks, 0),
        is_empty=not tokens and not re.search(r"\d", inner),
        skipped=skipped,
        cases=None if _TABLE.search(each.marks + code) else (),
    )


_TABLE = re.compile(
    r"\beach\b|\bfor\b|\[\]struct|@CsvSource|@\w*Source\b|#\[case|InlineData"
    r"|TestCase\(|dataProvider"
)
"""A test that is run for several sets of values; how many cannot be told."""


def _live(text: _Text, each: _Place) -> tuple[str, str]:
    """A body until it returns."""
    code, bare = text.code[each.inside : each.end], text.bare[each.inside : each.end]
    for found in re.finditer(r"\breturn\s*(?:;|\n)", bare):
        before = bare[: found.start()]
        if before.count("{") - before.count("}") == 1 and not re.search(
            r"\bif\b[^\n{}]*\Z", before
        ):
            return code[: found.start()], bare[: found.start()]
    return code, bare


_VALUE = re.compile(
    r"""(?<![\w.])\d[\w.]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"""
)
_SAID = re.compile(
    r"^[\"'`][^\"'`]*(?:%[a-z+#]|\bexpected\b|\bgot\b|\bwant\b)", re.IGNORECASE
)


def _values(code: str) -> set[str]:
    found = (value for value in _VALUE.findall(code) if not _SAID.search(value))
    return {f"'{value[1:-1]}'" if value[0] in "\"'`" else value for value in found}


_SPACE = re.compile(r" (?=[^\w ])|(?<=[^\w ]) ")


def _squeezed(code: str) -> str:
    return _SPACE.sub("", " ".join(code.split())).rstrip(";,")


def _as_a_whole(text: _Text, suffix: str, *, is_known: bool) -> tuple[Declared, ...]:
    """A file without declared tests: a script, or a program with assertions."""
    lines = tuple(
        " ".join(line.split()) for line in text.code.splitlines() if line.strip()
    )
    if is_known and suffix not in SCRIPTS and not _is_program(text):
        return ()
    checks = sum(
        _CHECK.search(line) is not None and _IDLE_CHECK.search(line) is None
        for line in text.bare.splitlines()
    )
    return (
        Declared(
            "",
            body="\n".join(lines),
            shape="",
            words=frozenset(),
            calls=frozenset(_CALL.findall(text.bare)),
            checks=checks,
            is_empty=not any(
                line not in ("#!/bin/sh", "set -e", "exit 0", "true", ":")
                for line in lines
            ),
            lines=lines,
        ),
    )


def _is_program(text: _Text) -> bool:
    """Whether assertions are made when the file is run: at its top, or in a program."""
    checks = [found.start() for found in _CHECK.finditer(text.bare)]
    if not checks:
        return False
    if re.search(r"\bmain\s*\(", text.bare):
        return True
    depth, changes = 0, []
    for found in re.finditer(r"[{}]", text.bare):
        depth += 1 if found[0] == "{" else -1
        changes.append((found.start(), depth))
    places = [place for place, _ in changes]
    return any(
        not (at := bisect_left(places, check)) or changes[at - 1][1] <= 0
        for check in checks
    )
