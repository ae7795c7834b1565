"""The two lines that say where one is: above the transcript the project, below it what is going on."""

from time import monotonic

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class TitleBar(Widget):
    """Project, branch, agent and model in one line. When it is narrow, the model and the branch go first."""

    DEFAULT_CSS = """
    TitleBar { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    """
    agent: reactive[str] = reactive("chat")
    branch: reactive[str] = reactive("")

    def __init__(self, project: str, model: str) -> None:
        super().__init__()
        self._project = project
        self._model = model

    def render(self) -> Content:
        branch = f" ⎇ {self.branch}" if self.branch else ""
        left, right = f"cdd  {self._project}", self.agent
        for extra_left, extra_right in ((branch, f" · {self._model}"), (branch, ""), ("", "")):
            if cell_len(left + extra_left + right + extra_right) + 2 <= self.size.width:
                left, right = left + extra_left, right + extra_right
                break
        gap = " " * max(self.size.width - cell_len(left) - cell_len(right), 1)
        return Content.assemble(("cdd", "bold $text-primary"), left[3:], gap, (right, "$text-accent"))


class ActivityBar(Widget):
    """What is being waited for, and since when; otherwise the keys. Redraws itself only while something runs."""

    DEFAULT_CSS = """
    ActivityBar { height: 1; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, idle: str) -> None:
        super().__init__()
        self._idle = idle
        self._what = ""
        self._since = 0.0
        self._timer: Timer | None = None

    def busy(self, what: str) -> None:
        """Something has begun that may take a while."""
        self._what, self._since = what, monotonic()
        if self._timer is None:
            self._timer = self.set_interval(0.1, self.refresh)
        self.refresh()

    def rest(self) -> None:
        """Nothing is going on."""
        if self._timer is not None:
            self._timer.stop()
        self._timer, self._what = None, ""
        self.refresh()

    def render(self) -> Content:
        if not self._what:
            return Content(self._idle)
        seconds = monotonic() - self._since
        frame = _FRAMES[int(seconds * 10) % len(_FRAMES)]
        return Content.assemble((frame, "$text-accent"), f" {self._what}  {seconds:.0f} s · Esc stops")
