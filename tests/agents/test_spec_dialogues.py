"""Random dialogues about a spec. No line of the user's is lost unless the user approved
a diff that showed it.

The model answers at random: it adds, rewords, removes, repeats whole lists, invents
ids, approves by itself. Between its turns the user edits spec.yaml, leaves, is killed,
drops questions, and approves.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import settings

from cdd_agent.agents.spec_notes import NAME
from cdd_agent.commands.registry import handle
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import Request, RequestRejected
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from tests.agents.asking import TEMPLATE, shown
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, noticed
from tests.support.tables import each_row

SEEDS = range(min(settings().max_examples // 4, 500))
ACTIONS = 14
WORDS = (
    "sign in",
    "it's: quoted",
    "größer # 3",
    "`a` & [b]",
    "!now",
    "- nested",
    "日本",
)
OWN_KEY = "owner: Ada   # unknown to the program"

Lines = Counter[str]


class RandomModel(ScriptedModel):
    """Changes the spec that it sees at random."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__([])
        self.chance = chance
        self.number = 0

    def next_reply(self, request: Request) -> ScriptedReply:
        self.requests.append(request)
        if self.chance.random() < 0.08:
            return ScriptedReply(error=RequestRejected("Too hot."))
        state = json.loads(
            re.findall(r"```json\n(.*?)\n```", request.messages[-1].content, re.DOTALL)[
                0
            ]
            if "# The spec as it stands" in request.messages[-1].content
            else "{}"
        )
        answer = self.answer(state)
        return ScriptedReply(f"Hm.\n\n```json\n{json.dumps(answer)}\n```\n")

    def text(self) -> str:
        self.number += 1
        return f"{self.chance.choice(WORDS)} {self.number}"

    def answer(self, state: dict[str, Any]) -> dict[str, Any]:
        chance = self.chance
        criteria = state.get("acceptance_criteria", [])
        scope = state.get("implementation_scope", [])
        answer: dict[str, Any] = {
            "acceptance_criteria": self.changes(criteria, {"check": "pytest"}),
            "implementation_scope": self.changes(
                scope, {"area": chance.choice(["api", "docs"])}
            ),
            "questions": [
                f"{self.text()}?" for _ in range(chance.choice([0, 1, 1, 4]))
            ],
            "answered": [
                question["id"]
                for question in state.get("open_questions", [])
                if chance.random() < 0.7
            ],
            "approved": chance.random() < 0.3,
        }
        if chance.random() < 0.1:
            answer["answered"].append("q99")
        for name in ("title", "description", "technical_notes", "priority"):
            if chance.random() < 0.2:
                answer[name] = self.new_text(state.get(name, ""))
        return answer

    def new_text(self, old: str) -> str:
        """All of the old one and more, a part of it, another one, or none."""
        parts = old.split(". ")
        return self.chance.choice(
            [f"{old} {self.text()}.", ". ".join(parts[1:]), self.text(), "", "TODO"]
        )

    def changes(
        self, items: Sequence[dict[str, str]], more: dict[str, str]
    ) -> list[dict[str, Any]]:
        chance = self.chance
        kind = chance.choice(["none", "add", "some", "some", "list", "rest", "odd"])
        match kind:
            case "none":
                return []
            case "add":
                return [{"text": self.text(), **more} for _ in range(3)]
            case "list":
                kept = [
                    {name: value for name, value in item.items() if name != "id"}
                    for item in items
                ]
                return [*kept, {"text": self.text(), **more}]
            case "rest":
                return [{**item, "remove": True} for item in items[1:]]
            case "odd":
                return [
                    {"id": "c77", "text": self.text()},
                    {"id": "s1", "text": ""},
                    {"remove": True, "text": "x"},
                    {"text": "TODO"},
                ]
        changes: list[dict[str, Any]] = []
        for item in items:
            key = {"id": item["id"]}
            change = chance.choice(
                [
                    None,
                    {**key, "text": self.text()},
                    {**key, "remove": True},
                    {**key, **more},
                ]
            )
            if change:
                changes.append(change)
        return changes


