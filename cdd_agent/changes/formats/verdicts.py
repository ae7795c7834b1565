"""The table that decides whether a text names the file of a code block.

Four things decide: the form of the text, its likeness to a name, whether the task names
it, and the language of the block, because titles above code are rarely files.
"""

from enum import Enum, IntEnum, auto

from cdd_agent.changes.formats.file_names import (
    SHELLS,
    WORDS,
    Grade,
    grade_name,
    is_absolute,
    is_caption,
    is_code,
    is_in_capitals,
    is_spaced,
)


class NameForm(IntEnum):
    """The form in which a reply gives a name: the columns of the table."""

    DECLARED = 0
    """`text:NAME`, `file=NAME`, `File: NAME`, or a tag: the reply declares a file."""
    TITLE = 1
    """`title=NAME` in the info string."""
    WORD_AFTER_LANGUAGE = 2
    """`text NAME` in the info string."""
    BACKTICKS = 3
    HEADED = 4
    """A heading, a bold line, or a plain line."""
    LABELLED = 5
    """A heading, a bold line, or a plain line with a label: `Update NAME`."""
    COMMENT = 6
    """A comment in the first line of the block."""


class Likeness(Enum):
    """The likeness of a text to a name, in the order in which the kinds are tried."""

    PHRASE = auto()
    """Several words that do not end as a file's name does."""
    LONG_SPACED = auto()
    """A file's name with three spaces or more: `how to make a file.txt`."""
    SPACED = auto()
    """A file's name with one or two spaces: `my notes.txt`."""
    NOTHING = auto()
    """Not a name: `v1.2`, `a(b)`, `--flag`."""
    SYSTEM_PATH = auto()
    """A path outside of every project: `/etc/hosts`, `C:\\x.py`."""
    SERVER_PATH = auto()
    """An absolute path that could be an address of a server: `/users`."""
    FILE = auto()
    """Hardly anything but a file's name: `app.py`, `Makefile`."""
    WORD_FILE = auto()
    """A file's name that is a word of titles, too: `README`, `express.js`."""
    CAPTION = auto()
    """A word about what a block shows: `Usage`, `Output`, `PowerShell`."""
    WORD = auto()
    """Any other word."""
    NAME = auto()
    """Not a word, and perhaps the name of something else: `camelCase`, `a-b`."""
    SIGNED_NAME = auto()
    """A name in capitals or with a dot: `NEWS`, `os.path`."""
    PATH_NAME = auto()
    """A name with slashes in lower case or with a dot: `bin/deploy`."""


class BlockText(Enum):
    """The kind of a code block's language."""

    PLAIN = auto()
    SHELL = auto()
    CODE = auto()


class BlockVerdict(Enum):
    """The decision about a text."""

    FILE = "F"
    """The name of the block's file."""
    POSSIBLE = "?"
    """Perhaps the name of the block's file: the block is doubtful."""
    NONE = "-"
    """Not the name of the block's file."""


_ROWS = """\
PHRASE       *          *            ?------
LONG_SPACED  unnamed    *            FFFF---
LONG_SPACED  named      *            FFFFFFF
SPACED       unnamed    *            FFFF???
SPACED       named      *            FFFFFFF
NOTHING      *          *            -------
SYSTEM_PATH  *          *            FFFFFFF
SERVER_PATH  *          *            F??????
FILE         *          *            FFFFFFF
WORD_FILE    unnamed    PLAIN        FFFF???
WORD_FILE    unnamed    SHELL,CODE   FFFF??-
WORD_FILE    named      PLAIN        FFFFFFF
WORD_FILE    named      SHELL,CODE   FFFF???
CAPTION      *          *            F------
WORD         unnamed    PLAIN        F?-??--
WORD         unnamed    SHELL,CODE   F?-----
WORD         named      *            F??????
NAME         unnamed    *            F?????-
NAME         named      PLAIN        FFFFFFF
NAME         named      SHELL,CODE   F??????
SIGNED_NAME  unnamed    PLAIN        F??????
SIGNED_NAME  unnamed    SHELL,CODE   F?????-
SIGNED_NAME  named      PLAIN        FFFFFFF
SIGNED_NAME  named      SHELL,CODE   F??????
PATH_NAME    unnamed    PLAIN        F??????
PATH_NAME    unnamed    SHELL,CODE   F?????-
PATH_NAME    named      PLAIN,SHELL  FFFFFFF
PATH_NAME    named      CODE         F??????
"""
"""Columns: the likeness of the text, whether the task names it, the kinds of language,
and a verdict for each form in the order of `NameForm`. `*` stands for all.
"""


def _read_table() -> dict[tuple[Likeness, bool, BlockText], str]:
    table: dict[tuple[Likeness, bool, BlockText], str] = {}
    for row in _ROWS.splitlines():
        likeness, task, languages, verdicts = row.split()
        for kind in BlockText:
            if languages != "*" and kind.name not in languages:
                continue
            if task in ("*", "unnamed"):
                table[Likeness[likeness], False, kind] = verdicts
            if task in ("*", "named"):
                table[Likeness[likeness], True, kind] = verdicts
    return table


_TABLE = _read_table()


def judge(name: str, form: NameForm, language: str, *, is_named: bool) -> BlockVerdict:
    """Decide about a name that is not a known file. `is_named` is true if the task
    names it.
    """
    likeness = find_likeness(name, language, is_named=is_named)
    return BlockVerdict(_TABLE[likeness, is_named, find_text_kind(language)][form])


def find_text_kind(language: str) -> BlockText:
    """Return the kind of a block's language."""
    if language in SHELLS:
        return BlockText.SHELL
    if is_code(language):
        return BlockText.CODE
    return BlockText.PLAIN


def find_likeness(name: str, language: str, *, is_named: bool) -> Likeness:
    """Return the likeness of a text to a name. A name in the task is no caption."""
    if " " in name:
        return _find_likeness_of_words(name)
    name_grade = grade_name(name, language)
    if name_grade is Grade.NONE:
        return Likeness.NOTHING
    if is_absolute(name):
        is_file = name_grade is Grade.FILE
        return Likeness.SYSTEM_PATH if is_file else Likeness.SERVER_PATH
    if name_grade is Grade.FILE:
        return Likeness.FILE
    if name in WORDS:
        return Likeness.WORD_FILE
    # `PowerShell` above a block of it, but not `makefile`
    is_language = name.lower() == language and not language.endswith("file")
    if not is_named and (is_caption(name) or is_language):
        return Likeness.CAPTION
    if name_grade is Grade.WORD:
        return Likeness.WORD
    return _find_likeness_by_signs(name)


def _find_likeness_of_words(name: str) -> Likeness:
    if not is_spaced(name):
        return Likeness.PHRASE
    return Likeness.SPACED if name.count(" ") < 3 else Likeness.LONG_SPACED


def _find_likeness_by_signs(name: str) -> Likeness:
    if "/" in name and (name.islower() or "." in name):
        return Likeness.PATH_NAME
    if "." in name or is_in_capitals(name):
        return Likeness.SIGNED_NAME
    return Likeness.NAME
