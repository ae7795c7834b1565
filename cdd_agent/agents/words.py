"""Guesses from its words what a typed line is: a mistyped command, a shell command,
half a sentence, or a sentence.

The guess decides one thing only: whether the user is asked before anything happens.
In doubt the user is asked; a line that begins with `>` is for the model,
whatever it looks like.
"""

import difflib
import re
from collections.abc import Callable, Collection


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FOR_THE_MODEL = ">"
LEAVING = _set("exit quit q q! :q :q! :wq :x")
"""Words that leave the shell from everywhere."""
_ELSEWHERE = {
    **dict.fromkeys(("?", "??", "h", "man", ":h", ":help"), "help"),
    **dict.fromkeys((*LEAVING, "bye", "logout", "leave"), "exit"),
    "cls": "clear",
    "reset": "clear",
    "models": "model",
    "tickets": "list",
}
_PROGRAMS = _set("""
    apt awk bash brew cargo cat cd cdd chmod chown cp curl docker emacs gh git gradle
    grep htop kubectl la ll ls mkdir mv mvn mypy nano node npm npx nvim pip pip3 pnpm
    poetry ps pwd pytest python python3 rg rm rmdir ruff scp sed sh ssh sudo svn tar
    tmux tox uv vi vim wget whoami yarn zsh
    """)
_AFTER_A_NAME = _set(
    "and are can cannot could does for has have in is may might must or should was were"
    " will with would"
)
"""Words that make a sentence of a program's name: `git must be optional`."""
_BEFORE_A_COMMAND = re.compile(r"\$\s|[A-Za-z_]\w*=\S*\s|(?:\.{1,2}|~)/")
"""A prompt, a variable, a path."""
_AS_IN_A_TERMINAL = re.compile(r"(?:^|\s)--?\w|&&|\|\||\s\|\s|\s>>?\s")
"""An option, an operator."""
_SMALL = _set("""
    a about after again all already also am an and any are as at back be because been
    before being but by can cannot could did do does doing down each either else ever
    every for from get give go going had has have he hello her here hers hey hi him his
    how i if in instead into is it its itself just keep later let lot many may maybe me
    might mine more most much must my never no nor not nothing now of off oh ok okay on
    once one only or other our out over own perhaps please rather really same shall she
    should since so some something soon still such than that the their them then there
    these they this those though through to too until up us very want was we well were
    what when where whether which while who whose why will with would yes yet you your
    abort agent anything cdd chat current everything executor first last previous
    proceed rerun restart resume revert rollback session shell ticket actually bad bit
    cancel change changes cool done fine forget good great guess hang hm hmm hold idea
    know lgtm look looks mean mind minute moment nice nope oops perfect ready right run
    running say second see seems show sorry start step steps stop sure tell thank thanks
    thing think try uh um wait whatever wow wrong yeah yep aren couldn didn doesn don
    hasn haven isn ll shouldn ve wasn weren won wouldn
    """)
"""Words that do not say what a step should do: those of grammar, and those of talk."""
_MORE_TO_COME = _set("""
    a about add an and are as at be because been but by can cannot could did do does
    each every for from get had has have his how i if instead into is its keep let like
    make may might must my nor not of or our should since so than that the their then
    these this those to until use using very via was we were when where whether which
    while who whose why will with without would your
    """)
"""Words that a sentence hardly ever ends with."""
_ASKS = re.compile(
    r"(?:what|why|who|whose|how)\b"
    r"|(?:where|when|which)\s+(?:is|are|was|were|do|does|did|will|would|can|could"
    r"|should|has|have)\b"
    r"|(?:is|are|was|were|does|did|can|could|would|will|should|has)\s+(?:i|we|you|he"
    r"|she|it|they|this|that|there|the)\b"
    r"|do\s+(?:i|we|you|they)\b",
    re.IGNORECASE,
)
_STARTS_WITH_SKIP = re.compile(r"[\W\d_]*skip", re.IGNORECASE)
"""`skip`, also as part of a word, in quotes or behind a bullet."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Letters of scripts that put no spaces between words: two of them count as one."""
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+")
_BREAK = re.compile(r"\s+because\s|[,.;:!–—]\s|\s-\s", re.IGNORECASE)
"""Where the reason for a command can begin."""
_FEWEST_WORDS = 3
"""The fewest words of guidance."""
_MOST_WORDS = 8
"""The most words of a command, with the words that users put around it."""


