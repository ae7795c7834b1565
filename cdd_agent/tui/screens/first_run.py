"""The first steps of somebody without a model: choose one of what is there, and say in
a sentence what is wanted.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from cdd_agent.frontend import REST
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.screens.chooser import Chooser, Row
from cdd_agent.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from textual.widget import Widget

    from cdd_agent.llm.offered_model import OfferedModel

DEMO = "demo"
"""Closes the chooser for the demo; otherwise that is the line that chooses a model, or
what was typed.
"""
SUGGESTED: Mapping[str, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5.2",
    "gemini": "gemini-2.5-pro",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "mistral": "devstral-medium-latest",
    "deepseek": "deepseek-chat",
    "groq": "openai/gpt-oss-120b",
    "xai": "grok-4",
}
"""By provider, a model that can do the work. Where a key is found for another, its
model has to be named.
"""


def choices(
    offers: Sequence[OfferedModel], environment: Mapping[str, str] = os.environ
) -> Iterator[Row]:
    """The models of this computer's servers, providers whose key is in the environment,
    the demo.
    """
    for offer in offers:
        line = f"/model {shlex.quote(offer.model)} {shlex.quote(offer.api_base)} --save"
        yield Row(line, offer.name, f"{offer.server}, on this computer")
    for name, model in SUGGESTED.items():
        key = next((key for key in PROVIDERS[name].keys if environment.get(key)), None)
        if key is not None:
            yield Row(
                f"/model {name}/{model} --save",
                f"{name}/{model}",
                f"with the key in {key}",
            )
    others = (
        name
        for name in PROVIDERS
        if name not in SUGGESTED and PROVIDERS[name].needs_key
    )
    for name in others:
        if key := next(
            (key for key in PROVIDERS[name].keys if environment.get(key)), None
        ):
            yield Row(
                f"/model {name}/",
                f"{name}/…",
                f"with the key in {key}; you name the model",
            )
    yield Row(
        DEMO,
        "The demo",
        "a sample project with a scripted model: no key, no network; leaves this shell",
    )


class FirstRun(Chooser):
    """Typing is for the prompt, and closes it; so does Escape. An Enter that comes
    before anybody can have read what it chooses has to be pressed once more.
    """

    KEYS = "↑↓ · Enter uses it, set for this project · Esc: later, by /model"
    PROMPT = "No model is configured yet. Which one is to be asked?"

    def __init__(
        self, offers: Sequence[OfferedModel], now: Callable[[], float]
    ) -> None:
        super().__init__("Welcome to cdd", choices(offers))
        self._now = now
        self._seen_at = now()

    def seen(self) -> Hashable:
        return super().seen(), self._seen_at

    def type(self, text: str) -> None:
        self.dismiss(text)

    def action_choose(self) -> None:
        if self._now() - self._seen_at < REST:
            self._seen_at = 0.0
            self.hint(f"Enter once more uses it · {self.KEYS}")
        else:
            super().action_choose()


class WishScreen(Overlay):
    """One line: what is wanted. Closed with it, or with nothing."""

    DEFAULT_CSS = """
    WishScreen {
        & > #overlay { max-width: 80; }
        & #words {
            height: auto; min-height: 1; max-height: 3; padding: 0 1;
            background: $surface;
        }
        & #about { height: auto; padding: 0 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "make", "Make a ticket of it", show=False),
        Binding("backspace", "shorten(1)", "Take back a letter", show=False),
        Binding("ctrl+u", "shorten(1000000)", "Empty the line", show=False),
    ]
    KEYS = "Enter makes a ticket of it, and starts nothing · Esc: not now"

    def __init__(self) -> None:
        super().__init__()
        self._typed = ""

    def content(self) -> Iterator[Widget]:
        yield Static(
            "In a sentence or two, as you would say it to a colleague. Then Socrates"
            " asks what is not clear, the Planner makes steps of it, the Executor"
            " carries them out: each when you press Enter.",
            id="about",
            markup=False,
        )
        yield Static(id="words", markup=False)

    def on_mount(self) -> None:
        self.head("What do you want to have?")
        self._show()

    def seen(self) -> str:
        return self._typed

    def type(self, text: str) -> None:
        self._typed += text
        self._show()

    def action_shorten(self, by: int) -> None:
        self._typed = self._typed[: max(len(self._typed) - by, 0)]
        self._show()

    def action_make(self) -> None:
        if self._typed.strip():
            self.dismiss(self._typed.strip())

    def _show(self) -> None:
        self.query_one("#words", Static).update(
            Content(f"› {sanitize_for_display(self._typed)}▏")
        )
