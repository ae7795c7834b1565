"""Questions about a run. The prompt contains the ticket, its plan, and the progress."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdd_agent.agents.attachments import attach_files, room_for_files
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.context.finder import CodeFinder, in_words
from cdd_agent.context.query import Query
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.retelling import LONGEST_TEXT
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.run_events import QuestionAnswered, QuestionAsked
from cdd_agent.llm.port import Message
from cdd_agent.project.rules import project_rules
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.outcome_words import remark_on
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tools.read_only import read_only_tools

PLAN_TEXT = "the plan's text"
"""Its name in the notice that it did not fit."""
PLACES = "Places in the code that the question may be about"
_MOST_FILES = 6
_LONGEST_ERROR = 4_000
_REMEMBERED = 12
"""Number of earlier messages in the prompt."""


class RunQuestions:
    """Answers questions with the run's model and budget, and remembers them during this
    visit.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._emit = engine.run.emit
        self._messages: tuple[Message, ...] = ()
        self._omitted = Omitted()

    async def answer(self, step: PlanStep, question: str) -> None:
        self._emit(QuestionAsked(step.number, question))
        run = self._engine.run
        root = self._engine.runner.root
        model = self._engine.runner.model()
        room = room_for_files(model)
        sent = await asyncio.to_thread(attach_files, root, question, room)
        for notice in sent.notices:
            self._emit(notice)
        redactor = run.record.redactor
        asked = redactor.redacted(Message("user", sent.text, pictures=sent.pictures))
        places = await self._find_places(redactor.redact(question))
        dialogue = Dialogue(
            model,
            read_only_tools(root),
            self._engine.runner.tool_calls,
            emit=self._emit,
        )
        prompt = about_the_run(
            root=root,
            spec=run.spec,
            plan=run.plan,
            state=run.state,
            dialogue=dialogue,
            asked=(*self._messages, asked),
            places=places,
        )
        for notice in self._omitted.new_notices(prompt.left_out):
            self._emit(notice)
        self._emit(prompt.made)
        try:
            turn = await prompt.dialogue.turn(prompt.messages, step=step.number)
        except CddError:
            self._emit(QuestionAnswered(step.number))
            raise
        answer = Message("assistant", turn.text or "…")
        self._messages = (*self._messages, asked, answer)[-_REMEMBERED:]
        if turn.problem:
            notice = Notice(turn.problem, Tone.WARNING, kind=NoticeKind.REPLY_UNUSABLE)
            self._emit(notice)
        run.recorder.note(Answer(turn.text[:LONGEST_TEXT]))
        self._emit(QuestionAnswered(step.number))

    async def _find_places(self, question: str) -> str:
        code = self._engine.runner.code
        if code is None:
            return ""
        look = partial(_find_places, self._engine.runner.root, code, question)
        return await search_in_thread(
            look, self._emit, "Looking for code about your question …"
        )


def _find_places(root: Path, code: CodeFinder, question: str) -> str:
    query = Query(question, without=project_rules(root).paths)
    return in_words(root, code.rank(query, most=_MOST_FILES))


def about_the_run(
    root: Path,
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    dialogue: Dialogue,
    asked: Sequence[Message],
    places: str = "",
) -> FittedPrompt:
    """Return the prompt for the last message of `asked`: the run's progress, `places`
    in the code, and whatever else fits.

    Raises `BadInput` for an unusable project's prompt.
    """
    *earlier, question = asked
    questions = tuple(message for message in earlier if message.role == "user")
    parts = (
        PromptPart(load_prompt(root, "question")),
        PromptPart(
            f"# The ticket {state.ticket_slug}\n\n{fenced(spec.to_yaml(), 'yaml')}",
            "the ticket's spec",
            rank=1,
        ),
        PromptPart(
            f"# Its plan\n\n{fenced(write_plan(plan), 'markdown')}", PLAN_TEXT, rank=3
        ),
        PromptPart(
            "# The run\n\n" + "\n".join(_step(step, state) for step in plan.steps)
        ),
        PromptPart(places and f"# {PLACES}\n\n{places}", PLACES, rank=4),
        PromptPart(
            tuple(earlier), "earlier questions", rank=4, smaller=[questions, ()]
        ),
        PromptPart((question,)),
    )
    return fit(dialogue, parts, tools=2)


def _step(step: PlanStep, state: ExecutionState) -> str:
    execution = state.step(step.number)
    progress = execution.status.value
    if execution.status is StepStatus.COMPLETED:
        remark = remark_on(execution.outcome, execution.evidence)
        progress += f", {remark or 'its tests have passed'}"
    lines = [f"- Step {step.label} ({step.title}): {progress}"]
    touched = (
        ("created", execution.files_created),
        ("changed", execution.files_modified),
        ("deleted", execution.files_deleted),
    )
    for verb, paths in touched:
        lines += [f"  - {verb} {path}" for path in paths]
    if execution.reason:
        lines.append(f"  - reason: {execution.reason}")
    if execution.error:
        lines.append(f"  - it failed with: {execution.error[:_LONGEST_ERROR]}")
    return "\n".join(lines)
