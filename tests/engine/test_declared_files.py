"""Steps that declare files by lines, patterns and folders: the files that the model is
shown and may change, and the steps that can run at the same time.
"""

from dataclasses import dataclass
from pathlib import Path

from cdd_agent.events.step_events import AttemptFailed, ChangesApplied, StepStarted
from cdd_agent.files.line_ranges import describe_ranges
from cdd_agent.tickets.declared_files import MOST_MATCHES
from tests.engine.test_engine import of
from tests.engine.test_prompt import prompt_of, shown
from tests.engine.together import Together, carried_out, project_in
from tests.engine.tool_steps import calls, replace
from tests.support.pictures import png
from tests.support.projects import Sandbox, Step, check, run_all, says
from tests.support.tables import each_row


def write_files(root: Path, *names: str, text: str = "x = 1\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n{text}")


PROJECT = (
    "src/calc.py",
    "src/util.py",
    "src/deep/test_calc.py",
    "src/.env",
    "src/noise.log",
    "app/[id]/page.tsx",
    "my docs/größe.md",
    "other.py",
)
IN_SRC = {"src/calc.py", "src/util.py", "src/deep/test_calc.py"}
FIXED = "# src/calc.py\nx = 2"


@dataclass(frozen=True)
class Form:
    """A way in which a plan names files."""

    path: str
    shown: set[str]
    reply: str
    """A file that the reply gives."""
    is_declared: bool = True
    is_carried_out: bool = True


@each_row(
    "form",
    [
        Form("src/calc.py", {"src/calc.py"}, "src/calc.py"),
        Form("./src/calc.py", {"src/calc.py"}, "src/calc.py"),
        Form(r"src\calc.py", {"src/calc.py"}, "src/calc.py"),
        Form("src/calc.py:1-2", {"src/calc.py"}, "src/calc.py"),
        Form("src/calc.py#L1-L2", {"src/calc.py"}, "src/calc.py"),
        Form("@src/calc.py", {"src/calc.py"}, "src/calc.py"),
        Form("file://ROOT/src/calc.py", {"src/calc.py"}, "src/calc.py"),
        Form("ROOT/src/calc.py", {"src/calc.py"}, "src/calc.py"),
        Form("src/", IN_SRC, "src/calc.py"),
        Form("src", IN_SRC, "src/util.py"),
        Form("ROOT/src/", IN_SRC, "src/calc.py"),
        Form("src/", IN_SRC, "src/new/file.py"),
        Form("src/*.py", {"src/calc.py", "src/util.py"}, "src/calc.py"),
        Form("src/*.py", {"src/calc.py", "src/util.py"}, "src/new.py"),
        Form("src/**/*.py", IN_SRC, "src/deep/test_calc.py"),
        Form("**/test_*.py", {"src/deep/test_calc.py"}, "tests/test_new.py"),
        Form("src/{calc,util}.py", {"src/calc.py", "src/util.py"}, "src/util.py"),
        # nothing is declared yet: the model is shown the code that the step is about
        Form("lib/*.py", {*IN_SRC, "other.py"}, "lib/new.py"),
        Form("lib/", set(), "lib/new.py"),
        Form("app/[id]/page.tsx", {"app/[id]/page.tsx"}, "app/[id]/page.tsx"),
        Form("app/[id]/*.tsx", {"app/[id]/page.tsx"}, "app/[id]/new.tsx"),
        Form("my docs/größe.md", {"my docs/größe.md"}, "my docs/größe.md"),
        Form("my docs/", {"my docs/größe.md"}, "my docs/übung.md"),
        Form("src/.env", set(), "src/.env", True, False),
        Form("src/.env.new", set(), "src/.env.new"),
        # what the step does not declare
        Form("src/*.py", {"src/calc.py", "src/util.py"}, "src/a.txt", False),
        Form("src/", IN_SRC, "new.py", False),
        Form("src/", IN_SRC, "src/.env", False, False),
        Form("src/*.py", {"src/calc.py", "src/util.py"}, "other.py", False, False),
    ],
    ids=lambda form: f"{form.path} for {form.reply}",
)
async def test_a_step_is_carried_out_however_its_plan_names_the_files(
    sandbox: Sandbox, form: Form
) -> None:
    write_files(sandbox.root, *PROJECT)
    (sandbox.root / ".gitignore").write_text("*.log\n")
    path = form.path.replace("ROOT", str(sandbox.root))
    sandbox.write(Step(path, "none"))
    assert shown(prompt_of(sandbox)) == form.shown
    sandbox.replies(says(form.reply, f"# {form.reply}\nx = 2"))
    events = await run_all(sandbox)
    assert sandbox.statuses() == ["completed" if form.is_carried_out else "failed"]
    for applied in of(ChangesApplied, events):
        assert applied.undeclared == (() if form.is_declared else (form.reply,))


