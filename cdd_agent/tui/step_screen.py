"""One step, opened from the plan: its words; and of each attempt the prompt, the reply,
the changes and the check.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.plan import NO_CHECK
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.actions import show_diff
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.key_line import KeyLine
from cdd_agent.verification.outcomes import Result
from cdd_agent.wording.step_signs import step_glyph, step_remark

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from textual.app import ComposeResult

    from cdd_agent.engine.step_details import AttemptDetails, SeenTest, StepDetails
    from cdd_agent.events.step_summary import StepSummary

_SHOWN_TESTS = 500
"""Tests that passed before, too, and are listed."""

Block = tuple[BlockKind, str]


class _Tabs(GuardedWidget, Widget):
    """The parts of a step, of which one is open."""

    DEFAULT_CSS = """
    _Tabs {
        height: 1; padding: 0 1; background: $surface; text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """
    chosen: reactive[int] = reactive(0)

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names

    def render(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for place, name in enumerate(self.names):
            parts += [
                (
                    f" {name} ",
                    "bold reverse" if place == self.chosen else "$text-muted",
                ),
                " ",
            ]
        return Content.assemble(*parts)


class StepScreen(GuardedWidget, ModalScreen[str]):
    """Shows a step. Closed with a line for the prompt, it is that which the person
    wants to say; an empty one says nothing. Nothing is done from here by itself.
    """

    DEFAULT_CSS = """
    StepScreen {
        align: center middle;
        & > #step {
            width: 94%; height: 94%; border: round $foreground 40%;
            background: $background;
        }
        & #heading { height: auto; max-height: 4; padding: 0 1; }
        & #keys {
            height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
    }
    StepScreen.-narrow > #step { width: 100%; height: 100%; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f2", "close", "Close", show=False),
        Binding("right,tab", "turn(1)", "Next part", show=False, priority=True),
        Binding(
            "left,shift+tab", "turn(-1)", "Previous part", show=False, priority=True
        ),
        Binding("right_square_bracket", "attempt(1)", "Next attempt", show=False),
        Binding("left_square_bracket", "attempt(-1)", "Previous attempt", show=False),
        Binding("n", "step(1)", "Next step", show=False),
        Binding("p", "step(-1)", "Previous step", show=False),
        Binding("e", "edit", "Edit the step in plan.md", show=False),
        Binding("r", "say('retry')", "Put `retry` into the prompt", show=False),
        Binding("s", "say('skip')", "Put `skip` into the prompt", show=False),
        Binding("u", "say('undo')", "Put `undo` into the prompt", show=False),
    ]

    KEYS: ClassVar[str] = (
        "←→ part · n p step · e edit · r retry · s skip · u undo · Esc: close"
    )
    KEYS_OF_ATTEMPTS: ClassVar[str] = (
        "←→ part · [ ] attempt · n p step · e edit · r retry · s skip · u undo · Esc"
    )
    """For a step with more than one attempt."""

    class EditAsked(Message):
        """The person wants to edit the step's text in plan.md."""

        def __init__(self, ticket_slug: str, number: int) -> None:
            super().__init__()
            self.ticket_slug, self.number = ticket_slug, number

    PARTS: ClassVar[tuple[str, ...]] = ("Step", "Prompt", "Reply", "Changes", "Checks")

    def __init__(self, details: StepDetails, look_at: Callable[[int], None]) -> None:
        """`look_at` is called with how many places further on the step is that the
        person wants to see.
        """
        super().__init__()
        self._details = details
        self._attempt = max(len(details.attempts) - 1, 0)
        self._look_at = look_at
        self._times_edited = 0
        self._news: tuple[Block, ...] = ()
        """The outcome of editing it."""

    def compose(self) -> ComposeResult:
        with Widget(id="step"):
            yield Static(id="heading", markup=False)
            yield _Tabs(self.PARTS)
            yield Transcript(follows=False)
            yield KeyLine(id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(Transcript).focus()
        self.show(self._details)

    def show(self, details: StepDetails) -> None:
        """Show this step, at the part that is open."""
        is_another = details.step.number != self._details.step.number
        self._details = details
        if is_another:
            self._news = ()
            self._attempt = max(len(details.attempts) - 1, 0)
        self._fill()

    def seen(self) -> Hashable:
        return (
            self._details.step.number,
            self._attempt,
            self.query_one(_Tabs).chosen,
            self._times_edited,
        )

    def tell(self, *news: Block) -> None:
        """Say something above the step's words."""
        self._news = news
        self.query_one(_Tabs).chosen = 0
        self._fill()

    def _fill(self) -> None:
        details, attempts = self._details, self._details.attempts
        self.query_one("#heading", Static).update(_heading(details, self._attempt))
        keys = self.KEYS_OF_ATTEMPTS if len(attempts) > 1 else self.KEYS
        self.query_one("#keys", Static).update(keys)
        transcript = self.query_one(Transcript)
        transcript.clear()
        attempt = attempts[self._attempt] if attempts else None
        part = self.PARTS[self.query_one(_Tabs).chosen]
        if part == "Changes" and attempt and attempt.diff:
            show_diff(transcript, attempt.diff)
            transcript.scroll_home(animate=False)
            return
        news = self._news if part == self.PARTS[0] else ()
        for kind, text in (*news, *_blocks(part, details, attempt)):
            transcript.add(kind, text)
        transcript.scroll_home(animate=False)

    def action_turn(self, by: int) -> None:
        tabs = self.query_one(_Tabs)
        tabs.chosen = (tabs.chosen + by) % len(self.PARTS)
        self._fill()

    def action_attempt(self, by: int) -> None:
        self._attempt = min(
            max(self._attempt + by, 0), max(len(self._details.attempts) - 1, 0)
        )
        self._fill()

    def action_step(self, by: int) -> None:
        self._look_at(by)

    def action_edit(self) -> None:
        self._times_edited += 1
        self.post_message(
            self.EditAsked(self._details.ticket_slug, self._details.step.number)
        )

    def action_say(self, word: str) -> None:
        """Close with the command, which the user can then send."""
        reason = " because " if word == "skip" else ""
        self.dismiss(f"{word} {self._details.step.label}{reason}")

    def action_close(self) -> None:
        self.dismiss("")


def _heading(details: StepDetails, attempt: int) -> Content:
    view = details.view
    facts = [_standing(view)]
    facts += (
        [f"attempt {attempt + 1} of {len(details.attempts)}"]
        if details.attempts
        else []
    )
    facts += [f"{view.seconds:.0f} s"] if view.seconds is not None else []
    facts += [view.cost.in_full()] if view.cost.tokens else []
    title = sanitize_for_display(f"{step_glyph(view)} {view.label}. {view.title}")
    return Content.assemble(
        (title, "bold"), "\n", (sanitize_for_display(" · ".join(facts)), "$text-muted")
    )


def _standing(view: StepSummary) -> str:
    words = view.status.value.replace("_", " ")
    if remark := step_remark(view):
        words += f", {remark}"
    if view.completed_at:
        words += f" at {datetime.fromisoformat(view.completed_at).astimezone():%H:%M}"
    return words


def _blocks(
    part: str, details: StepDetails, attempt: AttemptDetails | None
) -> Iterator[Block]:
    nothing = (
        BlockKind.NOTE,
        (
            "Nothing yet: no attempt has been made."
            if attempt is None
            else "Nothing was recorded for this attempt."
        ),
    )
    match part:
        case "Step":
            yield from _words(details, attempt)
        case "Prompt":
            yield (
                (BlockKind.MARKDOWN, attempt.request)
                if attempt and attempt.request
                else nothing
            )
        case "Reply":
            yield (
                (BlockKind.MARKDOWN, attempt.reply)
                if attempt and attempt.reply
                else nothing
            )
        case "Checks" if attempt and (attempt.tests or attempt.output):
            yield from _tests(attempt)
        case _:
            yield nothing


def _words(details: StepDetails, attempt: AttemptDetails | None) -> Iterator[Block]:
    step, view = details.step, details.view
    if view.status is StepStatus.COMPLETED and view.evidence is not None:
        yield (
            BlockKind.WARNING if step_remark(view) else BlockKind.GOOD,
            f"Evidence: {evidence_in_words(view.evidence)}",
        )
    error = ""
    if view.error and view.status is StepStatus.FAILED:
        error = view.error
        yield BlockKind.ERROR, error
    if view.reason and view.status is StepStatus.SKIPPED:
        yield BlockKind.WARNING, f"Skipped: {view.reason}"
    if view.changed:
        yield (
            BlockKind.WARNING,
            "This step has changed in the plan since it ran.",
        )
    if attempt and attempt.guidance:
        yield BlockKind.NOTE, f"Guidance: {attempt.guidance}"
    if attempt and attempt.failure:
        # the failure begins with the error, which is shown above
        more = attempt.failure.removeprefix(error).strip()
        if more:
            yield BlockKind.OUTPUT, more
    files = "\n".join(f"- `{file.place}`" for file in step.files_affected)
    depends = ", ".join(details.depends_on) or "none"
    verify = "the project's check"
    if step.checks is not None:
        verify = ", ".join(f"`{check}`" for check in step.checks) or NO_CHECK
    yield (
        BlockKind.MARKDOWN,
        (
            f"{step.description}\n\n**Depends on:** {depends}  \n**Verify:**"
            f" {verify}\n\n{files}"
        ),
    )


def _tests(attempt: AttemptDetails) -> Iterator[Block]:
    """Yield the tests that changed first, then some of the unchanged ones."""
    stayed = [test for test in attempt.tests if test.result is test.before]
    for test in attempt.tests:
        if test.result is not test.before:
            yield _seen(test)
    for test in stayed[:_SHOWN_TESTS]:
        yield _seen(test)
    if len(stayed) > _SHOWN_TESTS:
        yield (
            BlockKind.NOTE,
            f"and {len(stayed) - _SHOWN_TESTS:,} more with the same result as before",
        )
    if attempt.output:
        yield BlockKind.OUTPUT, attempt.output


def _seen(test: SeenTest) -> Block:
    before = "new" if test.before is None else f"{test.before.value} before"
    match test.result, test.before:
        case Result.FAILED, Result.FAILED:
            return BlockKind.WARNING, f"{test.name}  failed, also before"
        case Result.FAILED, _:
            return BlockKind.ERROR, f"{test.name}  failed, {before}"
        case Result.PASSED, Result.PASSED:
            return BlockKind.GOOD, test.name
        case Result.PASSED, _:
            return BlockKind.GOOD, f"{test.name}  passed, {before}"
        case _:
            return BlockKind.NOTE, f"{test.name}  {test.result.value}, {before}"
