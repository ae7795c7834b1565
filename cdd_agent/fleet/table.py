"""The board as lines of text, as wide and as high as there is room; the same for every
face.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from cdd_agent.events import Tone
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.llm.budget import Limit
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.status import Cost

_SIGNS = {
    RunState.WAITING: ("○", Tone.QUIET),
    RunState.RUNNING: ("◐", Tone.PLAIN),
    RunState.DONE: ("✓", Tone.GOOD),
    RunState.FAILED: ("✗", Tone.ERROR),
    RunState.REFUSED: ("✗", Tone.ERROR),
    RunState.NEEDS_YOU: ("?", Tone.WARNING),
    RunState.NO_BUDGET: ("!", Tone.WARNING),
    RunState.LATER: ("!", Tone.WARNING),
    RunState.STOPPED: ("–", Tone.WARNING),
}
_LEAST_WORDS = 24
"""Columns for what a run does; with less they have a line of their own."""
_TOKENS_FROM = 60
"""Columns of the whole table from which on there is room for tokens."""

Line = tuple[str, Tone]


def table(
    board: Board,
    now: float,
    width: int,
    height: int | None = None,
    limit: Limit | None = None,
) -> list[Line]:
    """A line on all runs, then each run. With a `height`, runs that are done or have
    not begun give way to others.
    """
    lines = [*_wrapped(summary(board, now, limit), width)]
    name_width = max((cell_len(name) for name in board.rows), default=0)
    name_width = min(name_width, max(width // 3, width - 22 - 9 * _has_money(board)))
    blocks = {
        name: _row(row, board, now, width, name_width)
        for name, row in board.rows.items()
    }
    chosen = (
        set(blocks) if height is None else _chosen(board, blocks, height - len(lines))
    )
    for name, block in blocks.items():
        lines += block if name in chosen else []
    if left_out := len(blocks) - len(chosen):
        lines.append((f"  … and {left_out} more", Tone.QUIET))
    return [(_fitted(text, width).rstrip(), tone) for text, tone in lines[:height]]


def in_lines(board: Board) -> str:
    """The table as it is now, as wide as the terminal."""
    if not board.rows:
        return (
            "No run is under way, and none has a tree of its own. `cdd list` shows how"
            " far each ticket is."
        )
    width = shutil.get_terminal_size().columns - 2
    return "\n".join(text for text, _ in table(board, time.time(), width))


def summary(board: Board, now: float, limit: Limit | None = None) -> str:
    """How many runs are in which state, and what they took together."""
    counts = [(board.count(state), state.value) for state in RunState]
    began = [row.began for row in board.rows.values() if row.began is not None]
    ended = [row.ended or now for row in board.rows.values() if row.began is not None]
    number = len(board.rows)
    parts = [
        f"{number} run{'s' * (number != 1)}",
        *(f"{count} {name}" for count, name in counts if count),
    ]
    parts.append(
        spent(board.cost) + (f" of {limit.tokens:,}" if limit and limit.tokens else "")
    )
    if board.cost.usd is not None or (limit and limit.usd):
        parts.append(
            (money(board.cost) or "$0")
            + (f" of ${limit.usd:.2f}" if limit and limit.usd else "")
        )
    if began:
        parts.append(duration(max(ended) - min(began)))
    return " · ".join(parts)


def spent(cost: Cost) -> str:
    return f"{'~' if cost.estimated else ''}{cost.tokens:,} tokens"


def money(cost: Cost) -> str:
    """Empty where no price is known."""
    if cost.usd is None:
        return ""
    return f"{'~' if cost.estimated else ''}${cost.usd:.{2 if cost.usd >= 1 else 4}f}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
        if minutes >= 60
        else f"{minutes}:{rest:02}"
    )


def doing(row: Row) -> str:
    """What a run does, or why it does nothing, in a line."""
    match row.state:
        case RunState.RUNNING if row.wait:
            words = row.wait
        case RunState.RUNNING:
            words = (
                ", ".join(
                    f"step {row.label_of(number)}: {title}"
                    for number, title in row.steps.items()
                )
                or "begins"
            )
        case RunState.NEEDS_YOU if row.question:
            words = f"wants your yes: {row.question}"
        case RunState.WAITING | RunState.DONE:
            words = ""
        case _:
            steps = " and ".join(f"step {row.label_of(number)}" for number in row.steps)
            words = ": ".join(filter(None, (steps or row.state.value, row.why)))
    return " ".join(sanitize_for_display(words).split())


def _row(row: Row, board: Board, now: float, width: int, name_width: int) -> list[Line]:
    sign, tone = _SIGNS[row.state]
    name = row.job.name
    # of several runs of a ticket, the end tells which
    if len(name) > name_width and name.isascii():
        name = f"{name[: name_width // 2]}…{name[len(name) - (name_width - 1) // 2 :]}"
    columns = [f"{sign} {_fitted(name, name_width)}"]
    columns.append(f"{f'{row.done}/{row.total}' if row.total else '':>5}")
    if width >= _TOKENS_FROM:
        about = "~" if row.cost.estimated else ""
        columns.append(
            f"{about + format(row.cost.tokens, ',') if row.cost.tokens else '':>9}"
        )
    if _has_money(board):
        columns.append(f"{money(row.cost):>8}")
    has_begun = row.began is not None or row.earlier
    columns.append(f"{duration(row.seconds(now)) if has_begun else '':>6}")
    text, words = " ".join(columns), doing(row)
    room = width - cell_len(text) - 2
    if not words or room >= _LEAST_WORDS:
        return [
            (
                f"{text}  {_fitted(words, room)}".rstrip() if words else text.rstrip(),
                tone,
            )
        ]
    return [(text, tone), (f"  {_fitted(words, width - 2)}".rstrip(), tone)]


def _chosen(board: Board, blocks: Mapping[str, Sequence[Line]], most: int) -> set[str]:
    """The runs that there is room for in so many lines, with one that says how many
    there are beside them.
    """
    if sum(map(len, blocks.values())) <= most:
        return set(blocks)
    last = (RunState.WAITING, RunState.DONE)
    chosen = set[str]()
    for row in sorted(
        board.rows.values(),
        key=lambda row: last.index(row.state) if row.state in last else -1,
    ):
        name = row.job.name
        if len(blocks[name]) < most:
            chosen.add(name)
            most -= len(blocks[name])
    return chosen


def _has_money(board: Board) -> bool:
    return any(row.cost.usd is not None for row in board.rows.values())


def _fitted(text: str, width: int) -> str:
    """As wide as that: filled, or cut with a mark."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, max(width - 1, 0))}…" if width > 0 else ""


