"""Draw docs/architecture.svg: the layers of the packages, and the path of a step."""

from itertools import pairwise
from pathlib import Path

_OUTPUT = Path(__file__).parents[1] / "docs" / "architecture.svg"
_BANDS = {
    "Faces": "cli · tui · demo · faces · wording",
    "Commands and sessions": "wiring · commands · session · fleet · cluster",
    "Agents": "agents · travel · trust",
    "Engine": "engine · dialogue · verification · tools",
    "Language": "events · changes · actions · context · tickets · llm",
    "World": "project · git · process · files · settings · text · values"
    " · network · web · refusals",
}
_COLOURS = ("#0f766e", "#0e7490", "#1d4ed8", "#6d28d9", "#9d174d", "#9a3412")
_STEPS = {
    0: "1  cdd exec, /exec",
    1: "2  open the run",
    3: "3  prompt   4  reply   6  approval   7  write",
    4: "5  change set and its rules",
    5: "7  checkpoint   8  tests   9  commit",
}
_WIDTH, _ROW, _GAP, _MIDDLE = 960, 62, 12, 560


def _top(band: int) -> int:
    return 40 + band * (_ROW + _GAP)


def _box(x: int, y: int, width: int, height: int, style: str) -> str:
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    return f'<rect {place} rx="6" {style}/>'


def _text(x: int, y: int, size: int, colour: str, words: str) -> str:
    place = f'x="{x}" y="{y}" font-size="{size}"'
    return f'<text {place} fill="{colour}">{words}</text>'


def _arrow(above: int, below: int) -> str:
    path = f"M{_MIDDLE + 200} {_top(above) + _ROW - 8}V{_top(below) + 2}m-5 -1l5 7l5 -7"
    return f'<path d="{path}" fill="none" stroke="#64748b" stroke-width="2"/>'


def main() -> None:
    parts = [
        _box(0, 0, _WIDTH, _top(len(_BANDS)) + 8, 'fill="#ffffff"'),
        _text(16, 26, 14, "#475569", "Imports point down"),
        _text(_MIDDLE + 16, 26, 14, "#475569", "The way of a step, in numbers"),
    ]
    for band, (name, packages) in enumerate(_BANDS.items()):
        top = _top(band)
        parts += [
            _box(12, top, _MIDDLE - 24, _ROW, f'fill="{_COLOURS[band]}"'),
            _text(
                28, top + 26, 17, "#ffffff", f'<tspan font-weight="600">{name}</tspan>'
            ),
            _text(28, top + 48, 14, "#e2e8f0", packages),
        ]
    width = _WIDTH - _MIDDLE - 20
    for band, words in _STEPS.items():
        top = _top(band)
        style = 'fill="#f1f5f9" stroke="#94a3b8"'
        parts += [
            _box(_MIDDLE + 4, top + 8, width, _ROW - 16, style),
            _text(_MIDDLE + 18, top + 37, 15, "#0f172a", words),
        ]
    parts += [_arrow(above, below) for above, below in pairwise(_STEPS)]
    view = f'viewBox="0 0 {_WIDTH} {_top(len(_BANDS)) + 8}"'
    font = 'font-family="system-ui, Helvetica, Arial, sans-serif" xml:space="preserve"'
    picture = "\n".join(parts)
    _OUTPUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} {font}>\n{picture}\n</svg>\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
