from collections.abc import Sequence

from textual.selection import Selection

from cdd_agent.tui.transcript.lines import LineRow


def selected_text(
    rows: Sequence[LineRow], selection: Selection, row_offset: int
) -> str:
    """Return the selected text without gutters, and without line breaks that only the
    width causes. A row's number is its place plus `row_offset`.
    """
    first, last = 0, len(rows)
    if selection.start:
        first = max(selection.start.y - row_offset, 0)
    if selection.end:
        last = min(selection.end.y - row_offset + 1, len(rows))
    texts = list[str]()
    for y in range(first, last):
        row = rows[y]
        if y > first:
            texts.append(_text_between(rows[y - 1], row))
        begin, stop = selection.get_span(y + row_offset) or (0, 0)
        text = row.line.text[row.start : row.end]
        texts.append(text[begin:] if stop == -1 else text[begin:stop])
    return "".join(texts)


def _text_between(above: LineRow, row: LineRow) -> str:
    if above.line is row.line:
        return row.line.text[above.end : row.start]
    return "\n"