def _wrapped(text: str, width: int) -> list[Line]:
    """Broken between its parts."""
    lines = [""]
    for part in text.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if cell_len(longer) > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return [(line, Tone.HEADING) for line in lines]


def comparison(board: Board, width: int) -> list[str]:
    """The runs of each ticket beside each other; a run has two lines where there is no
    room for one.
    """
    heads = ("model", "done", "attempts", "tests", "tokens", "money", "time")
    rows = [
        (row.job.slug, (str(row.job.model), *_results(row)))
        for row in board.rows.values()
    ]
    widths = [
        max(map(cell_len, column))
        for column in zip(heads, *(cells for _, cells in rows), strict=True)
    ]
    is_wide = sum(widths) + 2 * len(widths) + 2 <= width
    lines, last = list[str](), ""
    for slug, cells in rows:
        if slug != last:
            lines += ["", slug] if last else [slug]
            lines += [_in_columns(heads, widths)] if is_wide else []
            last = slug
        if is_wide:
            lines.append(_in_columns(cells, widths))
        else:
            named = [
                f"{head} {cell}"
                for head, cell in zip(heads[1:], cells[1:], strict=True)
                if cell
            ]
            lines += [
                f"  {cells[0]}",
                *(f"    {line}" for line, _ in _wrapped(" · ".join(named), width - 4)),
            ]
    return lines


def _results(row: Row) -> tuple[str, ...]:
    done = f"{row.done}/{row.total}" if row.total else row.state.value
    if row.state not in (RunState.DONE, RunState.FAILED):
        done = f"{done} {row.state.value}" if row.total else done
    tests = f"{row.tests[0]} passed, {row.tests[1]} failed" if row.tests else ""
    about = "~" if row.cost.estimated else ""
    return (
        done,
        str(sum(row.tries.values())),
        tests,
        f"{about}{row.cost.tokens:,}",
        money(row.cost),
        duration(row.worked),
    )


def _in_columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True)
    ]
    return "  " + "  ".join(padded).rstrip()
