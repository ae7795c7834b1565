"""Split a command text into simple commands, like a POSIX shell. Nothing is
expanded.
"""

import re

from msgspec import Struct, field

from cdd_agent.pattern import Pattern

PIECE = Pattern(
    r"""
      (?P<blank> [ \t]+ )
    | (?P<continued> \\\n )
    | \\ (?P<escaped> . )
    | ' (?P<single> [^']* ) '
    | " (?P<double> (?: [^"\\] | \\. )* ) "
    | (?P<operator> [|;&<>]+ | \n | ` | \$\( )
    | (?P<open> ['"\\] )
    | (?P<plain> \$ | [^ \t\n\\'"|;&<>`$]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The first alternative that matches wins."""
_HERE_DOCUMENT = Pattern(
    r"(?P<line>[^\n]*<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)[^\n]*)\n"
    r".*?(?:\n[ \t]*(?P=end)[ \t]*(?=\n|\Z)|\Z)",
    re.DOTALL,
)
_INTERPRETER = Pattern(r"\b(?:sh|bash|zsh|dash|ksh|python[\d.]*|node|ruby|perl)\b")
_IN_DOUBLE_QUOTES = Pattern(
    r"\\(?P<escaped>[$`\"\\\n])|(?P<variable>\$(?:\w+|\{[^}]*\}))|[^\\$]+|.",
    re.DOTALL,
)
_SUBSTITUTION = Pattern(r"\$\((?P<inner>[^)]*)\)|`(?P<quoted>[^`]*)`")
_NAME = Pattern(r"\A(?:\w+|\{[^}]*\})")
_ASSIGNMENT = Pattern(r"[A-Za-z_]\w*\+?=")
SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "fish", "eval"))
_KEYWORDS = frozenset(
    (
        *("if", "then", "else", "elif", "while", "until", "do", "!", "time"),
        *("exec", "command", "{", "("),
    )
)


class Word(Struct):
    text: str = ""
    """Without its quotes."""
    pattern: str = ""
    """As a glob pattern: only unquoted characters are special."""
    without_variables: str = ""
    """The pattern if every variable is empty."""
    is_pattern: bool = False
    is_variable: bool = False
    """True if part of the word comes from a variable or a command."""

    def add(self, text: str, *, is_quoted: bool) -> None:
        is_name = self.text.endswith("$") and not is_quoted
        self.text += text
        if text == "$" and not is_quoted:
            self.pattern += "*"
            self.is_variable = True
            return
        if is_quoted:
            text = re.sub(r"([*?\[{])", r"[\1]", text)
        else:
            if is_name:
                text = _NAME.sub("", text)
            self.is_pattern |= re.search(r"[*?\[{]", text) is not None
        self.pattern += text
        self.without_variables += text


class Segment(Struct):
    words: list[Word] = field(default_factory=list)
    read_from: list[Word] = field(default_factory=list)
    """Files after `<`."""
    is_piped_on: bool = False
    """True if its output goes to the next command."""
    is_substituted: bool = False
    """True if its output becomes words of another command."""

    @property
    def start(self) -> int:
        """The index of the program, after keywords and assignments."""
        for place, word in enumerate(self.words):
            name = word.text.lstrip("{")
            if name and name not in _KEYWORDS and not _ASSIGNMENT.match(name):
                return place
        return len(self.words)

    @property
    def program(self) -> str:
        start = self.start
        if start == len(self.words):
            return ""
        return self.words[start].text.lstrip("{").rpartition("/")[2]

    @property
    def arguments(self) -> list[Word]:
        return self.words[self.start + 1 :]


def split_segments(text: str) -> list[Segment]:
    """Return the simple commands of a text, including those in substitutions. The body
    of a here-document counts only if an interpreter reads it.
    """
    text = _HERE_DOCUMENT.sub(_without_body, text)
    text = re.sub(r"\$(?:PWD\b|\{PWD\})", ".", text)
    reader = _Reader()
    for piece in PIECE.finditer(text):
        reader.take(piece)
    reader.end_word()
    inner = [
        segment for part in reader.substitutions for segment in split_segments(part)
    ]
    for segment in inner:
        segment.is_substituted = True
    for segment in reader.segments:
        inner += split_nested(segment)
    return [each for each in (*reader.segments, *inner) if each.words or each.read_from]


def split_nested(segment: Segment) -> list[Segment]:
    """Return the commands inside a call of a shell: `sh -c "…"`."""
    names = {word.text.rpartition("/")[2] for word in segment.words}
    if names.isdisjoint(SHELLS):
        return []
    texts = [word.text for word in segment.words if re.search(r"\s", word.text)]
    return [nested for text in texts for nested in split_segments(text)]


def _without_body(match: re.Match[str]) -> str:
    return match[0] if _INTERPRETER.search(match["line"]) else match["line"]


class _Reader(Struct):
    segments: list[Segment] = field(default_factory=lambda: [Segment()])
    substitutions: list[str] = field(default_factory=list)
    word: Word | None = None
    redirection: str = ""
    """The operator whose file name is the next word."""

    def take(self, piece: re.Match[str]) -> None:
        kind = piece.lastgroup or ""
        content = piece[kind]
        match kind:
            case "blank":
                self.end_word()
            case "continued":
                pass
            case "operator":
                self._take_operator(content)
            case "double":
                self.substitutions += [
                    match["inner"] or match["quoted"] or ""
                    for match in _SUBSTITUTION.finditer(content)
                ]
                self._take_double(content)
            case "plain":
                self._take_plain(content)
            case _:
                self._add(content, is_quoted=True)

    def _add(self, text: str, *, is_quoted: bool) -> None:
        self.word = self.word or Word()
        self.word.add(text, is_quoted=is_quoted)

    def _take_double(self, content: str) -> None:
        self._add("", is_quoted=True)
        for part in _IN_DOUBLE_QUOTES.finditer(content):
            if part["variable"]:
                self._add("$", is_quoted=False)
            else:
                text = part["escaped"] if part["escaped"] is not None else part[0]
                self._add(text, is_quoted=True)

    def _take_plain(self, text: str) -> None:
        for part in re.split(r"([()])", text):
            if part in ("(", ")"):
                self._begin_segment()
            elif part:
                self._add(part, is_quoted=False)

    def _begin_segment(self, *, is_substituted: bool = False) -> None:
        self.end_word()
        self.segments.append(Segment(is_substituted=is_substituted))

    def _take_operator(self, operator: str) -> None:
        # `2>&1` is no file; a number before `>` belongs to the operator
        if operator[0] in "<>":
            if self.word is not None and self.word.text.isdigit():
                self.word = None
            self.end_word()
            self.redirection = operator
            return
        self.end_word()
        self.segments[-1].is_piped_on = operator.startswith("|") and operator != "||"
        self._begin_segment(is_substituted=operator in ("$(", "`"))

    def end_word(self) -> None:
        word, self.word = self.word, None
        if word is None:
            return
        redirection, self.redirection = self.redirection, ""
        if not redirection:
            self.segments[-1].words.append(word)
        elif redirection.startswith("<") and redirection != "<<":
            self.segments[-1].read_from.append(word)
