"""Keys are cleaned of what is copied along with them."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.network.keys import clean_key
from tests.support.tables import each_row

KEY = "sk-proj-Ab_9-=="


@each_row(
    ("written", "removed"),
    [
        (KEY, ()),
        (f" {KEY} \r\n", ("blanks",)),
        (f"\ufeff{KEY}\u200b", ("blanks",)),
        (f"\u00a0{KEY}", ("blanks",)),
        (f'"{KEY}"', ("quotes",)),
        (f"'{KEY}", ("quotes",)),
        (f"“{KEY}”", ("quotes",)),
        (f"`{KEY}`\n", ("blanks", "quotes")),
        (f"Bearer {KEY}", ("`Bearer`",)),
        (f"bearer  {KEY}", ("`Bearer`",)),
        (f"Authorization: Bearer {KEY}", ("`Bearer`",)),
        (f"OPENAI_API_KEY={KEY}", ("the name of a variable",)),
        (f"export OPENAI_API_KEY={KEY}", ("the name of a variable",)),
        (f"$env:HF_TOKEN = {KEY}", ("the name of a variable",)),
        (f"export X_API_KEY='Bearer {KEY}'\n", None),
        (f'"\'Bearer "{KEY}"\'"', None),
    ],
)
def test_a_key_is_sent_without_what_is_around_it(
    written: str, removed: tuple[str, ...] | None
) -> None:
    key = clean_key(written)
    assert key.text == KEY
    assert removed is None or key.removed == removed
    assert KEY not in repr(key)


@each_row("written", ["", " \n", '""', "' '", "\ufeff"])
def test_a_key_without_characters_is_none(written: str) -> None:
    assert clean_key(written).text == ""


@each_row("key", ["Bearer", "BearerX", "MYTOKEN==", "aKEY=b", "a'b", "a b", "KEY="])
def test_characters_of_a_key_stay(key: str) -> None:
    assert clean_key(key).text == key


@given(st.text("aB9_-=.\"' \n", max_size=12))
def test_a_clean_key_stays_as_it_is(written: str) -> None:
    key = clean_key(written).text
    assert clean_key(key).text == key
    assert not clean_key(key).removed
