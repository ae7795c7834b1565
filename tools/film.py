"""Animated SVG pictures, made from still pictures of a Textual screen.

A film is one SVG without scripts or external files. CSS animations show one frame after
the other. Rows that occur in several frames are stored once. A program that does not
play animations shows the last frame, and so does a browser whose user prefers reduced
motion.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise

_ROW_HEIGHT = 24.4
_TOP = 1.5
_FONT = (
    "'Fira Code', ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono',"
    " monospace"
)
_STYLE = re.compile(r"^\s*\.[\w-]+-(r\d+) \{ (.+?) ?\}$", re.MULTILINE)
_RECTANGLE = re.compile(
    r'<rect fill="(?P<fill>[^"]+)" x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)"'
    r' width="(?P<width>[\d.]+)" height="[\d.]+" shape-rendering="crispEdges"/>'
)
_TEXT = re.compile(
    r'<text class="[\w-]+-(?P<style>r\d+)" x="(?P<x>[\d.]+)" y="[\d.]+"'
    r' textLength="(?P<length>[\d.]+)" clip-path="[^"]*-line-(?P<row>\d+)\)">'
    r"(?P<text>.*?)</text>",
    re.DOTALL,
)
_SIZE = re.compile(r'clip-terminal">\s*<rect [^>]*width="([\d.]+)" height="([\d.]+)"')
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\n    \}\n", re.DOTALL)


def without_fonts(svg: str) -> str:
    """Return a still picture that loads no font from another server."""
    return _FONT_FACE.sub("", svg).replace("Fira Code, monospace", _FONT)


@dataclass
class _Frame:
    at: float
    rows: dict[int, str]
    """The pictures of non-empty rows."""
    hold: float = 0


@dataclass
class Film:
    """Frames and their times, in seconds."""

    quiet_rows: frozenset[int] = frozenset()
    """Rows whose changes alone make no frame, such as one that counts seconds."""
    longest: float = 0.2
    """The longest time of a frame without `hold`, which shortens waits."""
    last: float = 6
    """The time of the last frame."""
    frames: list[_Frame] = field(default_factory=list)
    styles: dict[str, str] = field(default_factory=dict)
    """The name of each CSS declaration."""
    size: tuple[float, float] = 0, 0

    def add(self, svg: str, at: float) -> None:
        """Add a still picture from this time, if it shows a change."""
        rows = self._rows(svg)
        if not self.frames or self._differs(rows, self.frames[-1].rows):
            self.frames.append(_Frame(at, rows))

    def hold(self, seconds: float) -> None:
        """Show the latest frame at least this long."""
        self.frames[-1].hold = seconds

    def thin_out(self, most: int) -> None:
        """Drop frames without `hold`, evenly, until `most` remain."""
        passing = [frame for frame in self.frames[:-1] if not frame.hold]
        count = most - (len(self.frames) - len(passing))
        if len(passing) > count:
            chosen = {id(passing[n * len(passing) // count]) for n in range(count)}
            dropped = {id(frame) for frame in passing} - chosen
            self.frames = [frame for frame in self.frames if id(frame) not in dropped]

    def _differs(self, rows: dict[int, str], others: dict[int, str]) -> bool:
        numbers = {*rows, *others} - self.quiet_rows
        return any(rows.get(number) != others.get(number) for number in numbers)

    def _rows(self, svg: str) -> dict[int, str]:
        match = _SIZE.search(svg)
        if match is None:
            raise ValueError("not a picture of a Textual screen")
        self.size = float(match[1]), float(match[2])
        styles = dict(_STYLE.findall(svg))
        parts: dict[int, list[str]] = {}
        for rectangle in _RECTANGLE.finditer(svg):
            row = round((float(rectangle["y"]) - _TOP) / _ROW_HEIGHT)
            parts.setdefault(row, []).append(
                f'<rect fill="{rectangle["fill"]}" x="{rectangle["x"]}"'
                f' width="{rectangle["width"]}" height="24.6"/>'
            )
        for text in _TEXT.finditer(svg):
            if text["text"].replace("&#160;", "").strip():
                name = self._style(styles[text["style"]])
                parts.setdefault(int(text["row"]), []).append(
                    f'<text class="{name}" x="{text["x"]}" y="18.5"'
                    f' textLength="{text["length"]}">{text["text"]}</text>'
                )
        return {row: "".join(pictures) for row, pictures in sorted(parts.items())}

    def _style(self, declaration: str) -> str:
        return self.styles.setdefault(declaration, f"s{len(self.styles)}")

    def durations(self) -> list[float]:
        durations = []
        for frame, following in pairwise(self.frames):
            shown = min(following.at - frame.at, self.longest)
            durations.append(max(shown, frame.hold))
        return [*durations, self.last]

    def svg(self, *, only: int | None = None) -> str:
        """Return the film, or one of its frames as a still picture."""
        width, height = self.size
        frames = self.frames if only is None else [self.frames[only]]
        names: dict[str, str] = {}
        groups = []
        for number, frame in enumerate(frames):
            uses = []
            for row, picture in frame.rows.items():
                name = names.setdefault(picture, f"r{len(names)}")
                y = row * _ROW_HEIGHT + _TOP
                uses.append(f'<use href="#{name}" y="{y:.1f}"/>')
            groups.append(f'<g class="f" id="f{number}">{"".join(uses)}</g>')
        rows = [f'<g id="{name}">{picture}</g>' for picture, name in names.items()]
        styles = [f".{name}{{{css}}}" for css, name in self.styles.items()]
        newline = "\n"
        view = f"0 0 {width + 24:.0f} {height + 24:.0f}"
        return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}">
<style>
text{{font:20px {_FONT};white-space:pre}}
{newline.join(styles)}
{self._animation() if only is None else ""}\
#f{len(frames) - 1}{{visibility:visible}}
</style>
<defs>
{newline.join(rows)}
</defs>
<rect width="100%" height="100%" rx="10" fill="#292929"/>
<svg x="12" y="12" width="{width}" height="{height}">
{newline.join(groups)}
</svg>
</svg>
"""

    def _animation(self) -> str:
        durations = self.durations()
        total = sum(durations)
        rules = [
            f".f{{visibility:hidden;animation:{total:.1f}s step-end infinite}}",
            "@media (prefers-reduced-motion:reduce){.f{animation:none !important}}",
        ]
        begin = 0.0
        for number, seconds in enumerate(durations):
            end = begin + 100 * seconds / total
            rules.append(
                f"#f{number}{{animation-name:k{number}}}"
                f"@keyframes k{number}{{0%{{visibility:hidden}}"
                f"{begin:.3f}%{{visibility:visible}}{end:.3f}%{{visibility:hidden}}}}"
            )
            begin = end
        return "".join(f"{rule}\n" for rule in rules)
