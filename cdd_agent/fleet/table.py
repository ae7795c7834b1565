"""The board as lines of text, fitted to a width and height."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from cdd_agent.cost import Cost
from cdd_agent.events.notices import Tone
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.llm.budget import Limit
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import remarks_on

_SIGNS = {
    RunState.WAITING: ("○", Tone.QUIET),
    RunState.RUNNING: ("◐", Tone.PLAIN),
    RunState.DONE: ("✓", Tone.GOOD),
    RunState.COMPLETED: ("●", Tone.WARNING),
    RunState.FAILED: ("✗", Tone.ERROR),
    RunState.REFUSED: ("✗", Tone.ERROR),
    RunState.NEEDS_YOU: ("?", Tone.WARNING),
    RunState.NO_BUDGET: ("!", Tone.WARNING),
    RunState.LATER: ("!", Tone.WARNING),
    RunState.STOPPED: ("–", Tone.WARNING),
}
_LEAST_WORDS = 24
"""Columns for the activity of a run; with fewer, it is on a second line."""
_TOKENS_FROM = 60
"""Columns of the whole table from which tokens are shown."""

Line = tuple[str, Tone]


def table(
    board: Board,
    unix_time: float,
    width: int,
    height: int | None = None,
    limit: Limit | None = None,
) -> list[Line]:
    """Return a summary line, then each run. With a `height`, runs that are done or have
    not begun make room for others.
    """
    lines = _wrapped(summary(board, unix_time, limit), width)
    name_width = _name_width(board, width)
    blocks = dict[str, list[Line]]()
    for name, row in board.rows.items():
        blocks[name] = _row(row, board, unix_time, width, name_width)
    chosen = set(blocks)
    if height is not None:
        chosen = _chosen(board, blocks, height - len(lines))
    for name, block in blocks.items():
        if name in chosen:
            lines += block
    left_out = len(blocks) - len(chosen)
    if left_out:
        lines.append((f"  … and {left_out} more", Tone.QUIET))
    return [(_fitted(text, width).rstrip(), tone) for text, tone in lines[:height]]


def _name_width(board: Board, width: int) -> int:
    longest = max((cell_len(name) for name in board.rows), default=0)
    # the room that the other columns of a narrow table leave
    room = width - 22 - 9 * _has_money(board)
    return min(longest, max(width // 3, room))


def in_lines(board: Board) -> str:
    """Return the table, as wide as the terminal."""
    if not board.rows:
        return (
            "No runs in progress and no worktrees. To see your tickets, run `cdd list`."
        )
    width = shutil.get_terminal_size().columns - 2
    return "\n".join(text for text, _ in table(board, time.time(), width))


def summary(board: Board, unix_time: float, limit: Limit | None = None) -> str:
    """Return the number of runs in each state, and their total cost."""
    limit = limit or Limit()
    number = len(board.rows)
    parts = [f"{number} run{'s' * (number != 1)}"]
    for state in RunState:
        count = board.count(state)
        if count:
            parts.append(f"{count} {state.value}")
    tokens = spent(board.cost)
    if limit.tokens:
        tokens += f" of {limit.tokens:,}"
    parts.append(tokens)
    if board.cost.usd is not None or limit.usd:
        dollars = money(board.cost) or "$0"
        if limit.usd:
            dollars += f" of ${limit.usd:.2f}"
        parts.append(dollars)
    begun = [row for row in board.rows.values() if row.began is not None]
    if begun:
        first = min(row.began or 0.0 for row in begun)
        last = max(row.ended or unix_time for row in begun)
        parts.append(duration(last - first))
    return " · ".join(parts)


def spent(cost: Cost) -> str:
    return f"{_about(cost)}{cost.tokens:,} tokens"


def money(cost: Cost) -> str:
    """Empty if no price is known."""
    if cost.usd is None:
        return ""
    digits = 2 if cost.usd >= 1 else 4
    return f"{_about(cost)}${cost.usd:.{digits}f}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def doing(row: Row) -> str:
    """Describe a run's activity, or why it has none, in a line."""
    words = ""
    match row.state:
        case RunState.RUNNING:
            words = row.wait or _steps_in_words(row) or "begins"
        case RunState.NEEDS_YOU if row.question:
            words = f"needs your approval: {row.question}"
        case RunState.WAITING:
            pass
        case RunState.DONE | RunState.COMPLETED:
            words = ", ".join(remarks_on(row.tally))
        case _:
            steps = " and ".join(f"step {row.label_of(number)}" for number in row.steps)
            words = steps or row.state.value
            if row.why:
                words += f": {row.why}"
    return " ".join(sanitize_for_display(words).split())


def _steps_in_words(row: Row) -> str:
    steps = row.steps.items()
    return ", ".join(f"step {row.label_of(number)}: {title}" for number, title in steps)


