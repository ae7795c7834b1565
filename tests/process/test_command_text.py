"""A command's text, read as a shell would read it and without one."""

import shlex
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.process.policy import (
    CommandRefused,
    CommandRunner,
    split,
)
from cdd_agent.settings.config import Commands
from tests.process.programs import posix
from tests.support.tables import each_row


@each_row(
    ("text", "operator"),
    [
        ("a | b", "|"),
        ("a|b", "|"),
        ("a || b", "||"),
        ("a ; b", ";"),
        ("a;", ";"),
        ("a & b", "&"),
        ("a &", "&"),
        ("a && b", "&&"),
        ("a < b", "<"),
        ("a << b", "<<"),
        ("a <<< b", "<<<"),
        ("a > b", ">"),
        ("a >> b", ">>"),
        ("a 2>&1", ">&"),
        ("a\nb", "\n"),
        ("a `b`", "`"),
        ("a $(b)", "$("),
        ("a $((1 + 1))", "$("),
        ("a <(b)", "<"),
        ('a "`b`"', "`"),
        ('a "$(b)"', "$("),
        ('a "x$(b)y" z', "$("),
        ('a "\\\\$(b)"', "$("),
        ('a "\\\\`b`"', "`"),
        ("a \\\\;b", ";"),
        ("a \\\\\nb", "\n"),
        ("a '\\'; b", ";"),
        ("a ''; b", ";"),
        ("a '\"' ; b '\"'", ";"),
        ("; b", ";"),
        ("|", "|"),
    ],
)
def test_what_only_a_shell_can_do_is_found(text: str, operator: str) -> None:
    assert split(text).operator == operator


@each_row(
    ("text", "argv"),
    [
        ("grep -E 'a|b' '>' f", ["grep", "-E", "a|b", ">", "f"]),
        ("echo '`a` $(b); c & d'", ["echo", "`a` $(b); c & d"]),
        ('echo "a|b;c&d<e>f"', ["echo", "a|b;c&d<e>f"]),
        ('echo "\\`a\\` \\$(b)"', ["echo", "`a` $(b)"]),
        (
            "echo a\\;b \\| \\& \\< \\> \\` \\$\\(",
            ["echo", "a;b", "|", "&", "<", ">", "`", "$("],
        ),
        ("echo $HOME $ $x", ["echo", "$HOME", "$", "$x"]),
        ("echo a\\\n  b", ["echo", "a", "b"]),
        ("echo a\\\nb", ["echo", "ab"]),
        ('echo "a\\\nb"', ["echo", "ab"]),
        ("echo 'a\\\nb'", ["echo", "a\\\nb"]),
        ('python -c "a\nb"', ["python", "-c", "a\nb"]),
        ('l""s', ["ls"]),
        ("l's' -l", ["ls", "-l"]),
        ("l\\s", ["ls"]),
        ("echo '' \"\"", ["echo", "", ""]),
        ("echo 'it'\\''s'", ["echo", "it's"]),
        ('echo "a \\" b" "\\\\" "\\n"', ["echo", 'a " b', "\\", "\\n"]),
        ("echo\ta  \t b", ["echo", "a", "b"]),
        ("echo a#b # c", ["echo", "a#b", "#", "c"]),
        ("echo (a) {b,c} *.py ~ !", ["echo", "(a)", "{b,c}", "*.py", "~", "!"]),
        ("echo ä\u00a0ö", ["echo", "ä\u00a0ö"]),
    ],
)
def test_words_are_split_as_a_shell_would_and_nothing_is_done_about_them(
    text: str, argv: list[str]
) -> None:
    words = split(text)
    assert (list(words.argv), words.operator) == (argv, "")


@posix
@each_row(
    "text",
    [
        "a 'b c' \"d e\" f\\ g",
        "a'b'\"c\"d",
        'a "b\\"c" "d\\\\" "\\e" "\\`" "\\$(x)"',
        "a\\\nb c",
        'a "b\\\nc"',
        "a 'b\\\nc' 'd\ne'",
        "'|' \\; '&&' \"<>\"",
        "a '' \"\" b",
    ],
)
def test_the_words_are_those_of_a_real_shell(text: str) -> None:
    printed = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\0' {text}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "".join(f"{word}\0" for word in split(text).argv) == printed.stdout


@given(st.text(alphabet=st.sampled_from("ab '\"\t-=.$*~#!()"), max_size=20))
def test_without_backslashes_words_are_those_of_shlex(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        expected = []
    try:
        words = split(text)
    except CommandRefused:
        assert not expected or not expected[0]
        return
    assert words.operator == "$(" or list(words.argv) == expected


@each_row(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n\t ", "empty"),
        ("''", "empty"),
        ('"" ls', "empty"),
        ("echo 'open", "is not closed"),
        ('echo "open', "is not closed"),
        ('echo "open\\"', "is not closed"),
        ("echo open\\", "is not closed"),
        ("echo a\0b", "U+0000"),
        ("echo 'a\0b'", "U+0000"),
        ("ls\rrm x", "U+000D"),
        ("ls \x1b[2J", "U+001B"),
        ("ls \x7f", "U+007F"),
        ("ls \x85 x", "U+0085"),
        ("ls \u2028 x", "U+2028"),
        ("ls \u202etxt.sl", "U+202E"),
        ("ls \u2066x", "U+2066"),
        ("ls \udc80", "U+DC80"),
        ("echo " + "x" * 100_000, "too long"),
    ],
)
async def test_what_is_no_readable_command_is_refused(
    tmp_path: Path, text: str, reason: str
) -> None:
    for mode in ("safe", "ask"):
        result = await CommandRunner(tmp_path, Commands(mode=mode)).run(text)  # type: ignore[arg-type]
        assert (result.refused, result.started, result.return_code) == (
            True,
            False,
            126,
        )
        assert reason in result.stderr
