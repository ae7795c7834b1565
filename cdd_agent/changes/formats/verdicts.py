"""The table that decides whether a text names the file of a code block.

Its inputs: the text's form, its likeness to a name, whether the task names it, and the
block's language, because titles above code are rarely files.
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
    """Forms of a name in a reply: the columns of the table."""

    DECLARED = 0
    """`text:NAME`, `file=NAME`, `File: NAME`, or a tag."""
    TITLE = 1
    """`title=NAME` in the info string."""
    WORD_AFTER_LANGUAGE = 2
    """`text NAME` in the info string."""
    BACKTICKS = 3
    HEADED = 4
    """A heading, a bold line, or a plain line."""
    LABELLED = 5
    """The same with a label: `Update NAME`."""
    COMMENT = 6
    """In the first line of the block."""


class Likeness(Enum):
    """A text's likeness to a name. Members are tried in order."""

    PHRASE = auto()
    """Words without the ending of a file name."""
    LONG_SPACED = auto()
    """A file name with three or more spaces: `how to make a file.txt`."""
    SPACED = auto()
    """A file name with one or two spaces: `my notes.txt`."""
    NOTHING = auto()
    """Not a name: `v1.2`, `a(b)`, `--flag`."""
    SYSTEM_PATH = auto()
    r"""Outside of any project: `/etc/hosts`, `C:\x.py`."""
    SERVER_PATH = auto()
    """Absolute, but perhaps a web address: `/users`."""
    FILE = auto()
    """Hardly anything but a file name: `app.py`, `Makefile`."""
    WORD_FILE = auto()
    """A file name that also occurs in titles: `README`, `express.js`."""
    CAPTION = auto()
    """A word about the block: `Usage`, `Output`, `PowerShell`."""
    WORD = auto()
    NAME = auto()
    """Perhaps the name of something else: `camelCase`, `a-b`."""
    SIGNED_NAME = auto()
    """In capitals or with a dot: `NEWS`, `os.path`."""
    PATH_NAME = auto()
    """With slashes, in lower case or with a dot: `bin/deploy`."""


class BlockText(Enum):
    PLAIN = auto()
    SHELL = auto()
    CODE = auto()


class BlockVerdict(Enum):
    FILE = "F"
    POSSIBLE = "?"
    """The block is doubtful."""
    NONE = "-"


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
"""Columns: the likeness, whether the task names the text, the kinds of language, and a
verdict for each `NameForm` in order. `*` matches all.
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
    """Decide about a name that is not a known file."""
    likeness = find_likeness(name, language, is_named=is_named)
    return BlockVerdict(_TABLE[likeness, is_named, find_text_kind(language)][form])


def find_text_kind(language: str) -> BlockText:
    if language in SHELLS:
        return BlockText.SHELL
    if is_code(language):
        return BlockText.CODE
    return BlockText.PLAIN


def find_likeness(name: str, language: str, *, is_named: bool) -> Likeness:
    """A name in the task is never a caption."""
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
    # `PowerShell` above a PowerShell block, but not `makefile`
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
