"""The table that decides whether a text names the file of a code block.

Three things decide: the form in which the text is given, what the text looks like, and
whether the words of the task name it. The language of the block is the fourth: titles
above code are rarely files.
"""

from enum import Enum, IntEnum, auto

from cdd_agent.changes.formats.file_names import (
    SHELLS,
    WORDS,
    Grade,
    grade,
    is_absolute,
    is_caption,
    is_code,
    is_in_capitals,
    is_spaced,
)


class NameForm(IntEnum):
    """How a reply gives a name. The values are the columns of the table."""

    SAID = 0
    """`text:NAME`, `file=NAME`, `File: NAME`, a tag: it says that this is a file."""
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
    """What a text looks like, in the order in which the kinds are tried."""

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
    """A word that says what a block shows: `Usage`, `Output`, `PowerShell`."""
    WORD = auto()
    """Any other word."""
    NAME = auto()
    """Not a word, and perhaps the name of something else: `camelCase`, `a-b`."""
    SIGNED_NAME = auto()
    """A name in capitals or with a dot: `NEWS`, `os.path`."""
    PATH_NAME = auto()
    """A name with slashes in lower case or with a dot: `bin/deploy`."""


class BlockText(Enum):
    """The kind of language that a code block says to be in."""

    PLAIN = auto()
    SHELL = auto()
    CODE = auto()


class Verdict(Enum):
    """What a text in this place is."""

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
"""What the text looks like; whether the task names it; the kinds of language; and a
verdict for each form, in the order of `NameForm`. `*` stands for all.
"""


def _read_table() -> dict[tuple[Likeness, bool, BlockText], str]:
    table: dict[tuple[Likeness, bool, BlockText], str] = {}
    for row in _ROWS.splitlines():
        likeness, task, languages, verdicts = row.split()
        kinds = [
            kind for kind in BlockText if languages == "*" or kind.name in languages
        ]
        for kind in kinds:
            for is_named in (False, True):
                if task in ("*", "named" if is_named else "unnamed"):
                    table[Likeness[likeness], is_named, kind] = verdicts
    return table


_TABLE = _read_table()


def judge(name: str, form: NameForm, language: str, *, is_named: bool) -> Verdict:
    """Decide about a name that no one knows to be a file. `is_named`: the words of the
    task name it.
    """
    likeness = find_likeness(name, language, is_named=is_named)
    return Verdict(_TABLE[likeness, is_named, find_text_kind(language)][form])


def find_text_kind(language: str) -> BlockText:
    """Return the kind of a block's language."""
    if language in SHELLS:
        return BlockText.SHELL
    if is_code(language):
        return BlockText.CODE
    return BlockText.PLAIN


def find_likeness(name: str, language: str, *, is_named: bool) -> Likeness:
    """Return what a text looks like. A caption that the task names is no caption."""
    if " " in name:
        if not is_spaced(name):
            return Likeness.PHRASE
        return Likeness.SPACED if name.count(" ") < 3 else Likeness.LONG_SPACED
    found = grade(name, language)
    if found is Grade.NONE:
        return Likeness.NOTHING
    if is_absolute(name):
        return Likeness.SYSTEM_PATH if found is Grade.FILE else Likeness.SERVER_PATH
    if found is Grade.FILE:
        return Likeness.FILE
    if name in WORDS:
        return Likeness.WORD_FILE
    # `PowerShell` above a block of it, but not `makefile`
    is_language = name.lower() == language and not language.endswith("file")
    if not is_named and (is_caption(name) or is_language):
        return Likeness.CAPTION
    if found is Grade.WORD:
        return Likeness.WORD
    if "/" in name and (name.islower() or "." in name):
        return Likeness.PATH_NAME
    if "." in name or is_in_capitals(name):
        return Likeness.SIGNED_NAME
    return Likeness.NAME