def _about(cost: Cost) -> str:
    return "~" if cost.estimated else ""


def _row(
    row: Row, board: Board, unix_time: float, width: int, name_width: int
) -> list[Line]:
    sign, tone = _SIGNS[row.state]
    progress = f"{row.tally.over}/{row.tally.total}" if row.tally.total else ""
    columns = [
        f"{sign} {_fitted(_name(row, name_width), name_width)}",
        f"{progress:>5}",
    ]
    if width >= _TOKENS_FROM:
        tokens = f"{_about(row.cost)}{row.cost.tokens:,}" if row.cost.tokens else ""
        columns.append(f"{tokens:>9}")
    if _has_money(board):
        columns.append(f"{money(row.cost):>8}")
    has_begun = row.began is not None or row.earlier
    time_taken = duration(row.seconds(unix_time)) if has_begun else ""
    columns.append(f"{time_taken:>6}")
    text, words = " ".join(columns), doing(row)
    if not words:
        return [(text.rstrip(), tone)]
    room = width - cell_len(text) - 2
    if room >= _LEAST_WORDS:
        return [(f"{text}  {_fitted(words, room)}".rstrip(), tone)]
    return [(text, tone), (f"  {_fitted(words, width - 2)}".rstrip(), tone)]


def _name(row: Row, width: int) -> str:
    """Return the name of a run. A long name loses its middle, because its end
    distinguishes the runs of a ticket.
    """
    name = row.job.name
    if len(name) <= width or not name.isascii():
        return name
    end = (width - 1) // 2
    return f"{name[: width // 2]}…{name[len(name) - end :]}"


def _chosen(board: Board, blocks: Mapping[str, Sequence[Line]], most: int) -> set[str]:
    """Return the runs that fit into this number of lines, including one that counts the
    others.
    """
    if sum(map(len, blocks.values())) <= most:
        return set(blocks)
    order = {RunState.WAITING: 1, RunState.COMPLETED: 2, RunState.DONE: 3}
    rows = sorted(board.rows.values(), key=lambda row: order.get(row.state, 0))
    chosen = set[str]()
    for row in rows:
        name = row.job.name
        if len(blocks[name]) < most:
            chosen.add(name)
            most -= len(blocks[name])
    return chosen


def _has_money(board: Board) -> bool:
    return any(row.cost.usd is not None for row in board.rows.values())


def _fitted(text: str, width: int) -> str:
    """Pad or cut a text to a width."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 0:
        return ""
    return f"{set_cell_size(text, width - 1)}…"


def _wrapped(text: str, width: int) -> list[Line]:
    """Wrap a text between its parts."""
    lines = [""]
    for part in text.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines[-1] else part
        if cell_len(longer) > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return [(line, Tone.HEADING) for line in lines]


def comparison(board: Board, width: int) -> list[str]:
    """Return the runs of each ticket as a table; if it is too wide, as lists of
    results.
    """
    heads = ("model", "steps", "attempts", "tests", "tokens", "money", "time")
    cells_of = {
        name: (str(row.job.model), *_results(row)) for name, row in board.rows.items()
    }
    columns = zip(heads, *cells_of.values(), strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    is_wide = sum(widths) + 2 * len(widths) + 2 <= width
    lines, last = list[str](), ""
    for name, row in board.rows.items():
        if row.job.slug != last:
            if last:
                lines.append("")
            last = row.job.slug
            lines.append(last)
            if is_wide:
                lines.append(_in_columns(heads, widths))
        cells = cells_of[name]
        if is_wide:
            lines.append(_in_columns(cells, widths))
        else:
            lines += _in_list(heads, cells, width)
    return lines


def _results(row: Row) -> tuple[str, ...]:
    steps = ""
    if row.tally.total:
        steps = f"{row.tally.passed}/{row.tally.total} passed"
    if not row.state.is_completed and row.state is not RunState.FAILED:
        steps = f"{steps} {row.state.value}".lstrip()
    steps = ", ".join([steps, *remarks_on(row.tally)])
    tests = f"{row.tests[0]} passed, {row.tests[1]} failed" if row.tests else ""
    return (
        steps,
        str(sum(row.tries.values())),
        tests,
        f"{_about(row.cost)}{row.cost.tokens:,}",
        money(row.cost),
        duration(row.worked),
    )


def _in_columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True)
    ]
    return "  " + "  ".join(padded).rstrip()


def _in_list(heads: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    named = list[str]()
    for head, cell in zip(heads[1:], cells[1:], strict=True):
        if cell:
            named.append(f"{head} {cell}")
    lines = [f"  {cells[0]}"]
    for line, _ in _wrapped(" · ".join(named), width - 4):
        lines.append(f"    {line}")
    return lines
