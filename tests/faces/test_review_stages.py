"""A review as a state machine: the words of each stage, and where each one leads."""

from pathlib import PurePosixPath

import pytest

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.review import Review
from cdd_agent.errors import BadInput
from cdd_agent.events.question_events import Choice, CommandProposed
from cdd_agent.faces.reviewing import (
    ALL,
    BACK,
    EDIT,
    FILES,
    HUNKS,
    NO,
    QUIT,
    YES,
    AskedProposal,
    Reviewing,
    Stage,
    parse_line,
)
from cdd_agent.frontend import Decision
from tests.support.reviews import review_of
from tests.support.tables import each_row

OLD = "".join(f"line {number}\n" for number in range(30))
NEW = OLD.replace("line 2\n", "two\n").replace("line 25\n", "more\n")
WORDS = (YES, NO, FILES, HUNKS, EDIT, ALL, BACK, QUIT)


def changes() -> Review:
    return review_of(1, {"a.txt": (OLD, NEW), "b.txt": (None, "b\n")})


LEADS = {
    # the words before, and then each word with its stage; others are refused
    (): {
        YES: Stage.DECIDED,
        NO: Stage.DECIDED,
        ALL: Stage.DECIDED,
        FILES: Stage.PART,
        HUNKS: Stage.PART,
        EDIT: Stage.EDITING,
    },
    (FILES,): {YES: Stage.PART, NO: Stage.PART, EDIT: Stage.EDITING, QUIT: Stage.WHOLE},
    (FILES, YES): {
        YES: Stage.WHOLE,
        NO: Stage.WHOLE,
        EDIT: Stage.EDITING,
        BACK: Stage.PART,
        QUIT: Stage.WHOLE,
    },
    (HUNKS, NO, NO): {
        YES: Stage.WHOLE,
        NO: Stage.WHOLE,
        EDIT: Stage.EDITING,
        BACK: Stage.PART,
        QUIT: Stage.WHOLE,
    },
    # everything is left out: there is nothing to accept
    (FILES, NO, NO): {
        NO: Stage.DECIDED,
        FILES: Stage.PART,
        HUNKS: Stage.PART,
    },
    (EDIT,): {},
    (YES,): {},
    (NO,): {},
    (ALL,): {},
}


@each_row("path", LEADS, ids=str)
def test_each_word_leads_to_its_stage(path: tuple[str, ...]) -> None:
    for word in WORDS:
        reviewing = Reviewing(changes(), may_edit=True)
        for earlier in path:
            reviewing.choose(earlier)
        is_asked = reviewing.stage in (Stage.WHOLE, Stage.PART)
        if is_asked:
            offered = word in reviewing.words
            assert offered == (word in LEADS[path]), word
        if word in LEADS[path]:
            reviewing.choose(word)
            assert reviewing.stage is LEADS[path][word], word
        elif not is_asked:
            with pytest.raises(KeyError):
                reviewing.choose(word)


def test_the_decision_has_the_choice_the_reason_and_the_parts() -> None:
    review = changes()
    for word, choice in ((YES, Choice.YES), (ALL, Choice.ALWAYS)):
        reviewing = Reviewing(review, may_edit=False)
        reviewing.choose(word)
        assert reviewing.decision == Decision(choice, review)
    reviewing = Reviewing(review, may_edit=False)
    reviewing.choose(NO, "use tabs")
    assert reviewing.decision == Decision(Choice.NO, review, "use tabs")
    reviewing = Reviewing(review, may_edit=False)
    for word in (HUNKS, YES, NO, YES, YES):
        reviewing.choose(word)
    assert reviewing.decision is not None
    assert [str(part) for part in reviewing.decision.review.left_out] != []


def test_reasons_of_parts_are_sent_where_all_parts_are_left_out() -> None:
    reviewing = Reviewing(changes(), may_edit=False)
    reviewing.choose(FILES)
    reviewing.choose(NO, "no a")
    reviewing.choose(NO)
    reviewing.choose(NO)
    assert reviewing.decision is not None
    assert reviewing.decision.choice is Choice.YES
    assert reviewing.decision.review.is_empty


def test_an_edit_that_cannot_be_used_leads_back_and_keeps_the_text() -> None:
    path = PurePosixPath("a.txt")
    change = FileChange(path, "schön\n".encode("cp1252"), b"sch\xf6ner\n")
    review = Review.from_changes("1", ChangeSet((change,)))
    reviewing = Reviewing(review, may_edit=True)
    reviewing.choose(FILES)
    reviewing.choose(EDIT)
    bad = {"a.txt": b"sch\xf6nst\n"}
    with pytest.raises(BadInput):
        reviewing.end_edit(bad)
    assert reviewing.stage is Stage.PART
    assert reviewing.editable == bad
    reviewing.choose(EDIT)
    reviewing.cancel_edit()
    assert reviewing.stage is Stage.PART
    reviewing.choose(EDIT)
    reviewing.end_edit({"a.txt": b"mine\n"})
    assert reviewing.stage is Stage.WHOLE
    assert reviewing.review.edited == ("a.txt",)


@each_row(
    ("line", "expected"),
    [
        ("y", (YES, "")),
        (" Yes ", (YES, "")),
        ("n", (NO, "")),
        ("n use tabs", (NO, "use tabs")),
        ("no: use tabs", (NO, "use tabs")),
        ("y use tabs", ("", "")),
        ("x", ("", "")),
        ("", ("", "")),
        ("b", ("", "")),
    ],
    ids=str,
)
def test_a_line_is_a_word_or_no_answer(line: str, expected: tuple[str, str]) -> None:
    assert parse_line(line, Reviewing(changes(), may_edit=False)) == expected


def test_other_questions_take_no_reason() -> None:
    asked = AskedProposal(CommandProposed("ls", "`ls` is not on the list"))
    assert parse_line("n because", asked) == ("", "")
    assert parse_line("N", asked) == (NO, "")
    assert asked.stage is Stage.WHOLE
    asked.choose(NO)
    assert asked.stage is Stage.DECIDED
    assert asked.decision == Decision(Choice.NO)
