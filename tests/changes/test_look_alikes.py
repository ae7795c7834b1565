"""Texts that look alike are found where there is one such place, and the file keeps its
own characters wherever an edit only quotes them.
"""

import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.actions.model import MultipleMatchesFoundError
from cdd_agent.changes.draft import FileDraft, as_lines
from cdd_agent.changes.look_alikes import fold, keep_characters, pair_pieces
from cdd_agent.changes.model import Hint, Replacement
from cdd_agent.files.charsets import NOTHING_DECLARED
from cdd_agent.files.text import decode_file
from tests.support.tables import each_row


def draft_of(text: str) -> FileDraft:
    return FileDraft(
        decode_file(PurePosixPath("a.txt"), text.encode(), NOTHING_DECLARED)
    )


def by_lines(before: str, find: str, new: str, hint: Hint = Hint()) -> str:  # noqa: B008
    draft = draft_of(before)
    draft.replace(Replacement("a.txt", as_lines(find), as_lines(new), hint))
    return draft.text


def by_text(before: str, find: str, new: str) -> str:
    draft = draft_of(before)
    draft.replace_text(find, new)
    return draft.text


MU = "Mu\u0308ller"
"""Decomposed."""

ALIKE: dict[str, tuple[str, str, str, str]] = {
    # the file, the text to find, the new text, the file afterwards
    "composed": (f"a {MU} b\n", "a Müller b", "a Müller c", f"a {MU} c\n"),
    "decomposed": ("a Müller b\n", f"a {MU} b", f"a {MU} c", "a Müller c\n"),
    "both in one file": (
        f"é\na {MU} b é\n",
        "a Müller b é",
        "a Müller c é",
        f"é\na {MU} c é\n",
    ),
    "syllables of Korean": (
        unicodedata.normalize("NFD", "가 한국어\n"),
        "가 한국어",
        "나 한국어",
        unicodedata.normalize("NFD", "나 한국어\n"),
    ),
    "a no-break space": ("a\u00a0b = 1\n", "a b = 1", "a b = 2", "a\u00a0b = 2\n"),
    "a no-break space in the reply": (
        "a b = 1\n",
        "a\u00a0b = 1",
        "a b = 2",
        "a b = 2\n",
    ),
    "a narrow no-break space": (
        "1\u202f000 €\n",
        "1 000 €",
        "2 000 €",
        "2\u202f000 €\n",
    ),
    "an ideographic space": ("名\u3000前\n", "名 前", "名 前 x", "名\u3000前 x\n"),
    "indented by no-break spaces": (
        "if x:\n\u00a0\u00a0a\n",
        "if x:\n  a",
        "if x:\n  a\n  b",
        "if x:\n\u00a0\u00a0a\n  b\n",
    ),
    "quotes": (
        "say “hi” to it’s\n",
        'say "hi" to it\'s',
        'say "ho" to it\'s',
        "say “ho” to it’s\n",
    ),
    "quotes in the reply": ("x = 'a'\n", "x = ‘a’", "x = ‘a’ + 1", "x = 'a' + 1\n"),
    "low quotes": ("„so“\n", '"so"', '"so" x', "„so“ x\n"),
    "an en dash": ("1–2 pages\n", "1-2 pages", "1-2 sheets", "1–2 sheets\n"),
    "a minus sign": ("x = −1\n", "x = -1", "x = -1 + y", "x = −1 + y\n"),
    "a non-breaking hyphen": ("e‑mail\n", "e-mail", "an e-mail", "an e‑mail\n"),
    "an ellipsis": ("wait…\n", "wait...", "wait... now", "wait… now\n"),
    "an ellipsis in the reply": ("wait...\n", "wait…", "wait… now", "wait... now\n"),
    "full-width signs": (
        "函数（甲，乙）：\n",
        "函数(甲,乙):",
        "函数(甲,乙,丙):",
        "函数（甲，乙,丙）：\n",
    ),
    "full-width letters": ("ＡＢＣ＝１\n", "ABC=1", "ABC=1;", "ＡＢＣ＝１;\n"),
    "half-width katakana": ("ｶﾞｽ\n", "ガス", "ガス x", "ｶﾞｽ x\n"),
    "a zero-width space": (
        "long\u200bword 1\n",
        "longword 1",
        "longword 2",
        "long\u200bword 2\n",
    ),
    "a soft hyphen": (
        "Donau\u00addampf\n",
        "Donaudampf",
        "Donaudampf x",
        "Donau\u00addampf x\n",
    ),
    "a variation selector": ("⚠\ufe0f stop\n", "⚠ stop", "⚠ go", "⚠\ufe0f go\n"),
    "shifted": ("    “a”\n", '"a"', '"a"\n"b"', '    “a”\n    "b"\n'),
    "white space at the end": ("“a” \n", '"a"', '"a" b', "“a” b\n"),
    "lines around": ("x\n“a”\ny\n", 'x\n"a"\ny', 'x\n"a"\nz', "x\n“a”\nz\n"),
    "what goes": ("x\n“a”\ny\n", '"a"\ny', "y", "x\ny\n"),
    "a quote that is changed": ("“a”\n", '"a"', "'a'", "'a'\n"),
    "one more line": ("“a”\nb\n", '"a"', '"a"\n"a"', '“a”\n"a"\nb\n'),
}