def shell_name(text: str) -> str:
    """The name in this shell of what other shells and editors call by another one."""
    return _ELSEWHERE.get(text.lower(), text.lower())


def command_meant(
    text: str, names: Collection[str], is_command: Callable[[str], bool], *, near: float
) -> str | None:
    """The command that the line is, but for slips of a key, and for words around it:
    `please skip this step`.
    """
    words = words_of(text)
    if len(words) > _MOST_WORDS:
        return None
    telling = [word for word in words if word in names or word not in _SMALL]
    for candidate in (words, telling):
        line = " ".join(_nearest(word, names, near) for word in candidate)
        if line and is_command(line):
            return line
    return None


def without_its_reason(text: str) -> str:
    """The line up to where the reason for a command could begin."""
    return _BREAK.split(text, maxsplit=1)[0]


def slash_meant(text: str, slash: Collection[str]) -> str | None:
    """The slash command that a line is but for the slash: `diff feature-x 3`."""
    first, *others = words_of(text) or [""]
    name = shell_name(first)
    return (
        name
        if name in slash and len(others) <= _FEWEST_WORDS and _SMALL.isdisjoint(others)
        else None
    )


def starts_with_skip(text: str) -> bool:
    """True if the first letters of the line are those of `skip`."""
    return _STARTS_WITH_SKIP.match(text) is not None


def is_for_a_terminal(text: str) -> bool:
    """A program's name with what is no sentence about it, or the signs of a command
    line.
    """
    first, *others = text.lower().split() or [""]
    if first in _PROGRAMS:
        return not others or others[0] not in _AFTER_A_NAME
    if _BEFORE_A_COMMAND.match(text):
        return True
    return _AS_IN_A_TERMINAL.search(text) is not None and _SMALL.isdisjoint(
        words_of(text)
    )


def is_question(text: str) -> bool:
    """As people ask who leave out the question mark."""
    return _ASKS.match(text) is not None


def is_unfinished(text: str) -> bool:
    """A line that ends in its middle."""
    words = words_of(text)
    if not words or text.endswith(
        (",", ";", ":", "-", "–", "—", "(", "[", "{", "…", "...", "/", "\\", "=")
    ):
        return True
    is_open = (
        text.count("`") % 2 or text.count('"') % 2 or text.count("(") > text.count(")")
    )
    return bool(is_open) or (
        words[-1] in _MORE_TO_COME and not text.endswith((".", "!"))
    )


def says_something(text: str, names: Collection[str]) -> bool:
    """It has the length of a sentence, and two words that can be about the work, of
    which one is no command's name.
    """
    words = words_of(text)
    telling = {word for word in words if not word.isdigit() and word not in _SMALL}
    return (
        len(words) >= _FEWEST_WORDS and len(telling) > 1 and not telling <= set(names)
    )


def words_of(text: str) -> list[str]:
    """In small letters, without what is around them, and without what follows an
    apostrophe.
    """
    words = (
        re.split("['’]", word.strip("\"'`.,;:!?()[]{}<>*–—-…"))[0]
        for word in _WORD.findall(text.lower())
    )
    return [word for word in words if word]


def _nearest(word: str, names: Collection[str], near: float) -> str:
    """The name that was perhaps meant, or the word itself."""
    if word in names:
        return word
    swapped = (
        name for name in names if sorted(name) == sorted(word) and name[0] == word[0]
    )
    close = difflib.get_close_matches(
        word, [name for name in names if len(name) > 1], 1, near
    )
    return [*swapped, *close, word][0]
