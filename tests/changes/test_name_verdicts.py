"""The table that decides whether a text names the file of a block, cell by cell."""

from cdd_agent.changes.formats.verdicts import Likeness, NameForm, find_likeness, judge
from tests.support.tables import each_row

EXAMPLES = {
    Likeness.PHRASE: ["Release Notes", "the first step"],
    Likeness.LONG_SPACED: ["all of my notes.txt", "a b c d.py"],
    Likeness.SPACED: ["my notes.txt", "docs/a b c.md"],
    Likeness.NOTHING: ["v1.2", "add(1)", "line-numbers", "http://a.b/c", "12"],
    Likeness.SYSTEM_PATH: ["/etc/hosts", "C:\\x.py", "~/.profile", "//host/x"],
    Likeness.SERVER_PATH: ["/users", "/api/login"],
    Likeness.FILE: ["src/app.py", "Makefile", ".env", "a/b.unknown"],
    Likeness.WORD_FILE: ["README", "CHANGELOG", "express.js"],
    Likeness.CAPTION: ["Usage", "output", "Before"],
    Likeness.WORD: ["install", "Parser", "x"],
    Likeness.NAME: ["camelCase", "a-b", "Input/Output"],
    Likeness.SIGNED_NAME: ["NEWS", "LICENSE-MIT", "os.path"],
    Likeness.PATH_NAME: ["bin/deploy", "tools/lint", "Tools/Lint.x/y"],
}
PLAIN, SHELL, CODE = ["", "text", "gherkin"], ["bash", "zsh"], ["python", "js"]
KINDS = {"plain": PLAIN, "shell": SHELL, "code": CODE}
ROWS = """
PHRASE       no   plain  ? - - - - - -
PHRASE       no   shell  ? - - - - - -
PHRASE       no   code   ? - - - - - -
PHRASE       yes  plain  ? - - - - - -
PHRASE       yes  shell  ? - - - - - -
PHRASE       yes  code   ? - - - - - -
LONG_SPACED  no   plain  F F F F - - -
LONG_SPACED  no   shell  F F F F - - -
LONG_SPACED  no   code   F F F F - - -
LONG_SPACED  yes  plain  F F F F F F F
LONG_SPACED  yes  shell  F F F F F F F
LONG_SPACED  yes  code   F F F F F F F
SPACED       no   plain  F F F F ? ? ?
SPACED       no   shell  F F F F ? ? ?
SPACED       no   code   F F F F ? ? ?
SPACED       yes  plain  F F F F F F F
SPACED       yes  shell  F F F F F F F
SPACED       yes  code   F F F F F F F
NOTHING      no   plain  - - - - - - -
NOTHING      no   shell  - - - - - - -
NOTHING      no   code   - - - - - - -
NOTHING      yes  plain  - - - - - - -
NOTHING      yes  shell  - - - - - - -
NOTHING      yes  code   - - - - - - -
SYSTEM_PATH  no   plain  F F F F F F F
SYSTEM_PATH  no   shell  F F F F F F F
SYSTEM_PATH  no   code   F F F F F F F
SYSTEM_PATH  yes  plain  F F F F F F F
SYSTEM_PATH  yes  shell  F F F F F F F
SYSTEM_PATH  yes  code   F F F F F F F
SERVER_PATH  no   plain  F ? ? ? ? ? ?
SERVER_PATH  no   shell  F ? ? ? ? ? ?
SERVER_PATH  no   code   F ? ? ? ? ? ?
SERVER_PATH  yes  plain  F ? ? ? ? ? ?
SERVER_PATH  yes  shell  F ? ? ? ? ? ?
SERVER_PATH  yes  code   F ? ? ? ? ? ?
FILE         no   plain  F F F F F F F
FILE         no   shell  F F F F F F F
FILE         no   code   F F F F F F F
FILE         yes  plain  F F F F F F F
FILE         yes  shell  F F F F F F F
FILE         yes  code   F F F F F F F
WORD_FILE    no   plain  F F F F ? ? ?
WORD_FILE    no   shell  F F F F ? ? -
WORD_FILE    no   code   F F F F ? ? -
WORD_FILE    yes  plain  F F F F F F F
WORD_FILE    yes  shell  F F F F ? ? ?
WORD_FILE    yes  code   F F F F ? ? ?
CAPTION      no   plain  F - - - - - -
CAPTION      no   shell  F - - - - - -
CAPTION      no   code   F - - - - - -
WORD         no   plain  F ? - ? ? - -
WORD         no   shell  F ? - - - - -
WORD         no   code   F ? - - - - -
WORD         yes  plain  F ? ? ? ? ? ?
WORD         yes  shell  F ? ? ? ? ? ?
WORD         yes  code   F ? ? ? ? ? ?
NAME         no   plain  F ? ? ? ? ? -
NAME         no   shell  F ? ? ? ? ? -
NAME         no   code   F ? ? ? ? ? -
NAME         yes  plain  F F F F F F F
NAME         yes  shell  F ? ? ? ? ? ?
NAME         yes  code   F ? ? ? ? ? ?
SIGNED_NAME  no   plain  F ? ? ? ? ? ?
SIGNED_NAME  no   shell  F ? ? ? ? ? -
SIGNED_NAME  no   code   F ? ? ? ? ? -
SIGNED_NAME  yes  plain  F F F F F F F
SIGNED_NAME  yes  shell  F ? ? ? ? ? ?
SIGNED_NAME  yes  code   F ? ? ? ? ? ?
PATH_NAME    no   plain  F ? ? ? ? ? ?
PATH_NAME    no   shell  F ? ? ? ? ? -
PATH_NAME    no   code   F ? ? ? ? ? -
PATH_NAME    yes  plain  F F F F F F F
PATH_NAME    yes  shell  F F F F F F F
PATH_NAME    yes  code   F ? ? ? ? ? ?
"""
"""What a text looks like, whether the task names it, the language of the block, and the
verdicts: F a file, ? perhaps a file, - none.
"""


def rows() -> list[list[str]]:
    return [row.split() for row in ROWS.strip().splitlines()]


@each_row(("likeness", "names"), EXAMPLES.items())
def test_what_a_text_looks_like(likeness: Likeness, names: list[str]) -> None:
    for name in names:
        for language in (*PLAIN, *SHELL, *CODE):
            found = find_likeness(name, language, is_named=False)
            assert found is likeness, (name, language)


def test_a_caption_that_the_task_names_is_a_word() -> None:
    for name in EXAMPLES[Likeness.CAPTION]:
        assert find_likeness(name, "", is_named=True) is Likeness.WORD


def test_each_cell_of_the_table() -> None:
    wrong: list[str] = []
    for likeness, is_named, kind, *verdicts in rows():
        for form, verdict in zip(NameForm, verdicts, strict=True):
            for name in EXAMPLES[Likeness[likeness]]:
                for language in KINDS[kind]:
                    found = judge(name, form, language, is_named=is_named == "yes")
                    if found.value != verdict:
                        wrong.append(f"{name!r} {form.name} {language!r} {is_named}")
    assert wrong == []


def test_the_rows_are_complete() -> None:
    cells = {(likeness, is_named, kind) for likeness, is_named, kind, *_ in rows()}
    missing = {
        (likeness.name, is_named, kind)
        for likeness in Likeness
        for is_named in ("yes", "no")
        for kind in KINDS
    } - cells
    assert missing == {("CAPTION", "yes", kind) for kind in KINDS}
