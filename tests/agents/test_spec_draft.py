"""The draft of a spec: what a model changes item by item, and what the user edits."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.agents.added_lines import BEGIN
from cdd_agent.agents.socrates_prompt import shorten_history
from cdd_agent.agents.spec_draft import Draft
from cdd_agent.agents.spec_losses import lost_words, sentences, spec_diff
from cdd_agent.agents.spec_proposal import Proposal, respell_proposal
from cdd_agent.llm.port import Message
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import MAX_BYTES
from cdd_agent.values.typed_values import read
from tests.support.tables import each_row

LOGIN, LOGOUT, RESET = "a user can log in", "logout works", "a password can be reset"
FILE = TicketSpec(
    title="Accounts",
    description="People need accounts. Only with an invitation. Not for bots.",
    acceptance_criteria=(LOGIN, LOGOUT),
    implementation_scope={"api": ("login",), "out_of_scope": ("mail",)},
    technical_notes="Keep it small. Never touch the database.",
)
QUIET = Redactor()
MANY = tuple(f"criterion {number}" for number in range(55))


def proposed(draft: Draft, *, is_answer: bool = True, **fields: Any) -> Draft:
    proposal = read(Proposal, respell_proposal(fields))
    return draft.with_proposal(proposal, QUIET, is_answer=is_answer)


def problems(draft: Draft, *, is_answer: bool = True, **fields: Any) -> str:
    proposal = read(Proposal, respell_proposal({"questions": ["Why?"], **fields}))
    return "\n".join(draft.problems(proposal, is_answer=is_answer))


def new(text: str, check: str = "") -> dict[str, Any]:
    return {"text": text, "check": check}


def gone(key: str) -> dict[str, Any]:
    return {"id": key, "remove": True}


# -------------------------------------------------------------- the items of a model

Changes = list[Any]

CRITERIA: dict[str, tuple[list[Changes], list[str]]] = {
    "nothing": ([[]], [LOGIN, LOGOUT]),
    "one other item": ([[new(RESET)]], [LOGIN, LOGOUT, RESET]),
    "one of two": ([[new(LOGIN, "pytest")]], [LOGIN, LOGOUT]),
    "the whole list again": ([[new(LOGIN), new(LOGOUT)]], [LOGIN, LOGOUT]),
    "the whole list and one more": (
        [[new(LOGIN), new(LOGOUT), new(RESET)]],
        [LOGIN, LOGOUT, RESET],
    ),
    "the list in another order": ([[new(LOGOUT), new(LOGIN)]], [LOGIN, LOGOUT]),
    "the list with its ids": (
        [[{"id": "c1", "text": LOGIN}, {"id": "c2", "text": LOGOUT}]],
        [LOGIN, LOGOUT],
    ),
    "a new item twice": ([[new(RESET), new(RESET, "pytest")]], [LOGIN, LOGOUT, RESET]),
    "a new item again in the next turn": (
        [[new(RESET)], [new(RESET)]],
        [LOGIN, LOGOUT, RESET],
    ),
    "an item with other spaces": ([[new(f"  {LOGIN}  \n")]], [LOGIN, LOGOUT]),
    "a reworded item": ([[{"id": "c1", "text": RESET}]], [RESET, LOGOUT]),
    "an item reworded twice": (
        [[{"id": "c1", "text": RESET}], [{"id": "c1", "text": "x y"}]],
        ["x y", LOGOUT],
    ),
    "an item reworded and back": (
        [[{"id": "c1", "text": RESET}], [{"id": "c1", "text": LOGIN}]],
        [LOGIN, LOGOUT],
    ),
    "a reworded new item": (
        [[new(RESET)], [{"id": "c3", "text": "x y"}]],
        [LOGIN, LOGOUT, "x y"],
    ),
    "a check only": ([[{"id": "c1", "check": "pytest"}]], [LOGIN, LOGOUT]),
    "a removed item": ([[gone("c1")]], [LOGOUT]),
    "a removed item with its words": (
        [[{"id": "c1", "text": LOGIN, "remove": True}]],
        [LOGOUT],
    ),
    "all removed": ([[gone("c1"), gone("c2")]], []),
    "removed and said again": ([[gone("c1")], [new(LOGIN)]], [LOGIN, LOGOUT]),
    "removed and reworded": (
        [[gone("c1")], [{"id": "c1", "text": RESET}]],
        [LOGOUT],
    ),
    "a removed new item": ([[new(RESET)], [gone("c3")]], [LOGIN, LOGOUT]),
    "an id is not used again": (
        [[new(RESET)], [gone("c3")], [new("x y")], [{"id": "c3", "text": "z"}]],
        [LOGIN, LOGOUT, "x y"],
    ),
    "the id of the new item": (
        [[new(RESET)], [gone("c3")], [new("x y")], [{"id": "c4", "text": "z"}]],
        [LOGIN, LOGOUT, "z"],
    ),
    "an invented id": ([[{"id": "c7", "text": RESET}]], [LOGIN, LOGOUT, RESET]),
    "an id in other words": (
        [[{"id": "first", "text": RESET}]],
        [LOGIN, LOGOUT, RESET],
    ),
    "a removal by words": ([[{"text": LOGIN, "remove": True}]], [LOGIN, LOGOUT]),
    "a removal of nothing": ([[{"remove": True}]], [LOGIN, LOGOUT]),
    "a removal with an invented id": ([[gone("c9")]], [LOGIN, LOGOUT]),
    "an empty text": ([[{"id": "c1", "text": "  "}]], [LOGIN, LOGOUT]),
    "a placeholder for an item": ([[{"id": "c1", "text": "TODO"}]], [LOGIN, LOGOUT]),
    "a new placeholder": ([[new("<what is to be seen>")]], [LOGIN, LOGOUT]),
    "bare texts": ([[LOGIN, RESET]], [LOGIN, LOGOUT, RESET]),
    "an empty change": ([[{}]], [LOGIN, LOGOUT]),
    "an id alone": ([[{"id": "c1"}]], [LOGIN, LOGOUT]),
    "null for everything": (
        [[{"id": None, "text": None, "check": None}]],
        [LOGIN, LOGOUT],
    ),
}


@each_row("name", CRITERIA)
def test_only_what_a_model_names_changes(name: str) -> None:
    turns, expected = CRITERIA[name]
    draft = Draft.over(FILE)
    for changes in turns:
        draft = proposed(draft, acceptance_criteria=changes)
    assert list(draft.spec.acceptance_criteria) == expected
    assert replace(draft.spec, acceptance_criteria=FILE.acceptance_criteria) == FILE


def test_a_check_belongs_to_its_item() -> None:
    draft = proposed(
        Draft.over(FILE),
        acceptance_criteria=[{"id": "c1", "check": "pytest"}, new(LOGOUT, "try it")],
    )
    assert [item.check for item in draft.real_criteria] == ["pytest", "try it"]
    draft = proposed(
        draft, acceptance_criteria=[{"id": "c1", "check": ""}, new(LOGOUT)]
    )
    assert draft.unchecked == ()
    draft = proposed(draft, acceptance_criteria=[{"id": "c2", "text": RESET}])
    assert draft.unchecked == ()


def test_no_cap_removes_items() -> None:
    draft = Draft.over(replace(FILE, acceptance_criteria=MANY))
    everything = [new(text, "pytest") for text in (*MANY, LOGIN)]
    assert not problems(draft, acceptance_criteria=everything)
    after = proposed(draft, acceptance_criteria=everything)
    assert after.spec.acceptance_criteria == (*MANY, LOGIN)
    for long in ("w " * 1_500, "w " * 15_000):
        assert proposed(draft, title=long).spec.title == long.strip()
        assert proposed(draft, facts=[long] * 60).facts == (long.strip(),) * 60
        questions = [f"{number} {long}" for number in range(40)]
        assert len(proposed(draft, questions=questions).questions) == 40


def test_a_spec_that_its_file_cannot_hold_changes_nothing_and_is_a_problem() -> None:
    draft = Draft.over(FILE)
    large = [new(LOGIN, "pytest"), *(new(f"{n} {'w' * 999}") for n in range(300))]
    assert f"{MAX_BYTES:,}" in problems(draft, acceptance_criteria=large)
    after = proposed(draft, acceptance_criteria=large, questions=["Why?"])
    assert after.spec == FILE
    assert [question.text for question in after.questions] == ["Why?"]


def test_what_is_too_large_already_may_become_smaller() -> None:
    draft = Draft.over(replace(FILE, acceptance_criteria=("w" * MAX_BYTES, LOGIN)))
    assert proposed(draft, acceptance_criteria=[gone("c1")]).criteria.lines


SCOPE: dict[str, tuple[Any, dict[str, tuple[str, ...]]]] = {
    "nothing": ([], {"api": ("login",), "out_of_scope": ("mail",)}),
    "another area": (
        [{"area": "docs", "text": "page"}],
        {"api": ("login",), "out_of_scope": ("mail",), "docs": ("page",)},
    ),
    "one more of an area": (
        [{"area": "api", "text": "logout"}],
        {"api": ("login", "logout"), "out_of_scope": ("mail",)},
    ),
    "the same again": (
        [{"area": "api", "text": "login"}],
        {"api": ("login",), "out_of_scope": ("mail",)},
    ),
    "the same without its area": (
        [{"text": "mail"}],
        {"api": ("login",), "out_of_scope": ("mail",)},
    ),
    "the same words in another area": (
        [{"area": "docs", "text": "login"}],
        {"api": ("login",), "out_of_scope": ("mail",), "docs": ("login",)},
    ),
    "no area": (
        [{"text": "page"}],
        {"api": ("login",), "out_of_scope": ("mail",), "scope": ("page",)},
    ),
    "lists by area": (
        {"api": ["login", "logout"], "docs": "page"},
        {"api": ("login", "logout"), "out_of_scope": ("mail",), "docs": ("page",)},
    ),
    "a bare text": (
        ["page"],
        {"api": ("login",), "out_of_scope": ("mail",), "scope": ("page",)},
    ),
    "reworded": (
        [{"id": "s1", "text": "logout"}],
        {"api": ("logout",), "out_of_scope": ("mail",)},
    ),
    "to another area": (
        [{"id": "s1", "area": "web"}],
        {"web": ("login",), "out_of_scope": ("mail",)},
    ),
    "an area removed": ([gone("s2")], {"api": ("login",)}),
    "an area in two lines": (
        [{"area": "web\nsite", "text": "x"}],
        {"api": ("login",), "out_of_scope": ("mail",), "web site": ("x",)},
    ),
}


@each_row("name", SCOPE)
def test_so_it_is_with_the_scope(name: str) -> None:
    changes, expected = SCOPE[name]
    draft = proposed(Draft.over(FILE), implementation_scope=changes)
    assert dict(draft.spec.implementation_scope) == expected
    assert replace(draft.spec, implementation_scope=FILE.implementation_scope) == FILE


TEXTS = [
    ({}, {}),
    ({"title": "Other"}, {"title": "Other"}),
    ({"title": " Accounts \n"}, {}),
    ({"title": ""}, {}),
    ({"title": "<one line>"}, {}),
    ({"description": "  \n"}, {}),
    ({"description": "TODO"}, {}),
    ({"description": "a  \n\tb\r\nc "}, {"description": "a\n    b\nc"}),
    ({"technical_notes": ""}, {}),
    ({"technical_notes": "More."}, {"technical_notes": "More."}),
    ({"priority": "high"}, {"priority": "high"}),
    ({"priority": ""}, {}),
    ({"title": None, "description": None}, {}),
]


@each_row(("fields", "changed"), TEXTS)
def test_a_text_is_replaced_as_a_whole_and_never_by_nothing(
    fields: dict[str, Any], changed: dict[str, str]
) -> None:
    draft = proposed(Draft.over(FILE), **fields)
    assert draft.spec == replace(FILE, **changed)
    assert draft.texts == changed
    assert (
        proposed(draft, **{name: getattr(FILE, name) for name in changed}).texts == {}
    )


@each_row(
    ("description", "lost"),
    [
        ("[see the design]", []),
        ("<what is wanted>", []),
        ("We pay. <why it is wanted>", ["We pay."]),
        ("We pay.\n\n<why it is wanted>", ["We pay."]),
        ("We pay.\n\n[see the design]", ["We pay.", "[see the design]"]),
        ("We pay.\n\nTODO", ["We pay.", "TODO"]),
    ],
)
def test_a_user_s_line_that_looks_like_a_placeholder_is_lost_with_a_word(
    description: str, lost: list[str]
) -> None:
    before = TicketSpec(description=description)
    words = lost_words(before, TicketSpec(description="They pay."))
    assert [each.text for each in words] == lost


def test_a_template_s_placeholders_give_way_to_the_first_item() -> None:
    template = replace(FILE, acceptance_criteria=("<what is seen>", "<what else is>"))
    draft = proposed(Draft.over(template), acceptance_criteria=[new(LOGIN)])
    assert draft.spec.acceptance_criteria == (LOGIN,)
    assert lost_words(template, draft.spec) == ()


def test_a_placeholder_between_items_stays_until_it_is_filled_in() -> None:
    file = replace(FILE, acceptance_criteria=(LOGIN, "<what else is seen>"))
    draft = proposed(Draft.over(file), acceptance_criteria=[new(LOGOUT)])
    assert draft.spec.acceptance_criteria == (*file.acceptance_criteria, LOGOUT)
    filled = proposed(draft, acceptance_criteria=[{"id": "c2", "text": RESET}])
    assert filled.spec.acceptance_criteria == (LOGIN, RESET, LOGOUT)
    assert lost_words(file, filled.spec) == ()


# ---------------------------------------------------------------------------- questions


def asked(draft: Draft) -> list[str]:
    return [f"{question.id} {question.text}" for question in draft.questions]


def test_a_question_stays_open_until_it_is_answered() -> None:
    draft = proposed(Draft.over(FILE), questions=["How fast?", "For whom?"])
    draft = proposed(draft, questions=["how FAST"])
    assert asked(draft) == ["q1 How fast?", "q2 For whom?"]
    assert asked(proposed(draft, is_answer=False, answered=["q1"])) == asked(draft)
    draft = proposed(draft, answered=["q1"], questions=["By when?"])
    assert asked(draft) == ["q2 For whom?", "q3 By when?"]
    draft = proposed(draft, questions=["How fast?"])
    assert asked(draft)[-1] == "q4 How fast?"


def test_a_dropped_question_is_not_asked_again() -> None:
    draft = proposed(Draft.over(FILE), questions=["How fast?", "For whom?"]).drop([1])
    assert asked(draft) == ["q2 For whom?"]
    assert "does not want to answer" in problems(draft, questions=["How fast?"])
    assert asked(proposed(draft, questions=["How fast?"])) == ["q2 For whom?"]


# ------------------------------------------------------------------ the user edits, too

EDITS: dict[str, tuple[list[str], Changes, list[str], list[str]]] = {
    "nothing": ([LOGIN, LOGOUT], [new(RESET)], [LOGIN, LOGOUT, RESET], []),
    "a line at the end": (
        [LOGIN, LOGOUT, "mine"],
        [new(RESET)],
        [LOGIN, LOGOUT, RESET, "mine"],
        [],
    ),
    "a line at the front": (
        ["mine", LOGIN, LOGOUT],
        [{"id": "c1", "text": RESET}],
        ["mine", RESET, LOGOUT],
        [],
    ),
    "another order": (
        [LOGOUT, LOGIN],
        [{"id": "c1", "text": RESET}],
        [LOGOUT, RESET],
        [],
    ),
    "the line that the model reworded": (
        ["mine", LOGOUT],
        [{"id": "c1", "text": RESET}],
        ["mine", LOGOUT],
        [RESET],
    ),
    "the line that the model removed": (
        ["mine", LOGOUT],
        [gone("c1")],
        ["mine", LOGOUT],
        [LOGIN],
    ),
    "another line": (["mine", LOGOUT], [gone("c2")], ["mine"], []),
    "the reworded line is removed": (
        [LOGOUT],
        [{"id": "c1", "text": RESET}],
        [LOGOUT],
        [RESET],
    ),
    "the removed line is removed": ([LOGOUT], [gone("c1")], [LOGOUT], []),
    "what the model proposed": (
        [LOGIN, LOGOUT, RESET],
        [new(RESET)],
        [LOGIN, LOGOUT, RESET],
        [],
    ),
    "what the model proposed, and more": (
        ["too", LOGIN, LOGOUT, RESET],
        [new(RESET)],
        ["too", LOGIN, LOGOUT, RESET],
        [],
    ),
    "what the model reworded": (
        [RESET, LOGOUT],
        [{"id": "c1", "text": RESET}],
        [RESET, LOGOUT],
        [],
    ),
    "all lines": (
        ["mine", "too"],
        [gone("c1"), new(RESET)],
        ["mine", "too", RESET],
        [LOGIN],
    ),
    "no lines": ([], [new(RESET)], [RESET], []),
    "a line twice": ([LOGIN, LOGIN, LOGOUT], [gone("c1")], [LOGIN, LOGOUT], []),
}


@each_row("name", EDITS)
def test_the_file_wins_item_by_item(name: str) -> None:
    lines, changes, expected, dropped = EDITS[name]
    draft = proposed(Draft.over(FILE), acceptance_criteria=changes)
    rebased = draft.rebase(replace(FILE, acceptance_criteria=tuple(lines)))
    assert list(rebased.draft.spec.acceptance_criteria) == expected
    assert [change.text for change in rebased.dropped] == dropped
    is_changed = rebased.draft.spec != draft.spec
    assert rebased.edited == ("acceptance_criteria",) * is_changed


def test_a_check_stays_with_a_moved_line() -> None:
    draft = proposed(Draft.over(FILE), acceptance_criteria=[new(LOGIN, "pytest")])
    rebased = draft.rebase(
        replace(FILE, acceptance_criteria=(LOGOUT, LOGIN, "mine"))
    ).draft
    assert [item.check for item in rebased.criteria.items] == ["", "pytest", ""]
    assert [item.id for item in rebased.criteria.items] == ["c2", "c1", "c3"]


def test_a_line_with_the_words_of_a_removed_one_is_written() -> None:
    changes = [gone("c1"), {"id": "c2", "text": LOGIN}]
    draft = proposed(Draft.over(FILE), acceptance_criteria=changes)
    assert list(draft.spec.acceptance_criteria) == [LOGIN]
    written = draft.rebase(draft.spec).draft
    assert written.spec == draft.spec
    assert not any(item.is_changed for item in written.criteria.items)


def test_the_user_s_text_wins_over_an_unwritten_one() -> None:
    draft = proposed(Draft.over(FILE), title="Other", technical_notes="More.")
    rebased = draft.rebase(replace(FILE, title="Mine"))
    assert rebased.draft.spec == replace(FILE, title="Mine", technical_notes="More.")
    assert rebased.edited == ("title",)
    assert [change.text for change in rebased.dropped] == ["Other"]
    agreed = draft.rebase(replace(FILE, title="Other"))
    assert (agreed.edited, agreed.dropped) == ((), ())
    assert agreed.draft.texts == {"technical_notes": "More."}


lines = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=6)
changes = st.lists(
    st.one_of(
        st.builds(new, st.sampled_from(["a", "b", "x", "y", "z"])),
        st.builds(gone, st.sampled_from(["c1", "c2", "c3", "c4"])),
        st.builds(
            lambda key, text: {"id": key, "text": text},
            st.sampled_from(["c1", "c2", "c3", "c4"]),
            st.sampled_from(["a", "b", "x", "y"]),
        ),
    ),
    max_size=4,
)


def with_criteria(texts: Sequence[str]) -> TicketSpec:
    return replace(FILE, acceptance_criteria=tuple(texts))


@given(lines, changes, lines, changes)
def test_every_line_of_the_file_is_in_the_draft_unless_the_model_changed_it(
    before: list[str], first: Changes, now: list[str], second: Changes
) -> None:
    draft = Draft.over(with_criteria(before))
    changed = proposed(draft, acceptance_criteria=first)
    rebased = changed.rebase(with_criteria(now)).draft
    assert [line.text for line in rebased.criteria.written] == now
    touched = {
        item.written.text
        for item in changed.criteria.items
        if item.written and item.is_changed
    }
    remaining = list(rebased.spec.acceptance_criteria)
    for text in now:
        assert text in touched or remaining.count(text) >= 1
        if text in remaining:
            remaining.remove(text)
    added = {item.line.text for item in changed.criteria.items if item.written is None}
    assert added <= set(rebased.spec.acceptance_criteria)
    assert rebased.rebase(with_criteria(now)).draft == rebased
    again = proposed(rebased, acceptance_criteria=second)
    ids = [item.id for item in again.criteria.items]
    assert len(ids) == len(set(ids))
    written = again.rebase(again.spec).draft
    assert written.spec == again.spec
    assert not any(item.is_changed for item in written.criteria.items)


@given(lines, changes)
def test_the_diff_shows_each_lost_line(before: list[str], said: Changes) -> None:
    file = with_criteria(before)
    after = proposed(Draft.over(file), acceptance_criteria=said).spec
    removed = [
        line.removeprefix("-  - ")
        for line in spec_diff(file, after).splitlines()
        if line.startswith("-  - ")
    ]
    for words in lost_words(file, after):
        removed.remove(words.text)


def test_the_diff_names_the_field_of_each_change_and_shows_no_other_lines() -> None:
    before = with_criteria([f"criterion {number}" for number in range(9)])
    criteria = (*before.acceptance_criteria[:7], "criterion 8", "new")
    after = replace(before, title="Other", acceptance_criteria=criteria)
    assert spec_diff(before, after).splitlines() == [
        "```diff",
        " title:",
        f"-  {before.title}",
        "+  Other",
        " acceptance_criteria:",
        "-  - criterion 7",
        "+  - new",
        "```",
    ]


# --------------------------------------------------------------------------- lost words

LOST = [
    ({"description": f"{FILE.description} And more."}, []),
    ({"description": FILE.description.replace(" ", "\n")}, []),
    (
        {"description": "Not for bots. People need accounts. Only with an invitation."},
        [],
    ),
    (
        {"description": "People need accounts. Not for bots."},
        ["Only with an invitation."],
    ),
    (
        {"description": FILE.description.replace("Only", "Mostly")},
        ["Only with an invitation."],
    ),
    ({"title": "Other"}, ["Accounts"]),
    ({"priority": "high"}, ["medium"]),
    ({"technical_notes": "Keep it small."}, ["Never touch the database."]),
    ({"acceptance_criteria": (LOGOUT, LOGIN)}, []),
    ({"acceptance_criteria": (LOGIN,)}, [LOGOUT]),
    ({"acceptance_criteria": (f"{LOGIN} sometimes", LOGOUT)}, [LOGIN]),
    ({"implementation_scope": {"api": ("login",)}}, ["out_of_scope: mail"]),
    ({"implementation_scope": {"out_of_scope": ("mail",), "api": ("login", "x")}}, []),
]


@each_row(("fields", "expected"), LOST)
def test_lost_words_are_sentences_and_items(
    fields: dict[str, Any], expected: list[str]
) -> None:
    after = replace(FILE, **fields)
    assert [words.text for words in lost_words(FILE, after)] == expected
    for words in expected:
        assert f"{words}\n" in spec_diff(FILE, after)


@each_row(
    ("text", "expected"),
    [
        ("", []),
        ("One. Two!\nThree? Four", ["One.", "Two!", "Three?", "Four"]),
        ("これは。それは。", ["これは。", "それは。"]),
        (
            "# A\nText\n- item one. More\n  of it",
            ["# A", "Text", "- item one.", "More", "  of it"],
        ),
        (
            "Seen: it fails.\nExpected: it works.",
            ["Seen: it fails.", "Expected: it works."],
        ),
        ("```\na.  b. c\n\nd\n```\nEnd.", ["```", "a.  b. c", "d", "```", "End."]),
        ("| a | b |\n> quote", ["| a | b |", "> quote"]),
    ],
)
def test_a_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_shorter_histories_keep_the_user_s_lines_of_the_oldest_turns() -> None:
    answer = Message("assistant", "a" * 10)
    turns = [Message("user", BEGIN), answer]
    for line in ("one", "two"):
        turns += [Message("user", line), answer]
    versions = shorten_history(turns, 1_000)
    in_words = [
        " ".join(message.content[:3] for message in version) for version in versions
    ]
    assert in_words == [
        "I h aaa one aaa two aaa",
        "one aaa two aaa",
        "one two aaa",
        "one two",
        "two",
        "",
    ]
    assert shorten_history(turns, 16) == versions[2:]
    assert shorten_history([], 16) == [()]
