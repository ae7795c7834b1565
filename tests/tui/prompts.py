"""A prompt alone in an app, for tests of what its keys do."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from textual import events
from textual.app import App, ComposeResult

from cdd_agent.text.completion import Completion, CompletionKind
from cdd_agent.tui.drafts import Drafts
from cdd_agent.tui.history import PromptHistory
from cdd_agent.tui.widgets.prompt import Prompt
from tests.tui.person import FingerTime, Person

NAMES = {
    "": ("/exec", "/exit", "/help"),
    "/exec ": ("[bold]odd", "bug-pay", "feature-pay", "feature-words"),
}
"""The words that can follow the beginning of a line."""
NEEDS_ARGUMENT = ("/exec", "/plan")


class PromptApp(App[None]):
    """Takes each line that is sent."""

    def __init__(self, root: Path, names: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._names = names
        self.is_too_soon = False
        self.prompt = Prompt(
            self.complete,
            PromptHistory(root),
            Drafts(root),
            lambda enter: self.is_too_soon,
            lambda line: None,
        )
        self.sent: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.prompt

    def complete(self, line: str) -> list[Completion]:
        start, space, word = line.rpartition(" ")
        kind = CompletionKind.WORD
        offers = []
        for name in self._names.get(start + space, ()):
            if name.startswith("/"):
                kind = CompletionKind.COMMAND
            if name in NEEDS_ARGUMENT:
                kind = CompletionKind.OPENING
            is_found = name.startswith(word) and name != word
            if word.startswith("/"):
                is_found = word.removeprefix("/") in name
            if is_found:
                help_ = f"What {name} does."
                offers.append(Completion(start + space + name, name, help_, kind))
        offers.sort(key=lambda offer: not offer.shown.startswith(word))
        return offers

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append(event.line)
        self.prompt.accepted(event.line)


@dataclass
class Typist(Person):
    """Types into the prompt alone."""

    app: PromptApp  # type: ignore[assignment]
    time: FingerTime = field(default_factory=FingerTime)

    @property
    def offers(self) -> list[str]:
        """The completions that are shown."""
        return [offer.line for offer in self.prompt.offers]

    @property
    def sent(self) -> list[str]:
        return self.app.sent

    async def send(self, line: str) -> None:
        self.prompt.area.insert(line)
        await self.press("enter")
        await self.until(lambda: self.sent[-1:] == [line])

    async def paste(self, text: str) -> None:
        before = self.prompt.area.text
        self.app.post_message(events.Paste(text))
        await self.until(lambda: self.prompt.area.text != before)


@asynccontextmanager
async def prompting(
    root: Path,
    size: tuple[int, int] = (80, 24),
    names: Mapping[str, tuple[str, ...]] = NAMES,
) -> AsyncIterator[Typist]:
    """A prompt in a project, whose history and drafts are in its folder."""
    (root / ".cdd").mkdir(exist_ok=True)
    app = PromptApp(root, names)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield Typist(app, pilot)
