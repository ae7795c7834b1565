"""The project of a history, the engine at work in it, and the comparison of its files
with the model.
"""

from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from cdd_agent.engine.engine import Engine
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice
from cdd_agent.events.step_events import (
    ChangesPutBack,
    StepsRedone,
    StepsUndone,
)
from cdd_agent.events.stream import Event
from cdd_agent.tickets.status import StepStatus
from tests.engine.histories_actions import (
    Action,
    History,
)
from tests.engine.histories_edits import show_entry
from tests.engine.histories_model import (
    Model,
    Outcome,
    Owned,
    Version,
    Who,
)
from tests.engine.histories_outside import (
    Killed,
    Killer,
    Repositories,
)
from tests.engine.histories_project import (
    CLONE,
    IGNORED_CLONE,
    LARGEST,
    SUBMODULE,
    VARIANTS,
    Projects,
    is_ignored,
)
from tests.engine.histories_tree import (
    UNFINISHED,
    Entry,
    Tree,
    read_entry,
    read_tree,
)
from tests.support.projects import Sandbox, Step

Candidates = dict[str, list[Outcome]]


class Fault(AssertionError):
    """The engine, or this model of it, is wrong."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Scene:
    """A project, and all that is known of it."""

    def __init__(self, projects: Projects, history: History) -> None:
        self.history = history
        self.variant = VARIANTS[history.variant]
        self.projects = projects
        self.root = projects.copy(self.variant)
        self.sandbox = Sandbox(self.root)
        self.sandbox.write(*self._steps())
        self.model = Model.of_tree(read_tree(self.root))
        self.outside = self._read_outside()
        self.repositories = Repositories(projects.place, self.variant)
        self.repositories.note()
        self.killer = Killer(str(projects.place), projects.save)
        self.engine: Engine | None = None
        self.events: list[Event] = []
        self.lines: list[str] = []
        """What happened, for people."""
        self.names: dict[str, int] = {}
        """By path, the number of the last event that names it as kept."""
        self.born: dict[str, int] = {}
        """By path, how many events there were at the last change that is not of a
        step.
        """
        self.loose: dict[str, bytes] = {}
        """Files that the user edited after a kill, with the text that must stay."""
        self.commits = False
        self.may_commit = False
        """The engine is at work on a step, with `commit: step`."""

    def expect_no_leftovers(self) -> None:
        """A write that a kill interrupted leaves no file for good."""
        for place in sorted(self.root.rglob(f"{UNFINISHED}*")):
            # the next checkpoint tidies that
            if "checkpoints.git" not in place.parts:
                raise Fault("leftovers of a write", str(place))

    def _steps(self) -> Iterator[Step]:
        for number, paths in enumerate(self.history.declared, 1):
            also = tuple(f"`{path}`" for path in paths[1:])
            yield Step(paths[0], f"make check-{number}", also=also)

    def open(self) -> Engine:
        if self.engine is None:
            self.engine = self.sandbox.engine()
        return self.engine

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def say(self, text: str) -> None:
        self.lines.append(text)

    async def do(
        self, work: Awaitable[object], action: Action | None = None
    ) -> CddError | None:
        """Let the engine work, perhaps until it is killed; returns why it refuses."""
        try:
            if action is not None and action.kill:
                self.killer.arm(action.kill, cuts_power=action.cuts_power)
            await work
        except CddError as error:
            if not self.killer.has_killed:
                return error
        except Killed:
            pass
        except Exception:
            if not self.killer.has_killed:
                raise
        finally:
            self.killer.disarm()
        return None

    def unchanged(self) -> Candidates:
        return self.model.unchanged()

    def settle(
        self, candidates: Candidates, where: str, *, is_told: bool = True
    ) -> None:
        """Compare the disk with what it may be, and go on from what it is."""
        if self.killer.has_killed:
            raise Killed
        disk = read_tree(self.root)
        self.note_names()
        found = dict[str, list[Outcome]]()
        for path in sorted(disk.keys() | candidates.keys() | self.loose.keys()):
            found[path] = self.matching(path, disk.get(path), candidates, where)
        common = common_tags(found.values())
        if common is None:
            raise Fault(f"{where}: a reply is applied in part", "")
        for path, outcomes in found.items():
            fitting = [o for o in outcomes if not o.tag or o.tag in common]
            chosen = self.choose(path, fitting, where, is_told=is_told)
            stack = chosen.stack
            if stack[-1].entry != disk.get(path):
                stack = (*stack, Version(disk.get(path), Who.USER))
            self.model.set_stack(path, stack)
        self.loose.clear()
        if self._read_outside() != self.outside:
            raise Fault(f"{where}: files outside the project", "")
        differences = self.repositories.differences()
        if differences and not self.may_commit:
            kind = "index" if differences[0].endswith("index") else "refs"
            raise Fault(f"{where}: git's {kind} differs", ", ".join(differences))
        self.repositories.note()

    def matching(
        self, path: str, entry: Entry | None, candidates: Candidates, where: str
    ) -> list[Outcome]:
        if path in self.loose:
            must_hold = self.loose[path]
            if must_hold not in (entry.data if entry else b"") and not self.is_kept(
                must_hold
            ):
                raise Fault(f"{where}: the user's edit is lost", path)
            # nothing tells whether the step was restored before the edit or after it
            stack = tuple(
                replace(version, owned=Owned.MAYBE)
                if version.owned is Owned.YES
                else version
                for version in self.model.stack(path)
            )
            return [Outcome(entry, (*stack, Version(entry, Who.USER)))]
        outcomes = candidates.get(path) or [Outcome(None, (Version(None),))]
        fitting = [outcome for outcome in outcomes if outcome.entry == entry]
        if not fitting:
            allowed = " or ".join(show_entry(outcome.entry) for outcome in outcomes)
            versions = " | ".join(
                f"{version.who} {version.owned} {show_entry(version.entry)}"
                for version in self.model.stack(path)
            )
            text = f"{path} is {show_entry(entry)}, and not {allowed}"
            kind = f"{where}: {self.trait(path)}"
            raise Fault(kind, f"{text}\n    versions: {versions}")
        return fitting

    def choose(
        self, path: str, outcomes: list[Outcome], where: str, *, is_told: bool
    ) -> Outcome:
        fitting = [o for o in outcomes if not o.must_be_named]
        if not fitting:
            fitting = outcomes
            if is_told and not self.is_named(path):
                raise Fault(f"{where}: not named: {self.trait(path)}", path)
        for outcome in fitting:
            discarded = outcome.discarded
            entry = discarded.entry if discarded else None
            if not (discarded and discarded.who.is_program and entry and entry.data):
                return outcome
            if outcome.entry is not None and outcome.entry.data == entry.data:
                return outcome
            if entry.mode is None or self.is_kept(entry.data):
                return outcome
        raise Fault(f"{where}: not in kept/: {self.trait(path)}", path)

    def is_kept(self, text: bytes) -> bool:
        """True if a file below `kept/` has the text."""
        folder = self.root / ".cdd/runs" / self.sandbox.slug / "kept"
        files = [place for place in folder.rglob("*") if place.is_file()]
        return any(text in place.read_bytes() for place in files)

    def note_names(self) -> None:
        """Remember which paths the events so far have named."""
        for number, event in enumerate(self.events):
            if isinstance(event, StepsUndone):
                paths = {*event.kept, *event.edited, *event.others, *event.merged}
            elif isinstance(event, ChangesPutBack | StepsRedone):
                paths = {*event.kept, *event.merged}
            elif isinstance(event, Notice):
                known = self.model.stacks.keys()
                paths = {path for path in known if path in event.text}
            else:
                continue
            for path in paths:
                self.names[path] = max(number, self.names.get(path, -1))

    def is_named(self, path: str) -> bool:
        """True if an event since the last change by others names the path."""
        return self.names.get(path, -1) >= self.born.get(path, 0)

    def expect_named(
        self, lives: Iterable[int], where: str, *, is_required: bool
    ) -> None:
        if is_required:
            self.expect_named_paths(self.model.foreign(lives), where)

    def expect_named_paths(self, paths: Iterable[str], where: str) -> None:
        for path in paths:
            if not self.is_named(path) and self.can_be_seen(path):
                kind = f"{where}: not named, of a command: {self.trait(path)}"
                raise Fault(kind, path)

    def can_be_seen(self, path: str) -> bool:
        """False for an ignored file whose change nobody can see without reading all
        that git ignores: in an ignored folder or another repository, by a check, or of
        permissions alone.
        """
        if not is_ignored(path):
            return True
        old, new = self.model.stack(path)[-2:]
        is_alone = not is_ignored(f"{Path(path).parent}/file")
        is_in_main = self.trait(path) == "ignored file" and self.variant.repositories
        has_main = self.variant.repositories[:1] == (self.variant.root,)
        contents = {entry.data if entry else None for entry in (old.entry, new.entry)}
        is_other = len(contents) == 2
        is_command = new.who is Who.COMMAND
        return bool(is_alone and is_in_main and has_main and is_other and is_command)

    def is_uncoverable(self, path: str) -> bool:
        if not is_ignored(path):
            return False
        entries = [version.entry for version in self.model.stack(path)]
        entries.append(read_entry(self.root / path))
        return any(entry and len(entry.data) > LARGEST for entry in entries)

    def statuses(self) -> dict[int, StepStatus]:
        engine = self.open()
        steps = engine.run.plan.steps
        return {
            step.number: engine.run.state.step(step.number).status for step in steps
        }

    def trait(self, path: str) -> str:
        """The kind of place that a path is in."""
        short = path.removeprefix(self.variant.main)
        for folder, name in (
            (SUBMODULE, "submodule"),
            (CLONE, "clone"),
            (IGNORED_CLONE, "ignored clone"),
        ):
            if short.startswith(folder):
                return f"{name}, ignored" if short.endswith(".tmp") else name
        if is_ignored(path):
            return "large ignored file" if self.is_uncoverable(path) else "ignored file"
        return "own file"

    def _read_outside(self) -> Tree:
        if self.variant.root == ".":
            return {}
        prefix = f"{self.variant.root}/"
        tree = read_tree(self.projects.place)
        return {path: e for path, e in tree.items() if not path.startswith(prefix)}


def common_tags(found: Iterable[list[Outcome]]) -> set[str] | None:
    """The tags that all paths of a group have; None where a group has none."""
    groups: dict[str, list[set[str]]] = {}
    for outcomes in found:
        tags = {outcome.tag for outcome in outcomes if outcome.tag}
        if tags:
            group = next(iter(tags)).partition(":")[0]
            groups.setdefault(group, []).append(tags)
    common = [set.intersection(*sets) for sets in groups.values()]
    return set().union(*common) if all(common) else None


def both(one: Candidates, other: Candidates) -> Candidates:
    return {
        path: [*one.get(path, []), *other.get(path, [])]
        for path in one.keys() | other.keys()
    }
