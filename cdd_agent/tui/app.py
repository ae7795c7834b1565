"""The shell: shows events and passes lines to the session. It makes no decisions."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work

from cdd_agent.errors import CddError, ExitCode
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.shell_events import ExitRequested, ScreenAsked, SessionsListed
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.ticket_events import CriteriaShown
from cdd_agent.process.signals import handle_signals
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.attention import Calling
from cdd_agent.tui.bindings import SHELL_BINDINGS
from cdd_agent.tui.contrast import readable_variables
from cdd_agent.tui.home import BESIDE
from cdd_agent.tui.key_routing import KeyRouting
from cdd_agent.tui.leaving import Leaving
from cdd_agent.tui.screen_actions import ScreenActions
from cdd_agent.tui.terminal_input.choice import choose_driver
from cdd_agent.tui.themes import (
    AUTOMATIC,
    THEMES,
    LastTheme,
    load_last_theme,
    save_last_theme,
    theme_for_background,
    use_theme,
)
from cdd_agent.tui.turns import Turns
from cdd_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.binding import BindingType
    from textual.driver import Driver
    from textual.screen import Screen

    from cdd_agent.frontend import Frontend
    from cdd_agent.session.open_project import TrustAnswer, TrustQuestion
    from cdd_agent.session.session import Session
    from cdd_agent.tui.terminal_input.driver_messages import BackgroundReported
    from cdd_agent.tui.widgets.welcome import Welcome

    Opened = tuple[Session, tuple[Notice, ...]]

_QUIET = 0.1
"""Seconds after the first screen without imports, which would delay the first keys."""


class Shell(KeyRouting, ScreenActions, Turns, Leaving):
    """The app. One turn runs at a time; Escape or Ctrl+C stops it.

    The session opens after the first screen is visible: the imports of settings,
    adapters and engine take longer than typing the first word. An error during the
    opening is the app's result.
    """

    TITLE = "cdd"
    ENABLE_COMMAND_PALETTE = False  # the shell has its own palette
    CSS_PATH = "shell.tcss"
    # Textual declares these without ClassVar.
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (BESIDE, "-medium"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = SHELL_BINDINGS

    def __init__(
        self,
        root: Path,
        open_session: Callable[[Frontend, Emit], Opened],
        first: str = "",
        clock: KeyClock = KeyClock(),  # noqa: B008  # it is frozen
        *,
        helps_to_begin: bool = False,
    ) -> None:
        """`first` is sent like a typed line. `clock` measures key times.
        `helps_to_begin`: the first screen is the welcome.
        """
        super().__init__(root, clock, has_welcome=helps_to_begin)
        self._open_session = open_session
        self._first = first
        self._helps_to_begin = helps_to_begin
        self.wants_demo = False
        theme = load_last_theme().name
        self.fitting_theme = theme if theme in ("dark", "light") else "dark"
        use_theme(self, theme)

    def get_driver_class(self) -> type[Driver]:
        return choose_driver(super().get_driver_class(), self._use_driver)

    def _use_driver(self, driver: Driver) -> None:
        self.driver = driver

    def get_default_screen(self) -> Screen[None]:
        """Return the home screen with the classes of its size. Otherwise the first
        resize would style all widgets again.
        """
        (width, height), by_width, by_height = (
            self.size,
            self.HORIZONTAL_BREAKPOINTS,
            self.VERTICAL_BREAKPOINTS,
        )
        for length, breakpoints in ((width, by_width), (height, by_height)):
            self.home.add_class(
                max(point for point in breakpoints if point[0] <= length)[1],
                update=False,
            )
        return self.home

    def get_css_variables(self) -> dict[str, str]:
        return readable_variables(super().get_css_variables())

    def on_mount(self) -> None:
        handle_signals(("SIGTERM",), partial(self.leave, ExitCode.INTERRUPTED))
        handle_signals(("SIGHUP",), self.action_vanish)
        self.app_suspend_signal.subscribe(
            self, lambda _: self.attention.lend(), immediate=True
        )
        self.app_resume_signal.subscribe(self, self._come_back)
        self.ask_for_background()
        self.call_after_refresh(self.set_timer, _QUIET, self.open)

    def on_background_reported(self, event: BackgroundReported) -> None:
        fitting, last = theme_for_background(event.colour), load_last_theme()
        if fitting is None:
            return
        self.fitting_theme = fitting
        if not last.is_chosen:
            use_theme(self, fitting)
            if fitting != last.name:
                save_last_theme(LastTheme(fitting))

    def apply_settings(self) -> None:
        assert self.session is not None
        config = self.session.project.config
        self.home.bar.model = config.model
        self.home.show_approval()
        self.attention.change_settings(config.notifications)
        self._apply_theme(config.theme)

    def _apply_theme(self, name: str) -> None:
        theme = LastTheme(self.fitting_theme)
        if name in THEMES:
            theme = LastTheme(name, is_chosen=True)
        use_theme(self, theme.name)
        if theme != load_last_theme():
            save_last_theme(theme)

    @work(group="open")
    async def open(self) -> None:
        try:
            session, notices = await asyncio.to_thread(
                self._open_session, Calling(self.asking, self.attention), self.receive
            )
        except CddError as error:
            self.exit(error, return_code=error.exit_code)
            return
        # The shell cannot work without a session.
        except Exception as error:  # noqa: BLE001
            self.exit(
                CddError(self.faults.write(error), refusal=Refusal.PROCESS_FAILED),
                return_code=ExitCode.FAILED,
            )
            return
        self.home.session = session
        config = session.project.config
        self.home.bar.model = config.model
        self.home.show_approval()
        self._apply_theme(config.theme)
        self.attention.open(config.notifications, lambda: session.tally.spent)
        for notice in notices:
            self.home.show_opening(notice)
        if config.theme not in (AUTOMATIC, *THEMES):
            text = f"There is no theme {config.theme!r}. To choose one, type `/theme`."
            self.home.show_opening(Notice(text, Tone.WARNING))
        self.home.say_what_enter_does()
        self.look_around()
        if self._first:
            self.on_prompt_submitted(Prompt.Submitted(self._first))
        else:
            self.send_queued()

    def ask_for_trust(self, question: TrustQuestion) -> TrustAnswer:
        answer: TrustAnswer = self.call_from_thread(
            # mypy does not know that `call_from_thread` awaits coroutines.
            self.show_trust_screen,  # type: ignore[arg-type]
            question,
        )
        return answer

    async def show_trust_screen(self, question: TrustQuestion) -> TrustAnswer:
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.trust_screen import ask_for_trust  # noqa: PLC0415

        return await ask_for_trust(self, question)

    @work(group="look")
    async def look_around(self) -> None:
        assert self.session is not None
        if not self._helps_to_begin:
            await self.session.first_look(first_line=self._first)
            return
        # late: the first screen shows sooner
        from cdd_agent.tui.screens.beginning import show_beginning  # noqa: PLC0415

        await show_beginning(self)

    def on_welcome_started(self, event: Welcome.Started) -> None:
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.beginning import start_row  # noqa: PLC0415

        start_row(self, event.row)

    def _come_back(self, _: object) -> None:
        """Redraw everything after Ctrl+Z, which clears the screen."""
        self.attention.take_back()
        self.refresh(layout=True)

    def on_page_attached(self) -> None:
        self.refresh(layout=True)

    async def on_unmount(self) -> None:
        self.attention.close()
        if self.session is not None:
            self.session.leave()

    def receive(self, event: Event) -> None:
        """Show an event of the session. Faults in showing it do not reach the
        emitter.
        """
        if self.is_running:
            try:
                self.show(event)
            except Exception as error:  # noqa: BLE001
                self.report_fault(error)

    def show(self, event: Event) -> None:
        if self.inspector is not None and self.inspector.is_attached:
            self.inspector.receive(event)
        match event:
            case ExitRequested():
                self.leave()
            case CriteriaShown():
                self.inspect("criteria", event.ticket_slug)
            case ScreenAsked():
                self.action_open_screen(event.screen, event.choice)
            case SessionsListed() if event.sessions:
                # late: screens are imported when one is opened
                from cdd_agent.tui.screens.sessions import (  # noqa: PLC0415
                    SessionsScreen,
                )

                if self.screen is self.home:
                    self.push_screen(SessionsScreen(event.sessions), self._resume)
            case _:
                super().show(event)

    def _resume(self, line: str | None) -> None:
        """Resume a session without a confirmation: resuming changes nothing."""
        self.say_from_screen("")
        if line:
            self.on_prompt_submitted(Prompt.Submitted(line))

    @work(exclusive=True, group="screens")
    async def action_open_screen(self, name: str, choice: str = "") -> None:
        # late: screens are imported when one is opened
        from cdd_agent.tui.screens.opening import open_screen  # noqa: PLC0415

        if self.screen is not self.home:
            return
        try:
            await open_screen(self, name, choice)
        except CddError as error:
            self.notify_error(error)

    def action_use_theme(self, name: str) -> None:
        self.action_open_screen("theme", name)

    def on_text_area_changed(self) -> None:
        self.asking.show_keys()
        self.home.say_what_enter_does()
