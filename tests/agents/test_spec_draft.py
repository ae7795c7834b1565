"""The draft of a spec: what a model proposes and a person edits, field by field."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.agents.notebook import bounded
from cdd_agent.agents.spec_draft import Criterion, Draft, Proposal
from cdd_agent.llm.port import Message
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.spec import FIELDS, TicketSpec
from tests.support.tables import each_row

FILE = TicketSpec(
    title="Say words",
    description="Words.",
    acceptance_criteria=("a", "b"),
    technical_notes="n",
)
QUIET = Redactor()


def proposed(draft: Draft, **fields: Any) -> Draft:
    return draft.with_proposal(Proposal(**fields), QUIET)


def test_omitted_fields_stay() -> None:
    draft = proposed(Draft(FILE), title="Other")
    assert draft.spec == replace(FILE, title="Other")
    assert draft.changes == {"title": "Other"}


def test_a_reverted_change_is_no_change() -> None:
    assert (
        proposed(proposed(Draft(FILE), title="Other"), title="Say words").changes == {}
    )


def test_a_field_equal_to_the_file_is_no_change() -> None:
    assert (
        proposed(Draft(FILE), title=" Say  words ", description="Words.\n").changes
        == {}
    )


def test_notes_can_be_removed() -> None:
    assert proposed(Draft(FILE), technical_notes="").spec.technical_notes == ""


def test_trailing_spaces_are_removed() -> None:
    assert (
        proposed(Draft(FILE), description="a  \n\tb\r\nc ").spec.description
        == "a\n    b\nc"
    )


def test_checks_follow_the_words_of_their_criteria() -> None:
    draft = proposed(
        Draft(FILE),
        acceptance_criteria=[Criterion(text="a", check="x"), Criterion(text="c")],
    )
    assert draft.unchecked == ("c",)
    met, _ = draft.met(replace(FILE, acceptance_criteria=("a", "d")), draft.digests)
    assert met.unchecked == ("d",)


def test_the_user_s_edit_wins_over_an_unwritten_draft() -> None:
    draft = proposed(Draft(FILE), title="Other", technical_notes="more")
    met, told = draft.met(replace(FILE, title="Mine"), draft.digests)
    assert told == ("title",)
    assert met.spec == replace(FILE, title="Mine", technical_notes="more")


def test_an_edit_equal_to_the_draft_reports_nothing() -> None:
    draft = proposed(Draft(FILE), title="Other")
    met, told = draft.met(replace(FILE, title="Other"), draft.digests)
    assert (told, met.changes) == ((), {})


specs = st.builds(
    TicketSpec,
    title=st.sampled_from("abc"),
    description=st.sampled_from("abc"),
    acceptance_criteria=st.lists(st.sampled_from("abc"), max_size=2).map(tuple),
    implementation_scope=st.dictionaries(
        st.sampled_from("xy"), st.just(("a",)), max_size=2
    ),
    technical_notes=st.sampled_from("abc"),
    priority=st.sampled_from("abc"),
)


@given(specs, specs, specs)
def test_each_field_is_the_user_s_if_edited_else_the_draft_s(
    before: TicketSpec, wanted: TicketSpec, now: TicketSpec
) -> None:
    changes = {
        name: getattr(wanted, name)
        for name in FIELDS
        if getattr(wanted, name) != getattr(before, name)
    }
    draft = Draft(before, changes)
    met, told = draft.met(now, draft.digests)
    for name in FIELDS:
        theirs = getattr(now, name) != getattr(before, name)
        assert getattr(met.spec, name) == getattr(now if theirs else wanted, name)
        assert (name in told) == (
            theirs and getattr(now, name) != getattr(wanted, name)
        )
    assert met.met(now, met.digests) == (met, ())


@each_row(("most", "kept"), [(1000, 3), (25, 2), (1, 1)])
def test_a_long_conversation_starts_with_the_user_s_words(most: int, kept: int) -> None:
    turns = [
        message
        for number in range(3)
        for message in (Message("user", "u" * 5), Message("assistant", "a" * 5))
    ]
    messages = bounded(turns, most)
    assert len(messages) == 2 * kept
    assert messages[0].role == "user"