async def test_a_place_in_a_file_costs_no_attempt(sandbox: Sandbox) -> None:
    write_files(sandbox.root, "src/calc.py")
    sandbox.write(Step("src/calc.py:1-2", check("src/calc.py", "x = 2")))
    sandbox.replies(says("src/calc.py", FIXED))
    events = await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert not of(AttemptFailed, events)
    (applied,) = of(ChangesApplied, events)
    assert applied.undeclared == ()


@each_row(
    ("path", "lines"),
    [
        ("src/calc.py", ""),
        ("src/calc.py:2", "line 2"),
        ("src/calc.py:3-9", "lines 3 to 9"),
        ("./src/calc.py#L9-L3", "lines 3 to 9"),
        ("src/", ""),
    ],
)
def test_the_prompt_names_the_lines_to_look_at(
    sandbox: Sandbox, path: str, lines: str
) -> None:
    write_files(sandbox.root, "src/calc.py", text="x = 1\n" * 20)
    text = prompt_of(sandbox.write(Step(path))).text
    assert (f"Look at {lines} of src/calc.py." in text) is bool(lines)
    assert ("Look at" in text) is bool(lines)


@each_row("lines", [((1_000, 1_020),), ((4_000, 4_000),), ((300, 310), (5_000, 5_010))])
def test_of_a_file_that_does_not_fit_the_lines_to_look_at_are_shown(
    sandbox: Sandbox, lines: tuple[tuple[int, int], ...]
) -> None:
    write_files(sandbox.root, "big.py", text="x = 1\n" * 6_000)
    places = [f"big.py:{first}-{last}" for first, last in lines]
    sandbox.write(Step(places[0], also=tuple(f"`{place}`" for place in places[1:])))
    prompt = prompt_of(sandbox, 8_000)
    parts = prompt.shown.in_part["big.py"]
    for first, last in lines:
        assert any(start <= first and last <= end for start, end in parts), (
            describe_ranges(parts)
        )


@each_row("place", ["big.py:5-6000", "big.py:5-999999999"])
def test_of_lines_that_do_not_fit_the_first_are_shown(
    sandbox: Sandbox, place: str
) -> None:
    write_files(sandbox.root, "big.py", text="x = 1\n" * 6_000)
    ((first, last),) = prompt_of(sandbox.write(Step(place)), 8_000).shown.in_part[
        "big.py"
    ]
    assert first <= 5
    assert last > 100


def test_files_are_listed_below_their_pattern(sandbox: Sandbox) -> None:
    write_files(sandbox.root, *PROJECT)
    more = ("`src/deep/`", "`other.py` (the rest)", "`lib/*.py`", "`docs/` (new)")
    text = prompt_of(sandbox.write(Step("src/*.py", also=more))).text
    listed = text[text.index("Files of this step:") :]
    assert listed.split("\n\n")[0] == (
        "Files of this step:\n"
        "- src/*.py:\n"
        "  - src/calc.py\n"
        "  - src/util.py\n"
        "- src/deep/:\n"
        "  - src/deep/test_calc.py\n"
        "- other.py (the rest)\n"
        "- lib/*.py: no file matches yet\n"
        "- docs/ (new)"
    )


def test_no_declaration_shows_a_file_that_may_hold_secrets(sandbox: Sandbox) -> None:
    write_files(sandbox.root, "conf/.env", "conf/server.pem", "conf/a.py")
    assert shown(prompt_of(sandbox.write(Step("conf/")))) == {"conf/a.py"}
    assert shown(prompt_of(sandbox.write(Step("conf/*")))) == {"conf/a.py"}
    both = Step("conf/", also=("`conf/.env`",))
    assert shown(prompt_of(sandbox.write(both))) == {"conf/a.py"}


def test_a_file_in_a_folder_that_is_no_text_is_named(sandbox: Sandbox) -> None:
    write_files(sandbox.root, "assets/a.css")
    (sandbox.root / "assets/logo.png").write_bytes(png())
    (sandbox.root / "assets/font.bin").write_bytes(b"\x00\xff")
    (sandbox.root / "assets/huge.js").write_text("x" * 1_100_000)
    prompt = prompt_of(sandbox.write(Step("assets/")))
    assert shown(prompt) == {"assets/a.css"}
    assert not prompt.request.messages[-1].pictures
    (note,) = prompt.notes
    for name in ("assets/logo.png", "assets/font.bin", "assets/huge.js"):
        assert name in note
        assert f"\n  - {name}" in prompt.text


def test_a_large_folder_is_shown_as_far_as_there_is_room(sandbox: Sandbox) -> None:
    names = [f"many/{number:04}.py" for number in range(1_500)]
    (sandbox.root / "many").mkdir()
    for name in names:
        (sandbox.root / name).write_text(f"# {name}\n" + "x = 1\n" * 300)
    sandbox.write(Step("many/"))
    sizes = {}
    for window in (None, 100_000, 16_000):
        prompt = prompt_of(sandbox, window)
        files = shown(prompt)
        assert files < set(names[:MOST_MATCHES])
        *in_part, not_shown, not_listed = prompt.notes
        assert len(in_part) == len(prompt.shown.in_part) <= 1
        assert f"{MOST_MATCHES - len(files) - len(in_part)} files" in not_shown
        assert f"{1_500 - MOST_MATCHES:,}" in not_listed
        sizes[window] = len(files)
    assert sizes[None] >= sizes[100_000] > sizes[16_000] > 1
    assert len(prompt_of(sandbox).text) < 300_000