class Dialogue:
    """A user, a model and a ticket; what was shown, and what spec.yaml lost."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sandbox = sandbox
        self.number = 0
        sandbox.write(spec=TEMPLATE)
        if self.chance.random() < 0.7:
            self.write(
                {
                    "title": "Words",
                    "description": "Readers need words. All of them. Soon.",
                    "acceptance_criteria": ["works", "works", *self.texts(3)],
                    "implementation_scope": {"api": self.texts(2), "empty": []},
                    "technical_notes": "Fast. Small.",
                }
            )
        sandbox.model = RandomModel(self.chance)
        self.session: Session | None = None
        self.approved: Lines = Counter()
        """The lines in the diff of the `approve` just before."""

    @property
    def path(self) -> Path:
        return self.sandbox.ticket / "spec.yaml"

    @property
    def notes(self) -> Path:
        return self.sandbox.root / ".cdd" / "runs" / SLUG / NAME

    def texts(self, count: int) -> list[str]:
        self.number += count
        return [
            f"mine {number} {self.chance.choice(WORDS)}"
            for number in range(self.number - count, self.number)
        ]

    def write(self, fields: dict[str, Any]) -> None:
        text = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
        self.path.write_text(f"# Mine.\n{text}{OWN_KEY}\n")

    async def send(self, *lines: str) -> list[Event]:
        """Send lines to Socrates, who is opened first where he is not at work. An error
        of the model is no reason to stop.
        """
        if self.session is None:
            self.session = self.sandbox.session()
        if self.session.agent is None:
            lines = (f"/socrates {SLUG}", *lines)
        events = []
        for line in lines:
            try:
                events += await collect(handle(self.session, line))
            except CddError:
                continue
        return events

    async def act(self) -> str:
        """Do one thing, and check it. Return what it was."""
        actions = {
            self.talk: 6,
            self.edit: 4,
            self.approve: 4,
            self.approve_twice: 3,
            self.leave: 1,
            self.be_killed: 1,
            self.drop: 1,
        }
        action = self.chance.choices(list(actions), list(actions.values()))[0]
        before = self.path.read_text()
        await action()
        if action == self.edit:
            await self.check_edit()
        is_edited = action == self.edit and before != self.path.read_text()
        if is_edited or action in (self.talk, self.leave, self.be_killed):
            self.approved = Counter()
        if action not in (self.edit, self.approve, self.approve_twice):
            # A model's `approved` may write what was shown, if that loses nothing.
            assert not lines_of(before) - lines_of(self.path.read_text())
        if OWN_KEY in before:
            assert OWN_KEY in self.path.read_text()
        return action.__name__

    async def talk(self) -> None:
        before = lines_shown(await self.send("summary"))
        events = await self.send(self.chance.choice(["Yes.", "No, other words.", ""]))
        if NoticeKind.SPEC_WRITTEN in noticed(events):
            return
        lost = before - lines_shown(await self.send("summary"))
        assert not lost - lines_removed(events), lost

    async def approve(self) -> None:
        anyway = self.chance.random() < 0.7
        word = "approve anyway" if anyway else "approve"
        notes = self.notes.read_bytes() if self.notes.exists() else None
        before = lines_of(self.path.read_text())
        if self.session is None or self.session.agent is None:
            await self.send()
        seen = shown(await self.send("summary"))
        events = await self.send(word)
        lost = before - lines_of(self.path.read_text())
        assert not lost - self.approved, lost
        is_open = seen.open_questions or seen.missing
        is_open = is_open or any(not item.check for item in seen.criteria)
        if NoticeKind.SPEC_WRITTEN in noticed(events):
            assert anyway or not is_open
            if notes is not None and self.chance.random() < 0.3:
                # killed before the notebook was saved
                await self.leave()
                self.notes.write_bytes(notes)
            self.approved = Counter()
        elif NoticeKind.WORDS_LOST in noticed(events):
            self.approved = lines_removed(events)

    async def approve_twice(self) -> None:
        await self.approve()
        await self.approve()

    async def edit(self) -> None:
        """The user changes the file by hand."""
        fields = yaml.safe_load(self.path.read_text())
        del fields["owner"]
        criteria = list(fields.get("acceptance_criteria") or [])
        scope = dict(fields.get("implementation_scope") or {})
        for _ in range(self.chance.choice([1, 1, 3])):
            place = self.chance.randrange(len(criteria) + 1)
            match self.chance.choice(
                ["add", "reword", "remove", "swap", "scope", "text"]
            ):
                case "add":
                    criteria[place:place] = self.texts(1)
                case "reword" if place < len(criteria):
                    criteria[place] = self.texts(1)[0]
                case "remove" if place < len(criteria):
                    del criteria[place]
                case "swap":
                    criteria.reverse()
                case "scope":
                    scope.setdefault("api", [])
                    scope["api"] = [*scope["api"][1:], *self.texts(1)]
                case "text":
                    name = self.chance.choice(["title", "description"])
                    fields[name] = f"{self.texts(1)[0]}. And more."
        fields["acceptance_criteria"] = criteria
        fields["implementation_scope"] = scope
        self.write(fields)

    async def check_edit(self) -> None:
        """What the user has just written is in the draft."""
        mine = {
            line
            for line in lines_of(self.path.read_text())
            if line.startswith(("mine", "api: mine"))
        }
        before = set()
        if self.notes.exists():
            before = set(lines_of(json.loads(self.notes.read_text())["file"]))
        # Where Socrates is opened for it, the model may answer first.
        events = await self.send("summary")
        assert (
            mine - before <= lines_shown(events).keys() | lines_removed(events).keys()
        )

    async def leave(self) -> None:
        if self.session is not None:
            self.session.leave()
            self.session = None

    async def be_killed(self) -> None:
        """Nothing is saved any more; the lock of a dead process counts as free."""
        if self.session is not None and self.session.agent is not None:
            self.session.agent.lock.release()
        self.session = None

    async def drop(self) -> None:
        await self.send("drop all")


def lines_of(text: str) -> Lines:
    """The lines of a spec.yaml that a user can lose."""
    fields = yaml.safe_load(text)
    return _lines(
        fields.get("title") or "",
        fields.get("description") or "",
        fields.get("technical_notes") or "",
        fields.get("acceptance_criteria") or [],
        (fields.get("implementation_scope") or {}).items(),
    )


def lines_shown(events: Iterable[Event]) -> Lines:
    spec = shown(events)
    criteria = [item.text for item in spec.criteria]
    return _lines(
        spec.title, spec.description, spec.technical_notes, criteria, spec.scope
    )


def _lines(
    title: str,
    description: str,
    notes: str,
    criteria: Iterable[str],
    scope: Iterable[tuple[str, Iterable[str]]],
) -> Lines:
    lines = [title, *criteria]
    lines += [f"{area}: {text}" for area, items in scope for text in items]
    for text in (description, notes):
        lines += re.split(r"(?<=[.!?])\s+", text.strip())
    return Counter(_bare(line) for line in lines if line and "<" not in line)


def lines_removed(events: Iterable[Event]) -> Lines:
    """The lines with a minus in the diffs that were shown."""
    lines: Lines = Counter()
    for event in events:
        if isinstance(event, Answer) and event.text.startswith("```"):
            for line in re.findall(r"^-(?!--)(.*)$", event.text, re.MULTILINE):
                lines[_bare(line)] += 1
    return lines


def _bare(line: str) -> str:
    return line.strip().removeprefix("- ").removeprefix("- ")


@each_row("seed", SEEDS)
async def test_no_line_of_the_user_is_lost_unless_they_approved_its_removal(
    sandbox: Sandbox, seed: int
) -> None:
    dialogue = Dialogue(sandbox, seed)
    done = []
    try:
        for _ in range(ACTIONS):
            done.append(await dialogue.act())
    except AssertionError as error:
        error.add_note(f"after {done}")
        raise
    await dialogue.leave()
