"""Tell a misspelt word from another word."""


def is_misspelt(word: str, name: str) -> bool:
    """True if a word is a name with one typo, or two in a name of eight letters."""
    most = 1 if len(name) < 8 else 2
    if abs(len(word) - len(name)) > most:
        return False
    return _count_slips(word, name) <= most


def _count_slips(word: str, name: str) -> int:
    """Return the letters that are missing, added, wrong or swapped."""
    older: list[int] = []
    last = list(range(len(name) + 1))
    for row, letter in enumerate(word, 1):
        current = [row]
        for column, other in enumerate(name, 1):
            slips = min(
                last[column] + 1,
                current[-1] + 1,
                last[column - 1] + (letter != other),
            )
            is_swap = (
                row > 1
                and column > 1
                and word[row - 2] == other
                and letter == name[column - 2]
            )
            if is_swap:
                slips = min(slips, older[column - 2] + 1)
            current.append(slips)
        older, last = last, current
    return last[-1]
