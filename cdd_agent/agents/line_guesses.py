"""Guesses whether a line is a mistyped command, a shell command, half a sentence, or a
sentence.

A guess only decides whether cdd asks the user first, and in doubt it asks. A line that
begins with `>` always goes to the model.
"""

import difflib
import re
from collections.abc import Callable, Collection

from cdd_agent.pattern import Pattern


def is_letter(line: str) -> bool:
    """True for a single letter. While a question is open, it can only be an answer."""
    text = line.strip()
    return len(text) == 1 and text.isalpha()


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


FOR_THE_MODEL = ">"
LEAVING = _word_set("exit quit q q! :q :q! :wq :x")
_NAMES_ELSEWHERE = {
    **dict.fromkeys(("?", "??", "h", "man", ":h", ":help"), "help"),
    **dict.fromkeys((*LEAVING, "bye", "logout", "leave"), "exit"),
    "cls": "clear",
    "reset": "clear",
    "models": "model",
    "tickets": "list",
}
_PROGRAMS = _word_set("""
    apt awk bash brew cargo cat cd cdd chmod chown cp curl docker emacs gh git gradle
    grep htop kubectl la ll ls mkdir mv mvn mypy nano node npm npx nvim pip pip3 pnpm
    poetry ps pwd pytest python python3 rg rm rmdir ruff scp sed sh ssh sudo svn tar
    tmux tox uv vi vim wget whoami yarn zsh
    """)
_VERBS_AFTER_A_SUBJECT = _word_set(
    "and are can cannot could does for has have in is may might must or should was were"
    " will with would"
)
"""Words after a program's name that make it a sentence: `git must be optional`."""
_COMMAND_START = Pattern(r"\$\s|[A-Za-z_]\w*=\S*\s|(?:\.{1,2}|~)/")
"""A shell's prompt, a variable, or a path."""
_SHELL_SYNTAX = Pattern(r"(?:^|\s)--?\w|&&|\|\||\s\|\s|\s>>?\s")
"""An option or an operator."""
_COMMON_WORDS = _word_set("""
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
"""Words of grammar and conversation, which do not describe work on code."""
_WORDS_IN_THE_MIDDLE = _word_set("""
    a about add an and are as at be because been but by can cannot could did do does
    each every for from get had has have his how i if instead into is its keep let like
    make may might must my nor not of or our should since so than that the their then
    these this those to until use using very via was we were when where whether which
    while who whose why will with without would your
    """)
"""Words that rarely end a sentence."""
_QUESTION_START = Pattern(
    r"(?:what|why|who|whose|how)\b"
    r"|(?:where|when|which)\s+(?:is|are|was|were|do|does|did|will|would|can|could"
    r"|should|has|have)\b"
    r"|(?:is|are|was|were|does|did|can|could|would|will|should|has)\s+(?:i|we|you|he"
    r"|she|it|they|this|that|there|the)\b"
    r"|do\s+(?:i|we|you|they)\b",
    re.IGNORECASE,
)
_SKIP_START = Pattern(r"[\W\d_]*skip", re.IGNORECASE)
"""`skip`, also as a part of a word, in quotes or after a bullet."""
_LETTERS_WITHOUT_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
)
"""Letters of scripts without spaces between words. Two of them count as a word."""
_WORD = Pattern(rf"[{_LETTERS_WITHOUT_SPACES}]{{1,2}}|[^\s{_LETTERS_WITHOUT_SPACES}]+")
_REASON_START = Pattern(r"\s+because\s|[,.;:!–—]\s|\s-\s", re.IGNORECASE)
"""The possible beginning of a command's reason."""
_LEAST_WORDS_OF_GUIDANCE = 3
_MOST_WORDS_OF_A_COMMAND = 8
"""Including the words around a command."""
_MOST_ARGUMENTS = 3
_APOSTROPHE = Pattern("['’]")
_ENDS_IN_THE_MIDDLE = (
    *(",", ";", ":", "-", "–", "—"),
    *("(", "[", "{", "…", "...", "/", "\\", "="),
)


def shell_name(text: str) -> str:
    return _NAMES_ELSEWHERE.get(text.lower(), text.lower())


def guess_command(
    text: str, names: Collection[str], is_command: Callable[[str], bool], *, near: float
) -> str | None:
    """Return the command that a line means, despite typing errors and extra words, such
    as `please skip this step`. None if there is none.
    """
    words = split_words(text)
    if len(words) > _MOST_WORDS_OF_A_COMMAND:
        return None
    important = [word for word in words if word in names or word not in _COMMON_WORDS]
    for candidate in (words, important):
        line = " ".join(_nearest_name(word, names, near) for word in candidate)
        if line and is_command(line):
            return line
    return None


def guess_slash_command(text: str, slash: Collection[str]) -> str | None:
    """Return the name of the slash command whose slash is missing, as in `diff
    feature-x 3`. None if there is none.
    """
    words = split_words(text)
    if not words:
        return None
    name = shell_name(words[0])
    arguments = words[1:]
    if name not in slash or len(arguments) > _MOST_ARGUMENTS:
        return None
    return name if _COMMON_WORDS.isdisjoint(arguments) else None


def cut_reason(text: str) -> str:
    return _REASON_START.split(text, maxsplit=1)[0]


def starts_with_skip(text: str) -> bool:
    return _SKIP_START.match(text) is not None


def looks_like_shell_command(text: str) -> bool:
    """True for shell syntax, and for a program's name that does not begin a
    sentence.
    """
    words = text.lower().split()
    if words and words[0] in _PROGRAMS:
        return len(words) == 1 or words[1] not in _VERBS_AFTER_A_SUBJECT
    if _COMMAND_START.match(text):
        return True
    has_syntax = _SHELL_SYNTAX.search(text) is not None
    return has_syntax and _COMMON_WORDS.isdisjoint(split_words(text))


def is_question(text: str) -> bool:
    """True if the line begins like a question, even without a question mark."""
    return _QUESTION_START.match(text) is not None


def is_unfinished(text: str) -> bool:
    words = split_words(text)
    if not words or text.endswith(_ENDS_IN_THE_MIDDLE):
        return True
    if text.count("`") % 2 or text.count('"') % 2:
        return True
    if text.count("(") > text.count(")"):
        return True
    return words[-1] in _WORDS_IN_THE_MIDDLE and not text.endswith((".", "!"))


def is_instruction(text: str, names: Collection[str]) -> bool:
    """True if the line is as long as a sentence and contains two words that may be
    about the work, not both names of commands.
    """
    words = split_words(text)
    important = set()
    for word in words:
        if not word.isdigit() and word not in _COMMON_WORDS:
            important.add(word)
    if len(words) < _LEAST_WORDS_OF_GUIDANCE or len(important) < 2:
        return False
    return not important <= set(names)


def split_words(text: str) -> list[str]:
    """Return the words in lower case, without surrounding punctuation, and without the
    letters after an apostrophe.
    """
    words = []
    for marked_word in _WORD.findall(text.lower()):
        bare_word = marked_word.strip("\"'`.,;:!?()[]{}<>*–—-…")
        words.append(_APOSTROPHE.split(bare_word)[0])
    return [word for word in words if word]


def _nearest_name(word: str, names: Collection[str], near: float) -> str:
    if word in names:
        return word
    for name in names:
        if sorted(name) == sorted(word) and name[0] == word[0]:
            return name
    long_names = [name for name in names if len(name) > 1]
    close = difflib.get_close_matches(word, long_names, 1, near)
    return close[0] if close else word
