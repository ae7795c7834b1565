"""One way to fit a prompt into a window: by rank, whole or smaller, and what is left
out has its name in it.
"""

from pathlib import Path

from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.token_budget import largest_request
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.llm.port import Message
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.tools.read_only import read_only_tools
from tests.support.tables import each_row

SAID = tuple(Message("user", f"Word {number}. " * 40) for number in range(8))
PARTS = (
    PromptPart("Who you are."),
    PromptPart("Rules. " * 200, "the rules", rank=2),
    PromptPart("The ticket."),
    PromptPart("Files. " * 200, "the files", rank=1),
    PromptPart(
        SAID, "earlier turns", rank=3, smaller=[SAID[start:] for start in range(1, 8)]
    ),
    PromptPart((Message("user", "Now."),)),
)


def fitted(
    window: int | None, *parts: PromptPart, root: Path | None = None
) -> FittedPrompt:
    tools = read_only_tools(root) if root is not None else ()
    return fit(
        Dialogue(ScriptedModel([], window=window), tools, "on"), parts or PARTS, tools=1
    )


def test_a_prompt_that_fits_has_all_parts_in_order(
    tmp_path: Path,
) -> None:
    prompt = fitted(None, root=tmp_path)
    system, *messages = prompt.messages
    places = [
        system.content.index(text) for text in ("Who", "Rules", "The ticket", "Files")
    ]
    assert places == sorted(places)
    assert messages == [*SAID, Message("user", "Now.")]
    assert prompt.left_out == ()
    assert len(prompt.dialogue.tools) == 4


@each_row(
    ("window", "left_out"),
    [
        (3_000, ()),
        (2_000, ("earlier turns",)),
        (1_000, ("the rules", "earlier turns")),
        (500, ("the files", "the rules", "earlier turns")),
    ],
)
def test_the_least_important_part_is_dropped_first_and_named(
    window: int, left_out: tuple[str, ...]
) -> None:
    prompt = fitted(window)
    assert prompt.left_out == left_out
    assert all(f"- {name}" in prompt.messages[0].content for name in left_out)
    assert prompt.messages[-1].content == "Now."
    assert prompt.dialogue.size(prompt.messages) <= largest_request(window)


def test_the_largest_form_that_fits_is_chosen() -> None:
    said = fitted(2_000).messages[1:-1]
    assert 0 < len(said) < len(SAID)
    assert said == SAID[-len(said) :]


def test_a_brief_form_drops_nothing() -> None:
    prompt = fitted(
        500,
        PromptPart("You. " * 40),
        PromptPart("Long. " * 500, "the long one", rank=1, brief="Short."),
    )
    assert "Short." in prompt.messages[0].content
    assert prompt.left_out == ()


@each_row("window", [100, 1_000])
def test_a_required_part_has_at_least_its_smallest_form(window: int) -> None:
    prompt = fitted(window, PromptPart(SAID, "what was said", smaller=[SAID[-1:]]))
    assert prompt.messages[1:] == SAID[-1:]
    assert prompt.left_out == ("what was said",)


def test_an_empty_part_is_not_reported_as_dropped() -> None:
    assert (
        fitted(
            100,
            PromptPart("You."),
            PromptPart("", "the rules", rank=1),
            PromptPart((), "earlier", rank=2),
        ).left_out
        == ()
    )
