"""The dialog that sets up a model: its source, a key or an address if needed, the
model.

`commands/model_setup.py` provides the content of the pages.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import work
from textual.content import Content
from textual.widgets import OptionList, Static

from cdd_agent.commands.model_setup import (
    CHOOSE_ONE,
    COMPATIBLE,
    AddressSource,
    DemoSource,
    HostedSource,
    LocalSource,
    MoreSource,
    SourceRow,
    ask_for_key,
    ask_for_server_key,
    describe_model,
    find_sources,
    keep_key_hint,
    key_variable,
    model_line,
    more_rows,
    suggested_first,
    title_of,
)
from cdd_agent.errors import BadInput
from cdd_agent.llm.model_search import (
    KeyAccepted,
    KeyRefused,
    KeyWanted,
    NothingFound,
    ServerFound,
    candidate_addresses,
    search_server,
    try_key,
)
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.llm.server_keys import keep_for_server
from cdd_agent.llm.session_keys import (
    KeySource,
    find_key_source,
    keep_for_session,
    read_typed_key,
)
from cdd_agent.network.keys import Key, clean_key
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.quiet_enter import EnterGuard
from cdd_agent.tui.screens.chooser import Chooser, ChooserRow

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from textual.widget import Widget

    from cdd_agent.llm.offered_model import OfferedModel
    from cdd_agent.tui.answering import KeyClock

DEMO = "demo"
"""The dialog's result for the demo; otherwise it is the line that sets the model."""
_LONGEST_MASK = 30


class SetupPage(Struct, frozen=True):
    """A page of the dialog: a field if it has `take`, otherwise a list."""

    title: str
    keys: str
    about: str = ""
    rows: tuple[ChooserRow, ...] = ()
    choose: Callable[[str], None] | None = None
    """Receives the key of the chosen row."""
    take: Callable[[str], None] | None = None
    prompt: str = "type to filter"
    is_secret: bool = False
    own_name: Callable[[str], ChooserRow] | None = None


def _key_page(name: str, text: str, take: Callable[[str], None]) -> SetupPage:
    return SetupPage(
        f"{name}: API key",
        "Enter: try the key · Esc: back",
        text,
        take=take,
        prompt="paste the key",
        is_secret=True,
    )