def test_files_that_the_user_leaves_out_are_not_shown_for_a_folder(
    sandbox: Sandbox,
) -> None:
    write_files(sandbox.root, "src/a.py", "src/gen/b.py")
    sandbox.write(Step("src/"))
    engine = sandbox.engine()
    record = engine.run.record
    record.save_choices(record.choices.leave_out("src/gen"))
    engine.close()
    prompt = prompt_of(sandbox, choices=record.choices)
    assert shown(prompt) == {"src/a.py"}


async def test_a_file_of_a_folder_that_was_not_shown_is_shown_after_it_was_missed(
    sandbox: Sandbox,
) -> None:
    names = [f"many/{number:03}.py" for number in range(200)]
    write_files(sandbox.root, *names, text="x = 1\n" * 300)
    sandbox.write(Step("many/", check("many/199.py", "x = 2")))
    sandbox.replies(*[says("many/199.py", "# many/199.py\nx = 2")] * 2)
    await run_all(sandbox, 2)
    first, second = (request.messages[-1].content for request in sandbox.model.requests)
    assert "# many/199.py\n" not in first
    assert "# many/199.py\n" in second


async def test_a_folder_that_goes_is_not_read_and_can_be_deleted(
    sandbox: Sandbox,
) -> None:
    write_files(sandbox.root, "old/a.py", "old/b.py", "keep/c.py")
    sandbox.write(Step("keep/c.py", "none", also=("`old/` (deleted)", "`keep/`")))
    prompt = prompt_of(sandbox)
    assert shown(prompt) == {"keep/c.py"}
    assert "  - old/a.py" in prompt.text
    deletions = "".join(
        f"```diff\n--- a/old/{name}.py\n+++ /dev/null\n```\n" for name in "ab"
    )
    await run_all(sandbox.replies(deletions))
    assert sandbox.statuses() == ["completed"]
    assert not list((sandbox.root / "old").glob("*"))


@each_row("path", ["a.txt", "lib/", "lib/*.py", "src/", "src/*.py"])
async def test_a_step_that_declares_files_is_not_done_by_words(
    sandbox: Sandbox, path: str
) -> None:
    write_files(sandbox.root, "src/a.py")
    sandbox.write(Step(path, "none"))
    await run_all(sandbox.replies("I have done it."))
    assert sandbox.statuses() == ["failed"]


async def test_a_folder_of_pictures_can_be_answered_in_words(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "assets").mkdir()
    (sandbox.root / "assets/a.png").write_bytes(png())
    sandbox.write(Step("assets/", "python -c pass"))
    await run_all(sandbox.replies("They are fine."))
    assert sandbox.statuses() == ["completed"]


@each_row(("path", "can_find"), [(None, True), ("src/a.py", False), ("src/", True)])
async def test_a_model_with_tools_can_search_unless_each_file_is_named(
    sandbox: Sandbox, path: str | None, *, can_find: bool
) -> None:
    write_files(sandbox.root, "src/a.py")
    sandbox.flags = {"tool_calls": "on"}
    sandbox.write(Step(path, "none"))
    await run_all(sandbox.replies(says("src/a.py", "x = 2")))
    names = {tool.name for tool in sandbox.model.requests[0].tools}
    assert ("find_code" in names) is can_find


async def test_tools_may_change_ignored_files_of_a_folder_that_the_step_names(
    sandbox: Sandbox,
) -> None:
    write_files(sandbox.root, "build/a.py")
    (sandbox.root / ".gitignore").write_text("build/\n")
    sandbox.flags = {"tool_calls": "on"}
    sandbox.write(Step("build/", check("build/a.py", "x = 2")))
    sandbox.replies(calls(replace("build/a.py", "x = 1", "x = 2")), "Done.")
    await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]


@each_row(
    ("first", "second", "together"),
    [
        ("a/x.py", "b/x.py", True),
        ("a/", "b/", True),
        ("a/", "a/x.py", False),
        ("a", "a/x.py", False),
        ("a/*.py", "b/*.py", True),
        ("a/*.py", "a/x.py", False),
        ("**/*.md", "a/x.py", True),
        ("**/*.py", "a/x.py", False),
        ("a/", "./a/deep/*.py", False),
    ],
    most=3,
)
async def test_steps_that_may_touch_one_file_do_not_run_at_the_same_time(
    tmp_path: Path, first: str, second: str, *, together: bool
) -> None:
    sandbox = project_in(tmp_path)
    write_files(sandbox.root, "a/x.py", "b/x.py")
    sandbox.write(Step(first, "none"), Step(second, "none"))
    model = Together({1: says("one.txt", "1"), 2: says("two.txt", "2")}, at_once=1)
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    beside = [event.step for event in of(StepStarted, events) if event.side_tree]
    assert sorted(beside) == ([1, 2] if together else [])
