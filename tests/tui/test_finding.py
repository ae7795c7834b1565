"""Finding: a text in the transcript, what is new below, and what leads elsewhere."""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.events.notices import Answer, Notice
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.process.editor import at_line
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindBar, FindInput
from cdd_agent.tui.transcript.finding import Search
from cdd_agent.tui.transcript.folds import Opening
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.places import file_places, in_project, web_places
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import Sandbox
from tests.tui.person import Person, person_at
from tests.tui.test_blocks import LINES, block
from tests.tui.test_transcript import numbered, screen, shown, text


def transcript_of(person: Person) -> Transcript:
    return person.app.query_one(Transcript)


def bar(person: Person) -> str:
    return " ".join(
        str(part.render()) for part in person.app.query_one(FindBar).query("Static")
    )


def highlighted(transcript: Transcript) -> list[str]:
    """The pieces of the screen that are drawn as found; the current one in capitals."""
    hit, current = (
        transcript._painter.style(ink).bgcolor for ink in ("hit", "hit current")
    )
    found = list[str]()
    for y in range(transcript.size.height):
        for segment in transcript.render_line(y):
            if segment.style and segment.style.bgcolor in (hit, current):
                found.append(
                    segment.text.upper()
                    if segment.style.bgcolor == current
                    else segment.text
                )
    return found


# --- a text