class ModelSetup(Chooser):
    """Returns the line that sets the model, `DEMO`, or nothing.

    Enter is ignored if its effect has just appeared. A key is shown as dots, and
    dropped with its page.
    """

    DEFAULT_CSS = """
    ModelSetup {
        & > #overlay { max-width: 84; }
        & #about { height: auto; padding: 0 1; margin-bottom: 1; }
    }
    """

    def __init__(
        self,
        offers: Sequence[OfferedModel],
        clock: KeyClock,
        model: str | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`model` is the current model. `environment` contains the API keys."""
        heading = f"The model is {model}. Choose another:" if model else CHOOSE_ONE
        super().__init__(heading)
        self._heading = heading
        self._offers = offers
        self._environment = environment
        self._guard = EnterGuard(clock)
        self._sources: dict[str, SourceRow] = {}
        self._pages: list[SetupPage] = []
        self._searches_for = ""
        self._answers = 0
        self.key_hint = ""
        """How to store the typed key for the next session."""

    def content(self) -> Iterator[Widget]:
        yield Static(id="about", markup=False)
        yield from super().content()

    def on_mount(self) -> None:
        sources = find_sources(self._offers, self._environment)
        self._open(self._page_of_sources(self._heading, sources, "Esc: close"))

    def seen(self) -> Hashable:
        return super().seen(), len(self._pages), self._searches_for, self._answers

    # Pages

    def _open(self, page: SetupPage) -> None:
        self._pages.append(page)
        self._show_page()

    def _replace(self, page: SetupPage) -> None:
        self._pages.pop()
        self._open(page)

    def _show_page(self) -> None:
        page = self._pages[-1]
        self._typed = ""
        self._rows = list(page.rows)
        self.head(page.title)
        about = self.query_one("#about", Static)
        lines = map(sanitize_for_display, page.about.split("\n"))
        about.update("\n".join(lines))
        about.display = bool(page.about)
        self.query_one(OptionList).display = page.take is None
        self._fill()
        self.hint("")
        self._guard.show(page.title, len(self._pages))
        self.call_after_refresh(self.fit)

    @property
    def keys(self) -> str:
        if self._searches_for:
            return f"{self._searches_for} … · Esc: cancel"
        return self._pages[-1].keys if self._pages else ""

    def _page_of_sources(
        self, title: str, sources: Sequence[SourceRow], back: str
    ) -> SetupPage:
        rows = []
        for source in sources:
            self._sources[source.title] = source
            rows.append(
                ChooserRow(
                    source.title, source.title, source.detail, section=source.section
                )
            )
        keys = f"↑↓: choose · Enter: continue · {back}"
        return SetupPage(title, keys, rows=tuple(rows), choose=self._choose_source)

    def _page_of_key(self, provider: str, problem: str = "") -> SetupPage:
        text = ask_for_key(provider)
        if problem:
            text = f"{problem}\n\n{text}"
        take = partial(self._take_key, provider)
        return _key_page(title_of(provider), text, take)

    def _page_of_server_key(self, wanted: KeyWanted) -> SetupPage:
        text = f"{wanted.reason}\n\n{ask_for_server_key()}"
        take = partial(self._take_server_key, wanted.api_base)
        return _key_page(wanted.api_base, text, take)

    def _page_of_address(self, text: str = "") -> SetupPage:
        return SetupPage(
            "A server that speaks OpenAI's protocol",
            "Enter: look for models there · Esc: back",
            text or "The address of the server, such as http://127.0.0.1:8080/v1",
            take=self._take_address,
            prompt="type or paste the address",
        )

    def _page_of_models(
        self, provider: str, models: Sequence[str], note: str
    ) -> SetupPage:
        def row(model: str) -> ChooserRow:
            name = model.removeprefix(f"{provider}/")
            return ChooserRow(model, name, describe_model(provider, model))

        def own_name(name: str) -> ChooserRow:
            model = f"{provider}/{name.removeprefix(f'{provider}/')}"
            return ChooserRow(model, name, "not in the list: use it anyway")

        return SetupPage(
            f"{title_of(provider)}: model",
            "↑↓ or type · Enter: use for this project · Esc: back",
            note,
            tuple(row(model) for model in suggested_first(provider, models)),
            choose=self._finish,
            prompt="type to filter, or a model's name",
            own_name=own_name,
        )

    def _page_of_offers(self, offers: Sequence[OfferedModel]) -> SetupPage:
        by_name = {offer.name: offer for offer in offers}

        def choose(name: str) -> None:
            offer = by_name[name]
            self._finish(offer.model, offer.api_base)

        server = offers[0].server
        text = "" if offers[0].api_base.endswith(server) else offers[0].api_base
        return SetupPage(
            f"{server}: model",
            "↑↓ or type · Enter: use for this project · Esc: back",
            text,
            tuple(ChooserRow(name, name) for name in by_name),
            choose=choose,
        )

    # Effects of Enter

    def _choose_source(self, title: str) -> None:
        match self._sources[title].source:
            case LocalSource(models=(only,)):
                self._finish(only.model, only.api_base)
            case LocalSource(models=models):
                self._open(self._page_of_offers(models))
            case HostedSource(provider=provider):
                self._choose_provider(provider)
            case MoreSource() as more:
                title = "Choose a provider:"
                self._open(self._page_of_sources(title, more_rows(more), "Esc: back"))
            case AddressSource():
                self._open(self._page_of_address())
            case DemoSource():
                self.dismiss(DEMO)

    def _choose_provider(self, provider: str) -> None:
        source = find_key_source(PROVIDERS[provider], self._environment)
        if source is None:
            self._open(self._page_of_key(provider))
        else:
            self._try_key(provider, self._read_key(source), f"the {source.in_words}")

    def _take_key(self, provider: str, text: str) -> None:
        key = self._read_typed_key(text, provider)
        if key is not None:
            self._try_key(provider, key)

    def _take_address(self, text: str) -> None:
        try:
            addresses = candidate_addresses(text)
        except BadInput as error:
            self._answer(error.in_a_line)
            return
        self._search_server(addresses)

    def _take_server_key(self, api_base: str, text: str) -> None:
        source = find_key_source(PROVIDERS[COMPATIBLE], self._environment)
        if source and not text.strip():
            self._search_server((api_base,), self._read_key(source), is_typed=False)
            return
        key = self._read_typed_key(text, COMPATIBLE)
        if key is not None:
            self._search_server((api_base,), key)

    def _read_typed_key(self, text: str, provider: str) -> Key | None:
        """Return the typed key. If it cannot be a key, show a hint and return None."""
        try:
            return read_typed_key(text, key_variable(provider))
        except ValueError as error:
            self._answer(f"This is not a key: {error} · Esc: back")
            return None

    def _read_key(self, source: KeySource) -> Key:
        return clean_key(self._environment.get(source.variable, ""))

    def _finish(self, model: str, api_base: str | None = None) -> None:
        self.dismiss(model_line(model, api_base))

    # Requests

    @work(exclusive=True, group="setup")
    async def _try_key(self, provider: str, key: Key, source: str = "") -> None:
        """Try a key, and continue with the models. `source` is set for a key that
        was not typed.
        """
        with self._searching(f"Asking {title_of(provider)}"):
            answer = await try_key(provider, key, self._environment)
        match answer:
            case KeyRefused(reason=reason):
                whose = source or "the key"
                problem = f"{title_of(provider)} refused {whose}: {reason}"
                page = self._page_of_key(provider, problem)
                self._open(page) if source else self._replace(page)
            case KeyAccepted(models=models, note=note):
                page = self._page_of_models(provider, models, note)
                if source:
                    self._open(page)
                    return
                keep_for_session(provider, key)
                self.key_hint = keep_key_hint(provider)
                self._replace(page)

    @work(exclusive=True, group="setup")
    async def _search_server(
        self,
        addresses: Sequence[str],
        key: Key | None = None,
        *,
        is_typed: bool = True,
    ) -> None:
        with self._searching(f"Looking for models at {addresses[0]}"):
            answer = await search_server(addresses, key.text if key else None)
        match answer:
            case NothingFound(tried=tried):
                about = "\n".join(f"Tried: {line}" for line in tried)
                typed = self._typed
                self._replace(self._page_of_address(about))
                if key is None:
                    self.type(typed)
            case KeyWanted() as wanted:
                page = self._page_of_server_key(wanted)
                self._replace(page) if key else self._open(page)
            case ServerFound(models=()):
                self.hint(f"{addresses[0]} has no model yet · Esc: back")
            case ServerFound(models=offers):
                if key is not None and is_typed:
                    keep_for_server(addresses[0], key)
                    self.key_hint = keep_key_hint(COMPATIBLE)
                self._open(self._page_of_offers(offers))

    # Keys

    def type(self, text: str) -> None:
        if self._searches_for:
            return
        super().type(text)
        self._note_choice()

    def action_shorten(self, by: int) -> None:
        if self._searches_for:
            return
        super().action_shorten(by)
        self._note_choice()

    def action_walk(self, how: str) -> None:
        if self._pages[-1].take is None and not self._searches_for:
            super().action_walk(how)
            self._note_choice()

    def action_choose(self) -> None:
        page = self._pages[-1]
        if self._searches_for:
            return
        if page.take is not None:
            page.take(self._typed)
        elif self._guard.is_too_soon():
            self._answer(f"Too soon, ignored · {page.keys}")
        else:
            super().action_choose()

    def chosen(self, row: ChooserRow) -> None:
        page = self._pages[-1]
        if page.choose is not None and not self._searches_for:
            page.choose(row.key)

    def action_close(self) -> None:
        """Cancel the search, else go back a page, else close."""
        if self._searches_for:
            self.workers.cancel_group(self, "setup")
        elif len(self._pages) > 1:
            self._pages.pop()
            self._show_page()
        else:
            super().action_close()

    def _note_choice(self) -> None:
        """Note that the user chose a row or typed, so Enter is meant for it."""
        page = self._pages[-1]
        chosen = f"{page.title} {self.query_one(OptionList).highlighted} {self._typed}"
        self._guard.show(chosen, len(self._pages), is_typed=True)

    # Display

    def _answer(self, text: str) -> None:
        self._answers += 1
        self.hint(text)

    def _fill(self, *, keep: bool = False) -> None:
        if not self._pages:
            return
        page = self._pages[-1]
        name = self._typed.strip()
        self._rows = list(page.rows)
        super()._fill(keep=keep)
        if page.own_name is not None and name and not self._listed:
            self._rows = [page.own_name(name)]
            super()._fill(keep=keep)

    def typed_line(self) -> Content:
        page = self._pages[-1]
        if not page.is_secret or not self._typed:
            return super().typed_line()
        count = len(self._typed)
        dots = "•" * min(count, _LONGEST_MASK)
        return Content.assemble(
            "› ", (dots, "bold"), "▏", (f"  {count} characters", "$text-muted")
        )

    @property
    def prompt(self) -> str:
        return self._pages[-1].prompt if self._pages else self.PROMPT

    @contextmanager
    def _searching(self, words: str) -> Iterator[None]:
        """Show the search in the line of keys. Only Escape works until it ends."""
        self._searches_for = words
        self.hint("")
        try:
            yield
        finally:
            self._searches_for = ""
            if self.is_running:
                self.hint("")
