from rich.cells import cell_len

BETWEEN = " · "


def fit_hint(text: str, width: int) -> str:
    """Return the first parts of a hint that fit into a row. The first part is the most
    important; in a narrow row it ends after a whole word.
    """
    parts = text.split(BETWEEN)
    while len(parts) > 1 and cell_len(BETWEEN.join(parts)) > width:
        parts.pop()
    shown = BETWEEN.join(parts)
    if cell_len(shown) <= width:
        return shown
    words = shown.split(" ")
    while len(words) > 1 and cell_len(" ".join(words)) + 2 > width:
        words.pop()
    return f"{' '.join(words).rstrip(',;:')} …"