async def test_enter_and_arrows_go_from_match_to_match(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for word in ("Alpha", "beta", "alphabet", "gamma"):
            person.app.show(Notice(f"here is {word}"))
        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        await person.type("alpha")
        assert highlighted(transcript_of(person)) == ["ALPHA", "alpha"]
        assert "1 of 2" in bar(person)
        await person.press("enter")
        assert highlighted(transcript_of(person)) == ["Alpha", "ALPHA"]
        await person.press("enter")  # around the end
        assert "1 of 2" in bar(person)
        await person.press("up")
        assert "2 of 2" in bar(person)
        await person.type("x")
        assert "no match" in bar(person)
        await person.press("escape")
        await person.until(lambda: not person.app.query(FindBar))
        assert highlighted(transcript_of(person)) == []
        assert person.prompt.text == ""
        await person.type("a")
        assert person.prompt.text == "a"


async def test_matches_in_new_text_are_counted(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.show(Notice("here is alpha"))
        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        person.app.show(Notice("alpha before anything is looked for"))
        await person.type("alpha")
        assert "1 of 2" in bar(person)
        person.app.show(Notice("one more alpha, and alpha"))
        await person.until(lambda: "1 of 4" in bar(person))
        assert highlighted(transcript_of(person)) == [
            "ALPHA",
            "alpha",
            "alpha",
            "alpha",
        ]
        person.app.home.transcript.clear()
        await person.until(lambda: "no match" in bar(person))
        person.app.show(Notice("alpha anew"))
        await person.until(lambda: "1 of 1" in bar(person))
        assert highlighted(transcript_of(person)) == ["ALPHA"]


async def test_text_in_the_find_bar_answers_no_question(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        asked = person.app.run_worker(
            person.app.asking.approve(CommandProposed("ls", "Because"))
        )
        await person.until_asked()
        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        await person.type("y")
        await person.rest()
        await person.press("enter", "escape")
        await person.until(lambda: not person.app.query(FindBar))
        assert not asked.is_finished
        await person.answer("n")
        assert asked.is_finished


async def test_a_click_elsewhere_closes_the_bar(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.press("ctrl+f")
        await person.until(lambda: isinstance(person.app.focused, FindInput))
        await person.press("ctrl+f")  # there is one already
        assert len(person.app.query(FindBar)) == 1
        await person.pilot.click(Transcript, offset=(3, 3))
        await person.until(lambda: not person.app.query(FindBar))


async def test_a_folded_block_opens_for_a_match_and_folds_again() -> None:
    async with shown() as (transcript, pilot):
        one = block("one", "needle", *LINES)
        two = block("two", *LINES, "needle", sample=1, opening=Opening.SOME)
        three = block("three", "hay")
        for made in (one, two, three):
            transcript.add_foldable(made)
        await pilot.pause()
        transcript.find("needle")
        assert transcript.finder.position == (1, 2)
        assert (one.header.fold.opening, two.header.fold.opening) == (
            Opening.ALL,
            Opening.SOME,
        )
        transcript.finder.step(1)
        assert two.header.fold.opening is Opening.ALL
        assert highlighted(transcript) == ["needle", "NEEDLE"]
        transcript.finder.end()
        folds = [made.header.fold.opening for made in (one, two, three)]
        # the place that was looked at last stays
        assert folds == [Opening.HEADER, Opening.ALL, Opening.HEADER]
        assert highlighted(transcript) == []


async def test_a_match_far_above_comes_into_sight_and_new_text_keeps_it_there() -> None:
    async with shown(height=10) as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(300))
        await pilot.pause()
        transcript.find("line 17")  # and 170 to 179
        await pilot.pause()
        assert transcript.finder.position == (11, 11)
        transcript.finder.step(1)
        await pilot.pause()
        assert "│ line 17" in screen(transcript)
        before = screen(transcript)
        transcript.add(BlockKind.OUTPUT, "line 17 again")
        await pilot.pause()
        assert screen(transcript)[:-1] == before[:-1]
        transcript.finder.step(-1)
        assert transcript.finder.position == (12, 12)
        await pilot.pause()
        assert "│ line 17 again" in screen(transcript)


async def test_text_in_tables_and_of_any_width_is_found() -> None:
    async with shown(width=60) as (transcript, pilot):
        transcript.add(
            BlockKind.MARKDOWN,
            "| a | b |\n|---|---|\n| x | some needle |\n\n" + "words " * 30 + "needle",
        )
        await pilot.pause()
        transcript.find("NEEDLE")
        assert transcript.finder.position == (1, 2)
        assert highlighted(transcript) == ["NEEDLE", "needle"]
        await pilot.resize_terminal(30, 24)
        await pilot.pause()
        transcript.finder.step(1)
        assert transcript.finder.position == (2, 2)
        assert highlighted(transcript)[-1] == "NEEDLE"


@given(
    st.lists(st.text("aAbB.*(İß日 ", max_size=20), max_size=8),
    st.text("aAbB.*(İß日 ", min_size=1, max_size=3),
)
def test_every_place_is_found_once_and_lies_where_it_says(
    texts: list[str], wanted: str
) -> None:
    search = Search(wanted)
    search.look([TranscriptLine(text=text) for text in texts])
    places = [search.place(hit) for hit in search.hits]
    assert len(set(places)) == len(places)
    for place in places:
        assert place is not None
        assert re.fullmatch(
            re.escape(wanted), place.line.text[place.start : place.end], re.IGNORECASE
        )
    assert len(places) >= sum(text.count(wanted) for text in texts)


# --- what is new below


async def test_above_the_end_new_lines_are_counted_and_end_or_a_click_returns() -> None:
    async with shown() as (transcript, pilot):
        transcript.add(BlockKind.OUTPUT, numbered(60))
        await pilot.pause()
        transcript.scroll_page_up(animate=False)
        await pilot.pause()
        assert "↓" not in text(transcript)
        transcript.write("one\n\n")
        await pilot.pause()
        assert "↓ 2 new lines · End" in screen(transcript)[-1]
        transcript.write("two")
        transcript.settle()
        await pilot.pause()
        assert "↓ 4 new lines · End" in screen(transcript)[-1]
        await pilot.click(
            Transcript, offset=(transcript.size.width - 4, transcript.size.height - 1)
        )
        await pilot.pause()
        assert screen(transcript)[-1] == "two"
        assert "↓" not in text(transcript)


async def test_end_leads_back_while_the_prompt_is_empty(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.show(
            Answer("\n\n".join(f"paragraph {number}" for number in range(60)))
        )
        await person.pilot.pause()
        await person.press("pageup")
        person.app.show(Notice("the last"))
        await person.until(lambda: "new line" in person.screen)
        await person.type("ab")
        await person.press("home", "end", "c")  # in the prompt they are the prompt's
        assert (person.prompt.text, transcript_of(person).is_following) == (
            "abc",
            False,
        )
        await person.press("ctrl+u", "end")
        await person.until(lambda: "the last" in person.screen)
        assert transcript_of(person).is_following


async def test_opening_a_block_is_nothing_new() -> None:
    async with shown(height=10) as (transcript, pilot):
        transcript.add_foldable(block("above", *LINES * 3))
        transcript.add(BlockKind.OUTPUT, numbered(5))
        await pilot.pause()
        await pilot.click(Transcript, offset=(3, 0))
        await pilot.pause()
        assert "↓" not in text(transcript)
        transcript.add(BlockKind.NOTE, "new")
        await pilot.pause()
        assert "↓ 2 new lines" in text(transcript)


# --- places


def test_lines_of_files_are_seen_in_text() -> None:
    sources: dict[str, list[tuple[str, int]]] = {
        "src/a.py:12: error": [("src/a.py", 12)],
        "see (src/a.py:12) and b.txt:3.": [("src/a.py", 12), ("b.txt", 3)],
        '  File "src/a.py", line 31, in f': [("src/a.py", 31)],
        "at 12:30 or http://x.y:80/": [],
        "src/a.py:12:4": [("src/a.py", 12)],
        "a" * 8_000 + "/" * 8_000: [],
    }
    for source, found in sources.items():
        places = [(place.path, place.line) for place in file_places(source)]
        assert places == found, source[:80]


def test_addresses_are_seen_in_text() -> None:
    sources: dict[str, list[str]] = {
        "see https://a.org/x_(y)?q=1#z.": ["https://a.org/x_(y)?q=1#z"],
        "(https://a.org/x)": ["https://a.org/x"],
        "http://a.org/é;\x1b[31m": ["http://a.org/%C3%A9"],
        "javascript:alert(1) ftp://a.org file:///etc/passwd": [],
        "https://" + "a" * 3_000: [],
    }
    for source, found in sources.items():
        addresses = [place.address.partition("%1B")[0] for place in web_places(source)]
        assert addresses == found, source[:80]


def test_only_files_of_the_project_can_be_opened(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (tmp_path / "beside.py").touch()
    assert in_project(project, "src/a.py") is None
    (project / "src/a.py").touch()  # it has come since
    assert in_project(project, "src/a.py") == project / "src/a.py"
    for name in (
        "../beside.py",
        "/etc/passwd",
        "src",
        "x\0y",
        str(tmp_path / "beside.py"),
    ):
        assert in_project(project, name) is None


async def test_links_are_links_of_the_terminal_and_ctrl_click_opens_them(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person_at(sandbox) as person:
        opened = list[str]()
        monkeypatch.setattr(
            person.app, "open_url", lambda address, **_: opened.append(address)
        )
        person.app.show(Notice("日 see https://a.org/x, please"))
        await person.pilot.pause()
        transcript = transcript_of(person)
        y = next(y for y, row in enumerate(screen(transcript)) if "a.org" in row)
        links = {
            segment.text: segment.style.link
            for segment in transcript.render_line(y)
            if segment.style
        }
        assert links["https://a.org/x"] == "https://a.org/x"
        # the padding, and the wide character
        x = 1 + screen(transcript)[y].index("a.org") + 1
        await person.pilot.click(Transcript, offset=(x, y))
        await person.pilot.click(Transcript, offset=(2, y), control=True)
        assert opened == []
        await person.pilot.click(Transcript, offset=(x, y), control=True)
        assert opened == ["https://a.org/x"]


async def test_ctrl_click_on_a_line_of_a_file_asks_for_the_editor(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sandbox.root / "notes.txt").write_text("a\n")
    async with person_at(sandbox) as person:
        person.app.show(Notice("in notes.txt:7 and missing.txt:7"))
        await person.pilot.pause()
        transcript = transcript_of(person)
        y = next(y for y, row in enumerate(screen(transcript)) if "notes.txt" in row)
        underlined = [
            s.text for s in transcript.render_line(y) if s.style and s.style.underline
        ]
        assert underlined == ["notes.txt:7"]
        monkeypatch.setenv("EDITOR", "no-such-editor")
        monkeypatch.delenv("VISUAL", raising=False)
        said = list[str]()
        monkeypatch.setattr(person.app, "notify", lambda text, **_: said.append(text))
        await person.pilot.click(Transcript, offset=(8, y), control=True)
        await person.until(lambda: said)
        assert "EDITOR" in said.pop()
        monkeypatch.setenv("EDITOR", f"{sys.executable} -c pass")
        await person.pilot.click(Transcript, offset=(8, y), control=True)
        await person.until(lambda: said)  # a test's terminal cannot be lent
        assert "cannot run an editor" in said.pop()


def test_each_editor_gets_the_line_in_its_own_way() -> None:
    editors: dict[str, tuple[str, ...]] = {
        "vim": ("+7", "/p/a.py"),
        "/usr/bin/nano": ("+7", "/p/a.py"),
        "code": ("--goto", "/p/a.py:7"),
        "code.exe": ("--goto", "/p/a.py:7"),
        "hx": ("/p/a.py:7",),
        "something": ("/p/a.py",),
    }
    assert {name: at_line(name, Path("/p/a.py"), 7) for name in editors} == editors


# --- width


async def test_prose_keeps_a_reading_width_and_code_takes_all_the_room() -> None:
    async with shown(width=200) as (transcript, pilot):
        transcript.add(
            BlockKind.MARKDOWN, "word " * 60 + "\n\n```\n" + "code " * 35 + "\n```\n"
        )
        transcript.add(BlockKind.NOTE, "note " * 60)
        transcript.add(BlockKind.OUTPUT, "output " * 25)
        await pilot.pause()
        widths = {
            kind: max(len(row) for row in screen(transcript) if kind in row)
            for kind in ("word", "code", "note")
        }
        assert widths["word"] <= 100
        assert widths["note"] <= 100
        assert widths["code"] > 150
        assert max(len(row) for row in screen(transcript) if "output" in row) > 150
