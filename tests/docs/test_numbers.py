"""Numbers of the docs: limits are those of the program, and a measured number is near
the command that measures it.
"""

import re
from collections.abc import Iterator

from cdd_agent.dialogue.calls import LONGEST_ANSWER, MOST_IN_A_ROUND
from cdd_agent.dialogue.limits import Limits
from cdd_agent.git.snapshot import LARGEST_SAVED
from cdd_agent.llm import pictures, timeouts
from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.retrying import LONGEST_WAIT
from cdd_agent.settings.config import Config
from tests.docs.pages import DOCS, Page, all_pages, page_at
from tests.support.tables import each_row

_MEASURED = re.compile(
    r"(?i)\b(?:measured|on that machine|times as long|per second|a second faster|"
    r"took|takes about|peak memory|costs? about)\b"
)
_NUMBER = re.compile(
    r"\$?\d[\d,.]* ?(?:ms|s|MB|MiB|GB|GiB|%|times|tokens|seconds)\b|\$\d"
)
_COMMAND = re.compile(r"`(?:make |python -m |\.venv/bin/|cdd )[^`]*`")


@each_row(
    ("page", "text"),
    [
        ("replies", f"{Limits().rounds} rounds, {Limits().seconds / 60:.0f} minutes"),
        ("replies", f"{LONGEST_ANSWER:,} characters an answer"),
        ("replies", f"{MOST_IN_A_ROUND:,} a round"),
        ("models", f"{CEILING:,} tokens of reply"),
        ("models", f"{pictures.LARGEST:,} bytes"),
        ("models", "five a message" if pictures.MOST == 5 else "changed"),
        ("models", "two minutes" if LONGEST_WAIT == 120 else "changed"),
        (
            "models",
            "five\nminutes, or thirty"
            if (timeouts.SILENCE_TIMEOUT, timeouts.THINKING_TIMEOUT) == (300, 1800)
            else "changed",
        ),
        ("records", f"{LARGEST_SAVED >> 20} MiB each"),
        (
            "verification",
            f"{Config().strength_faults} faults and {Config().strength_seconds} s",
        ),
    ],
)
def test_a_limit_is_that_of_the_program(page: str, text: str) -> None:
    assert text in (DOCS / "reference" / f"{page}.md").read_text("utf-8")


def sections(page: Page) -> Iterator[tuple[int, str]]:
    """The sections of a page, each with the number of its first line."""
    begin, lines = 1, list[str]()
    for number, line in page.prose:
        if line.startswith("#"):
            yield begin, "\n".join(lines)
            begin, lines = number, []
        lines.append(line)
    yield begin, "\n".join(lines)


def unnamed_measurements(page: Page) -> Iterator[str]:
    for begin, text in sections(page):
        for sentence in re.split(r"(?<=[.:|])\s", text):
            is_measured = _MEASURED.search(sentence) and _NUMBER.search(sentence)
            if is_measured and not _COMMAND.search(text):
                yield f"{page.path}:{begin}: {sentence.strip()}"


def test_a_measured_number_names_its_command() -> None:
    wrong = [line for page in all_pages() for line in unnamed_measurements(page)]
    assert wrong == []


def test_a_measurement_without_a_command_is_found() -> None:
    page = page_at(DOCS / "reference" / "models.md")
    without = Page(page.path, ((1, "It took 3 s."),), ())
    with_it = Page(page.path, ((1, "It took 3 s (`make bench`)."),), ())
    assert len(list(unnamed_measurements(without))) == 1
    assert list(unnamed_measurements(with_it)) == []
