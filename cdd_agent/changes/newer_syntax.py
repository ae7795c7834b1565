"""Newer syntax, spelled as older readers read it: that of Python 3.12 to 3.14, and TOML
1.1 as 1.0.

Only to learn whether a text could be right where this program's own parser says that it
is not: what comes out is read, and never kept. Whatever is wrong in every version stays
wrong.
"""

import ast
import re
import warnings
from collections.abc import Callable

_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<prefix> [A-Za-z]{0,3} ) (?P<quote> \"\"\" | ''' | " | ' )
    | (?P<word> \w+ )
    | (?P<bracket> [()\[\]{}] )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_REST_OF_STRING = {
    '"""': re.compile(r'(?:\\.|(?!""").)*"""', re.DOTALL),
    "'''": re.compile(r"(?:\\.|(?!''').)*'''", re.DOTALL),
    '"': re.compile(r'(?:\\.|[^"\\\n])*"', re.DOTALL),
    "'": re.compile(r"(?:\\.|[^'\\\n])*'", re.DOTALL),
}
KNOWN_PYTHON = (3, 14)
"""The newest Python whose syntax is known here."""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 20
"""Strings within each other."""
_GENERIC = re.compile(
    r"^[ \t]*(?:(?:async[ \t]+)?def|class|type)[ \t]+\w+[ \t]*(?=\[)", re.MULTILINE
)
_ALIAS = re.compile(r"^([ \t]*)type[ \t]+(\w+[ \t]*=)", re.MULTILINE)
_EXCEPT = re.compile(
    r"^([ \t]*except\*?"
    r"[ \t]++)((?:(?!\bas\b)[^\n:#]){1,300},(?:(?!\bas\b)[^\n:#]){1,300}?)([ \t]*:)",
    re.MULTILINE,
)


class _Unclear(Exception):
    """It is wrong in every version, as far as one can see."""


def older_python(source: str) -> str:
    """Without type parameters, type aliases, exceptions without brackets, t-strings,
    and f-strings as of 3.12.
    """
    try:
        text = _Strings(source).older()
        text = _without_parameters(text)
    except _Unclear:
        return source
    return _EXCEPT.sub(r"\1(\2)\3", _ALIAS.sub(r"\1\2", text))


class _Strings:
    """Reads code for its strings, as Python 3.12 and later do: what is in the fields of
    an f-string is code again.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0

    def older(self) -> str:
        return self._code(0, "")[0]

    def _code(self, at: int, ends: str) -> tuple[str, int]:
        """Code from a place on, up to one of these signs outside brackets, or to the
        end where none are given.
        """
        out: list[str] = []
        open_: list[str] = []
        while at < len(self._text):
            if (
                not open_
                and self._text[at] in ends
                and not self._text.startswith("!=", at)
            ):
                return "".join(out), at
            token = _TOKEN.match(self._text, at)
            assert token is not None, "every sign is one"
            if quote := token["quote"]:
                string, at = self._string(
                    at, token["prefix"].lower(), quote, token.end()
                )
                out.append(string)
                continue
            if bracket := token["bracket"]:
                if bracket in _CLOSING:
                    open_.append(_CLOSING[bracket])
                elif not open_ or open_.pop() != bracket:
                    raise _Unclear
            out.append(token[0])
            at = token.end()
        if ends:
            raise _Unclear
        return "".join(out), at

    def _string(self, start: int, prefix: str, quote: str, at: int) -> tuple[str, int]:
        if not {"f", "t"} & set(prefix):
            rest = _REST_OF_STRING[quote].match(self._text, at)
            if rest is None:
                raise _Unclear
            return self._text[start : rest.end()], rest.end()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unclear
        end = self._interpolated(at, quote)
        self._depth -= 1
        string = self._text[start:end]
        return string if _is_expression(string) else '""', end

    def _interpolated(self, at: int, quote: str) -> int:
        """Where an f-string or t-string ends."""
        text = self._text
        while not text.startswith(quote, at):
            sign = text[at : at + 1]
            if not sign or (sign == "\n" and len(quote) == 1):
                raise _Unclear
            if text.startswith(("{{", "}}"), at):
                at += 2
            elif sign == "{":
                at = self._field(at + 1)
            elif sign == "\\":
                named = re.compile(r"\\N\{[^{}\n]*\}").match(text, at)
                at = (
                    named.end()
                    if named
                    else at + 1 + (text[at + 1 : at + 2] not in ("{", "}"))
                )
            else:
                at += 1
        return at + len(quote)

    def _field(self, at: int) -> int:
        """Behind the `}` of a field: an expression, perhaps with `=`, a conversion and
        a format.
        """
        expression, at = self._code(at, "!:}")
        if not _is_expression(expression.rstrip().removesuffix("=")):
            raise _Unclear
        if self._text[at] == "!":
            conversion = re.compile(r"![rsa]\s*(?=[:}])").match(self._text, at)
            if conversion is None:
                raise _Unclear
            at = conversion.end()
        if self._text[at] == ":":
            at += 1
            while self._text[at : at + 1] != "}":
                if not self._text[at : at + 1]:
                    raise _Unclear
                at = self._field(at + 1) if self._text[at] == "{" else at + 1
        return at + 1


def _is_expression(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(f"({text}\n)", mode="eval")
    except (SyntaxError, ValueError):
        return False
    return bool(text.strip())


def _without_parameters(text: str) -> str:
    """Without the `[T]` behind the name of a function, class or type."""
    out: list[str] = []
    at = 0
    for head in _GENERIC.finditer(text):
        if head.start() < at:
            continue
        end, depth = head.end(), 0
        while end < len(text):
            depth += (text[end] in "([{") - (text[end] in ")]}")
            end += 1
            if not depth:
                break
        if depth or not text[head.end() + 1 : end - 1].strip():
            raise _Unclear
        out.append(text[at : head.end()])
        at = end
    return "".join(out) + text[at:]


_TOML_TOKEN = re.compile(
    r'''
      (?P<basic> """(?:\\.|(?!""").)*"{3,5} | "(?:\\.|[^"\\\n])*" )
    | (?P<literal> \'\'\'.*?\'{3,5} | '[^'\n]*' )
    | (?P<comment> \#[^\n]* )
    | (?P<sign> [\[\]{}\n] )
    | (?P<plain> [^"'#\[\]{}\n]+ | . )
    ''',
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:(?P<escape>e)|x(?P<byte>[0-9A-Fa-f]{2})|.)", re.DOTALL)
_SHORT_TIME = re.compile(r"(?<![\w:.-])((?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d)(?![:\d])")


def older_toml(text: str) -> str:
    """Without line ends and last commas in inline tables, `\\e` and `\\x41`, and times
    that have no seconds.
    """
    out: list[str] = []
    open_: list[str] = []
    for token in _TOML_TOKEN.finditer(text):
        piece, in_table = token[0], bool(open_) and open_[-1] == "{"
        match token.lastgroup:
            case "basic":
                out.append(_ESCAPE.sub(_older_escape, piece))
            case "comment" if in_table:
                pass
            case "plain":
                out.append(_SHORT_TIME.sub(r"\1:00", piece))
            case "sign" if piece == "\n" and in_table:
                out.append(" ")
            case "sign":
                if piece in _CLOSING:
                    open_.append(piece)
                elif piece != "\n" and open_:
                    open_.pop()
                if piece == "}" and in_table:
                    while out and not out[-1].strip(" \t"):
                        out.pop()
                    out[-1:] = [
                        last.rstrip(" \t").removesuffix(",") for last in out[-1:]
                    ]
                out.append(piece)
            case _:
                out.append(piece)
    return "".join(out)


def _older_escape(found: re.Match[str]) -> str:
    if found["escape"]:
        return "\\u001b"
    return f"\\u00{found['byte']}" if found["byte"] else found[0]


OLDER: dict[str, Callable[[str], str]] = {
    ".py": older_python,
    ".pyi": older_python,
    ".toml": older_toml,
}
"""By the suffix of a file."""
