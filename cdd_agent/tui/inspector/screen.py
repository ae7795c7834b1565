"""The inspector of a run: a screen with tabs for a step, the criteria, the timeline,
and the strength of the tests.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static, Tab, Tabs

from cdd_agent.engine.log import LogEntry
from cdd_agent.engine.run_inspection import InspectionProblem, RunInspection
from cdd_agent.engine.timeline import Timeline
from cdd_agent.errors import CddError
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyFinished, ReplyRestarted
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.strength_events import StrengthFinished
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.inspector.action_screen import PUT, ActionScreen
from cdd_agent.tui.inspector.actions import (
    ActionOffer,
    RunAction,
    describe_action,
    describe_redo,
    refusal,
)
from cdd_agent.tui.inspector.activity import activity_of
from cdd_agent.tui.inspector.criteria_tab import CriteriaTab
from cdd_agent.tui.inspector.empty import READING, EmptyState, find_empty_state
from cdd_agent.tui.inspector.footer import empty_keys, list_keys, step_keys
from cdd_agent.tui.inspector.list_tab import ListTab
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.source import InspectorResult, InspectorTab
from cdd_agent.tui.inspector.step_tab import StepTab
from cdd_agent.tui.inspector.strength_rows import (
    FaultPlace,
    strength_facts,
    strength_groups,
    strength_limits,
)
from cdd_agent.tui.inspector.timeline_rows import (
    TimelineRows,
    UndoneStep,
    last_attempt_key,
)
from cdd_agent.tui.inspector.words import count_of, span
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.app import ComposeResult

    from cdd_agent.events.step_summary import StepSummary
    from cdd_agent.events.stream import Event
    from cdd_agent.tui.inspector.source import RunSource

_TABS = {
    InspectorTab.STEP: "Step",
    InspectorTab.CRITERIA: "Criteria",
    InspectorTab.TIMELINE: "Timeline",
    InspectorTab.STRENGTH: "Strength",
}
_CHANGES_THE_RUN = (
    StepFinished,
    StepsUndone,
    StepsRedone,
    PlanOpened,
    StrengthFinished,
)
_CHANGES_THE_STEP = (
    StepStarted,
    ReplyFinished,
    ChangesApplied,
    TestsFinished,
    AttemptFailed,
    StepFinished,
)


class InspectorScreen(GuardedWidget, ModalScreen[InspectorResult | None]):
    """Shows a run. The result is a line for the shell, or None."""

    DEFAULT_CSS = """
    InspectorScreen {
        align: center middle;
        & > #inspector {
            width: 94%; height: 94%; border: round $foreground 40%;
            background: $background;
        }
        & #heading {
            height: 1; padding: 0 1; text-style: bold; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        & ContentSwitcher { height: 1fr; }
        & ContentSwitcher > * { height: 1fr; }
        & #keys {
            height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap;
            text-overflow: ellipsis;
        }
    }
    InspectorScreen.-narrow > #inspector {
        width: 100%; height: 100%; border: none;
    }
    InspectorScreen.-low #heading { display: none; }
    """
    AUTO_FOCUS = ""
    """The open tab sets the focus."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", show=False),
        *(
            Binding(str(place), f"open_tab('{tab}')", f"Tab {name}", show=False)
            for place, (tab, name) in enumerate(_TABS.items(), 1)
        ),
        Binding("tab,ctrl+pagedown", "turn(1)", "Next tab", show=False, priority=True),
        Binding(
            "shift+tab,ctrl+pageup",
            "turn(-1)",
            "Previous tab",
            show=False,
            priority=True,
        ),
        Binding("f2", "toggle_tab('step')", "Step; again: close", show=False),
        Binding("f3", "toggle_tab('criteria')", "Criteria; again: close", show=False),
        Binding("f7", "toggle_tab('timeline')", "Timeline; again: close", show=False),
        Binding("f8", "toggle_tab('strength')", "Strength; again: close", show=False),
        Binding(
            "ctrl+up", "choose_block(-1)", "Block above", show=False, priority=True
        ),
        Binding(
            "ctrl+down", "choose_block(1)", "Block below", show=False, priority=True
        ),
        Binding("n", "walk(1)", "Next step", show=False),
        Binding("p", "walk(-1)", "Previous step", show=False),
        Binding("e", "edit", "Edit the step in plan.md", show=False),
        Binding("r", "act('retry')", "Retry the step", show=False),
        Binding("s", "act('skip')", "Skip the step", show=False),
        Binding("u", "act('undo')", "Undo the step", show=False),
        Binding("m", "measure", "Measure the strength of the tests", show=False),
        Binding("enter", "start", "Put the next command into the prompt", show=False),
    ]

    class EditRequested(Message):
        def __init__(self, ticket_slug: str, number: int) -> None:
            super().__init__()
            self.ticket_slug, self.number = ticket_slug, number

    def __init__(
        self,
        source: RunSource,
        tab: InspectorTab = InspectorTab.STEP,
        number: int | None = None,
    ) -> None:
        """`number` is the step to show; None: the current step."""
        super().__init__()
        self._source = source
        self.tab = tab
        self._number = number
        self._inspection: RunInspection | None = None
        self._timeline = Timeline()
        self._timeline_problem: InspectionProblem | None = None
        self._timeline_rows = TimelineRows()
        self._early_events: list[LogEntry] = []
        self._step_events: list[StepStarted | StepFinished] = []
        self._is_refresh_due = False
        self._empty: dict[InspectorTab, EmptyState | None] = {}
        self._times_edited = 0

    # --- the screen

    def compose(self) -> ComposeResult:
        with Widget(id="inspector"):
            yield Static(id="heading", markup=False)
            tabs = Tabs(
                *(Tab(name, id=tab.value) for tab, name in _TABS.items()),
                active=self.tab.value,
            )
            tabs.can_focus = False
            yield tabs
            with ContentSwitcher(initial=_pane(self.tab)):
                yield StepTab(id=_pane(InspectorTab.STEP))
                yield CriteriaTab(
                    self._source.reader.read_step, id=_pane(InspectorTab.CRITERIA)
                )
                yield ListTab(id=_pane(InspectorTab.TIMELINE))
                yield ListTab(id=_pane(InspectorTab.STRENGTH))
            yield KeyLine(id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#heading", Static).update(self._source.slug)
        self._step_tab.show_problem(BlockKind.NOTE, READING.text)
        for tab in (self._criteria_tab, self._timeline_tab, self._strength_tab):
            tab.show_empty(READING)
        self._focus_tab()
        # The log is written before an event is shown, so later lines arrive as events.
        self.read(self._source.reader.log_size)

    @property
    def step(self) -> StepSummary | None:
        """The step that all tabs show."""
        if self._inspection is None:
            return None
        return self._inspection.step(self._number)

    @property
    def _step_of_cursor(self) -> StepSummary | None:
        if self.tab is InspectorTab.STEP or self._inspection is None:
            return self.step
        row = self._list_of(self.tab).row
        if row is None or not isinstance(row.target, int):
            return None
        return self._inspection.step(row.target)

    @property
    def _step_tab(self) -> StepTab:
        return self.query_one(StepTab)

    @property
    def _criteria_tab(self) -> CriteriaTab:
        return self.query_one(CriteriaTab)

    @property
    def _timeline_tab(self) -> ListTab:
        return self.query_one(f"#{_pane(InspectorTab.TIMELINE)}", ListTab)

    @property
    def _strength_tab(self) -> ListTab:
        return self.query_one(f"#{_pane(InspectorTab.STRENGTH)}", ListTab)

    @property
    def _is_closed(self) -> bool:
        """True after the screen was closed. Its tabs may be gone while it still reads
        the run.
        """
        return self not in self.app.screen_stack

    def seen(self) -> Hashable:
        return self.tab, self._number, self._times_edited

    # --- reading

    @work(exclusive=True, group="read")
    async def read(self, log_size: int) -> None:
        reader = self._source.reader
        inspection = await asyncio.to_thread(reader.read)
        try:
            self._timeline = await asyncio.to_thread(reader.read_timeline, log_size)
        except CddError as error:
            self._timeline_problem = InspectionProblem.from_error(error)
        if self._is_closed:
            return
        # Events until here are early events.
        self._inspection = inspection
        early, self._early_events = self._early_events, []
        for entry in early:
            self._inspection = self._inspection.with_event(entry.event)
            self._timeline.add(entry)
        if self.step is None:
            self._number = self._inspection.current_step
        self.show_run()
        self.read_step()

    @work(exclusive=True, group="read again")
    async def read_again(self) -> None:
        await self._read_files()
        if self.step is None and self._inspection is not None:
            self._number = self._inspection.current_step
            self.read_step()
        self.show_run()

    async def _read_files(self) -> None:
        """Read the run's files. Events during the reading may be newer."""
        self._step_events.clear()
        inspection = await asyncio.to_thread(self._source.reader.read)
        for event in self._step_events:
            inspection = inspection.with_event(event)
        self._inspection = inspection

    @work(exclusive=True, group="read step")
    async def read_step(self) -> None:
        if self._number is not None:
            await self._read_shown_step(self._number)

    async def _read_shown_step(self, number: int) -> None:
        try:
            details = await asyncio.to_thread(self._source.reader.read_step, number)
        except CddError as error:
            text = f"{error.message}\n{error.hint or ''}".strip()
            if self._is_shown(number):
                self._step_tab.show_problem(BlockKind.ERROR, text)
            return
        if not self._is_shown(number):
            return
        self._step_tab.show(details)
        self._show_first_activity()
        self._show_keys()

    def _is_shown(self, number: int) -> bool:
        return number == self._number and not self._is_closed

    def _show_first_activity(self) -> None:
        step = self.step
        if step is None or self._step_tab.activity or not self._is_running:
            return
        if step.status is StepStatus.IN_PROGRESS:
            model = self._timeline.asked_model(step.folder or step.number)
            self._step_tab.show_activity(f"asking {model}" if model else "at work")

    def show_run(self) -> None:
        self._is_refresh_due = False
        inspection = self._inspection
        if inspection is None or self._is_closed:
            return
        name = inspection.ticket_slug
        if inspection.title:
            name += f": {inspection.title}"
        self.query_one("#heading", Static).update(sanitize_for_display(name))
        for tab in InspectorTab:
            self._empty[tab] = find_empty_state(
                tab, inspection, self._timeline, self._timeline_problem
            )
        self._show_step(inspection)
        self._show_criteria(inspection)
        self._show_timeline(inspection)
        self._show_strength(inspection)
        self._show_keys()

    def _show_step(self, inspection: RunInspection) -> None:
        empty = self._empty[InspectorTab.STEP]
        step = inspection.step(self._number)
        if empty is not None:
            kind = BlockKind.ERROR if empty.is_problem else BlockKind.NOTE
            self._step_tab.show_problem(kind, empty.in_words)
        elif step is not None:
            self._step_tab.show_summary(step)

    def _show_criteria(self, inspection: RunInspection) -> None:
        empty = self._empty[InspectorTab.CRITERIA]
        if empty is not None:
            self._criteria_tab.show_empty(empty)
        else:
            self._criteria_tab.show_criteria(inspection.criteria)

    def _show_timeline(self, inspection: RunInspection) -> None:
        empty = self._empty[InspectorTab.TIMELINE]
        if empty is not None:
            self._timeline_tab.show_empty(empty)
            return
        is_first = self._timeline_tab.rows.row is None
        groups = self._timeline_rows.groups(self._timeline, inspection)
        step = inspection.step(self._number)
        cursor = None
        if is_first:
            cursor = last_attempt_key(self._timeline, step.folder if step else 0)
            cursor = cursor or (groups[-1].head.key if groups else None)
        self._timeline_tab.show(_timeline_facts(self._timeline), groups, cursor)

    def _show_strength(self, inspection: RunInspection) -> None:
        empty = self._empty[InspectorTab.STRENGTH]
        if empty is not None:
            self._strength_tab.show_empty(empty)
            return
        reading = inspection.strength
        is_first = self._strength_tab.rows.row is None
        cursor = ("strength", self._number) if is_first else None
        self._strength_tab.show(
            strength_facts(reading), strength_groups(reading), cursor
        )

    # --- events of the run

    def receive(self, event: Event) -> None:
        if not self._is_of_this_run(event) or not self.is_mounted or self._is_closed:
            return
        entry = LogEntry(datetime.now(UTC), event)
        if self._inspection is None:
            self._early_events.append(entry)
            return
        if isinstance(event, StepStarted | StepFinished):
            self._step_events.append(event)
        is_shown = self._timeline.add(entry)
        inspection = self._inspection.with_event(event)
        if is_shown or inspection is not self._inspection:
            self._inspection = inspection
            self._refresh_soon()
        if isinstance(event, _CHANGES_THE_RUN):
            self.read_again()
        step = getattr(event, "step", None)
        if step is not None and step == self._number:
            self._follow_step(event)

    def _is_of_this_run(self, event: Event) -> bool:
        slug = getattr(event, "ticket_slug", "")
        if slug:
            return bool(slug == self._source.slug)
        return self._source.is_followed()

    def _follow_step(self, event: Event) -> None:
        tab = self._step_tab
        if isinstance(event, ReplyDelta):
            tab.stream(event.text)
        if isinstance(event, ReplyFinished | ReplyRestarted):
            tab.end_stream()
        activity = activity_of(event)
        if activity is not None:
            tab.show_activity(activity)
        if isinstance(event, _CHANGES_THE_STEP):
            self.read_step()

    def _refresh_soon(self) -> None:
        if not self._is_refresh_due:
            self._is_refresh_due = True
            self.call_after_refresh(self.show_run)

    # --- tabs

    def action_open_tab(self, name: str) -> None:
        tab = InspectorTab(name)
        if tab is self.tab:
            return
        self.tab = tab
        self.query_one(Tabs).active = name
        self.query_one(ContentSwitcher).current = _pane(tab)
        self._point_at_step(tab)
        self._focus_tab()
        self._show_keys()

    def action_turn(self, by: int) -> None:
        tabs = list(InspectorTab)
        place = (tabs.index(self.tab) + by) % len(tabs)
        self.action_open_tab(tabs[place].value)

    def action_toggle_tab(self, name: str) -> None:
        """Open a tab; if it is open, close the screen."""
        if self.tab == name:
            self.action_close()
        else:
            self.action_open_tab(name)

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        self.action_open_tab(str(event.tab.id))

    def _point_at_step(self, tab: InspectorTab) -> None:
        inspection, step = self._inspection, self.step
        if inspection is None or step is None or self._empty.get(tab) is not None:
            return
        row = self._list_of(tab).row if tab is not InspectorTab.STEP else None
        if row is not None and row.target == step.number:
            return
        if tab is InspectorTab.CRITERIA:
            self._criteria_tab.show_criteria(inspection.criteria, step.number)
        elif tab is InspectorTab.TIMELINE:
            key = last_attempt_key(self._timeline, step.folder)
            if key is not None:
                self._timeline_tab.rows.move_to_key(key)
        elif tab is InspectorTab.STRENGTH:
            self._strength_tab.rows.move_to_key(("strength", step.number))

    def _list_of(self, tab: InspectorTab) -> RowList:
        return self.query_one(f"#{_pane(tab)} RowList", RowList)

    def _focus_tab(self) -> None:
        tab = self.tab
        if tab is InspectorTab.STEP:
            self._step_tab.transcript.focus()
        elif self._empty.get(tab, READING) is None:
            self._list_of(tab).focus()
        else:
            self.set_focus(None)

    def _show_keys(self) -> None:
        self.query_one("#keys", Static).update(self._key_line())
        if self.focused is None:
            self._focus_tab()

    def _key_line(self) -> str:
        empty = self._empty.get(self.tab)
        if empty is not None:
            return empty_keys(empty, can_measure=self._can_measure_here)
        if self.tab is InspectorTab.STEP and self.step is not None:
            return step_keys(
                self.step, self._step_tab.attempts, is_running=self._is_running
            )
        return list_keys(self.tab, can_measure=self._can_measure_here)

    @property
    def _is_running(self) -> bool:
        return self._source.is_busy() and self._source.is_followed()

    # --- keys

    def on_row_list_highlighted(self, event: RowList.Highlighted) -> None:
        if isinstance(event.row.target, int) and event.rows.has_focus:
            self._choose_step(event.row.target)

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        target = event.row.target
        if isinstance(target, int):
            self._choose_step(target)
            self.action_open_tab(InspectorTab.STEP.value)
        elif isinstance(target, FaultPlace):
            path = self._source.reader.root / target.path
            self.post_message(Transcript.FileChosen(path, target.line))
        elif isinstance(target, UndoneStep):
            self._offer_redo()

    def _choose_step(self, number: int) -> None:
        if number != self._number and self._inspection is not None:
            self._number = number
            self.read_step()

    def action_walk(self, by: int) -> None:
        if self._inspection is None or self.tab is not InspectorTab.STEP:
            return
        numbers = [step.number for step in self._inspection.steps]
        if self._number not in numbers:
            return
        place = min(max(numbers.index(self._number) + by, 0), len(numbers) - 1)
        self._choose_step(numbers[place])

    def action_choose_block(self, by: int) -> None:
        if self.tab is InspectorTab.STEP:
            self._step_tab.transcript.choose_block(by)

    def action_edit(self) -> None:
        step = self._step_of_cursor
        if step is None:
            return
        self._times_edited += 1
        self._choose_step(step.number)
        self.action_open_tab(InspectorTab.STEP.value)
        self.post_message(self.EditRequested(self._source.slug, step.number))

    def action_act(self, word: str) -> None:
        """Ask the user to confirm an action on the step."""
        step = self._step_of_cursor
        if step is None:
            return
        action = RunAction(word)
        why_not = refusal(action, step, is_running=self._is_running)
        if why_not:
            self.notify(why_not, severity="warning", markup=False)
            return
        command = self._source.command(word, step.label)
        longer = ""
        if action is not RunAction.UNDO and command.line.startswith(word):
            longer = f"{command.line} because "
        offer = ActionOffer(
            f"{word.capitalize()} step {step.label}: {step.title}",
            command.line,
            (*describe_action(action, step), *filter(None, [command.note])),
            longer,
            step.number if action is RunAction.UNDO else None,
        )
        self._offer(offer)

    def _offer_redo(self) -> None:
        if self._inspection is None or not self._inspection.undone:
            return
        command = self._source.command("redo", "")
        effects = (describe_redo(self._inspection), *filter(None, [command.note]))
        self._offer(ActionOffer("Redo the undone steps", command.line, effects))

    @property
    def _can_measure_here(self) -> bool:
        inspection = self._inspection
        is_open = self.tab is InspectorTab.STRENGTH
        return is_open and inspection is not None and inspection.strength.completed > 0

    def action_measure(self) -> None:
        if self._inspection is None or not self._can_measure_here:
            return
        line = f"/verify {self._source.slug} --strength"
        effect = strength_limits(self._inspection.strength)
        self._offer(ActionOffer("Measure the strength of the tests", line, (effect,)))

    def _offer(self, offer: ActionOffer) -> None:
        self.app.push_screen(
            ActionScreen(offer, self._source), partial(self._settle, offer)
        )

    def _settle(self, offer: ActionOffer, answer: str | None) -> None:
        if not answer:
            return
        if answer == PUT:
            self.dismiss(InspectorResult(offer.longer_line or offer.line))
        else:
            self.dismiss(InspectorResult(offer.line, is_sent=True))

    def action_start(self) -> None:
        """Put the next command of an empty tab into the prompt."""
        empty = self._empty.get(self.tab)
        if empty is None or not empty.command:
            return
        if self._can_measure_here:
            self.action_measure()
        else:
            self.dismiss(InspectorResult(empty.command))

    def action_close(self) -> None:
        self.dismiss(None)

    # --- editing

    def report(self, number: int, *news: tuple[BlockKind, str]) -> None:
        if self._is_shown(number):
            self._step_tab.report(*news)

    @work(exclusive=True, group="read again")
    async def show_edited_plan(self, number: int, *news: tuple[BlockKind, str]) -> None:
        await self._read_files()
        self.show_run()
        if not self._is_shown(number):
            return
        await self._read_shown_step(number)
        self.report(number, *news)


def _pane(tab: InspectorTab) -> str:
    return f"pane-{tab.value}"


def _timeline_facts(timeline: Timeline) -> str:
    effort = timeline.effort
    attempts = sum(part.is_attempt for part in timeline.parts)
    facts = [count_of(attempts, "attempt")]
    if effort.seconds:
        facts.append(f"{span(effort.seconds)} of work")
    if effort.cost.tokens:
        facts.append(effort.cost.in_full())
    if timeline.damaged_lines:
        lines = count_of(timeline.damaged_lines, "line")
        facts.append(f"{lines} of the log cannot be read")
    return " · ".join(facts)