@each_row("case", ALIKE.values(), ids=list(ALIKE))
def test_a_text_that_looks_alike_is_found(case: tuple[str, str, str, str]) -> None:
    before, find, new, expected = case
    assert by_lines(before, find, new) == expected
    if find.strip() in before or "\n" not in new:
        end = " \n" if before.endswith(" \n") else "\n"
        assert by_text(before, find, new) == expected.removesuffix("\n") + end


@each_row(
    "before, find, new, expected",
    [
        (f"a {MU} b\n", "ü", "u", "a Muller b\n"),
        (f"a {MU} b\n", "Müller b", "Müllers b", f"a {MU}s b\n"),
        ("f(“a”, “b”)\n", '"b")', '"b", 1)', "f(“a”, “b”, 1)\n"),
        ("f(“a”\n, “b”)\n", '"\n, ', '"\n; ', "f(“a”\n; “b”)\n"),
        ("f(“a”)", '("a")', '["a"]', "f[“a”]"),
        ("f(“a”)\n", 'f("a")\n', "", ""),
    ],
)
def test_a_part_of_a_line_that_looks_alike_is_found(
    before: str, find: str, new: str, expected: str
) -> None:
    assert by_text(before, find, new) == expected


def test_a_letter_without_its_accent_is_no_place() -> None:
    assert by_text(f"{MU} u\n", "u", "x") == f"{MU} x\n"
    assert by_text(f"“{MU}” u\n", "u", "x") == f"“{MU}” x\n"


@each_row(
    "before, find",
    [
        ("“a”\n„a“\n", '"a"'),
        ("Müller\nMu\u0308ller\n", "Mu\u0308\u200bller"),
        ("  “a”\n    „a“\n", '"a"'),
    ],
)
def test_two_places_that_look_alike_are_never_decided_between(
    before: str, find: str
) -> None:
    with pytest.raises(MultipleMatchesFoundError):
        by_lines(before, find, "x")
    with pytest.raises(MultipleMatchesFoundError):
        by_text(before, find, "x")


def test_the_edit_itself_can_decide() -> None:
    assert by_lines("“a”\n„a“\n", '"a"', "x", Hint(line=2)) == "“a”\nx\n"


@each_row(
    "before, find",
    [('“a”\n"a"\n', '"a"'), ("a\u00a0b\na b\n", "a b"), ("  a–b\na-b\n", "a-b")],
)
def test_the_text_itself_comes_before_one_that_looks_alike(
    before: str, find: str
) -> None:
    after = before.replace(f"\n{find}\n", "\nx\n")
    assert by_lines(before, find, "x") == after


@each_row(
    "before, find, new",
    [
        ("say “ho”\n", 'say "hi"', 'say "ho"'),
        ("“a”\nb\n", '"a"', '"a"\nb'),
        (f"{MU}\n", "Müller", MU),
    ],
)
def test_what_looks_done_is_not_done_again(before: str, find: str, new: str) -> None:
    draft = draft_of(before)
    assert draft.replace(Replacement("a.txt", as_lines(find), as_lines(new))) is False
    assert draft.text == before


WORDS = st.text(
    st.sampled_from("ab \"“”'’-–…\u00a0u\u0308üé가\u1100\u1161（(\u200b．.ｶﾞガ"),
    max_size=12,
)


@given(WORDS, WORDS)
def test_pieces_of_both_texts_are_all_of_them(text: str, other: str) -> None:
    pieces = list(pair_pieces(text, text))
    assert "".join(piece for _, _, piece in pieces) == text or not fold(text)
    if fold(text) == fold(other) and fold(text):
        pieces = list(pair_pieces(text, other))
        assert "".join(piece for _, _, piece in pieces) == other
        assert [(start, end) for start, end, _ in pieces] == [
            *zip(
                [0, *(end for _, end, _ in pieces)],
                [end for _, end, _ in pieces],
                strict=False,
            )
        ]
        assert pieces[-1][1] == len(text)


@given(WORDS, WORDS)
def test_a_text_that_is_only_quoted_is_the_files(text: str, own: str) -> None:
    if fold(text) == fold(own) and fold(text):
        assert keep_characters(own, text, text) == own
    assert fold(keep_characters(text, text, own)) == fold(own)


@given(WORDS)
def test_normal_forms_are_folded_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)
