"""A step's prompt: the step first, then what there is room for, each file whole or only
named.
"""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.engine.choices import Choices
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.prompt import (
    LAST_REPLY,
    FailedAttempt,
    PromptInputs,
    StepPrompt,
    build_prompt,
)
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ContextTooLong, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.project.rules import RULES_FOR_AGENTS
from cdd_agent.tickets.plan import MayFail
from cdd_agent.tickets.status import StepStatus
from tests.support.listening import collect
from tests.support.projects import SPEC, Sandbox, Step, check, noticed, says
from tests.support.tables import each_row

OWN = "own.py"

RULE = "Use tabs."

BIG = "x = 1\n" * 2_000
"""A file of 12,000 bytes, 4,000 tokens."""


def prompt_of(
    sandbox: Sandbox, window: int | None = None, **more: object
) -> StepPrompt:
    engine: Engine = sandbox.engine()
    try:
        step = engine.run.next_step
        assert step is not None
        return build_prompt(
            PromptInputs(
                sandbox.root,
                engine.run.spec,
                engine.run.plan,
                engine.run.state,
                step,
                window=window,
                private_paths=engine.run.own,
                code=engine.run.code,
                **more,  # type: ignore[arg-type]
            )
        )
    finally:
        engine.close()


@pytest.fixture
def busy(sandbox: Sandbox) -> Sandbox:
    """A step with a file of its own, one that its check names, and one that its
    description names.
    """
    for name in ("own.py", "checked.py", "named.py"):
        (sandbox.root / name).write_text(BIG + f"# {name}\n")
    step = Step(
        "own.py",
        "python checked.py",
        description="Do as `named.py` does, and `not-there.py`.",
    )
    return sandbox.write(step)


def shown(prompt: StepPrompt) -> set[str]:
    """Those that are there whole."""
    return {
        path for path in prompt.shown.files if f"# {path}" in prompt.text
    } - prompt.shown.in_part.keys()


def test_without_a_bound_all_of_it_is_there(busy: Sandbox) -> None:
    prompt = prompt_of(busy)
    assert shown(prompt) == {"own.py", "checked.py", "named.py"}
    assert prompt.left_out == ()
    listing = next(
        part
        for part in prompt.text.split("\n# ")
        if part.startswith("Files of the project")
    )
    assert "\nchecked.py\n" in listing
    assert "tickets" not in listing


@each_row(
    ("window", "there", "in_part"),
    [
        (None, {"own.py", "checked.py", "named.py"}, set[str]()),
        (24_000, {"own.py", "checked.py", "named.py"}, set[str]()),
        (14_000, {"own.py", "checked.py"}, {"named.py"}),
        (9_000, {"own.py"}, {"checked.py", "named.py"}),
        (4_000, set[str](), {"own.py", "checked.py", "named.py"}),
        (2_600, set[str](), {"own.py"}),
    ],
)
def test_what_matters_most_goes_first_and_the_rest_is_there_in_part(
    busy: Sandbox, window: int | None, there: set[str], in_part: set[str]
) -> None:
    prompt = prompt_of(busy, window)
    assert shown(prompt) == there
    assert prompt.shown.in_part.keys() >= in_part
    assert {
        note.partition(" ")[0] for note in prompt.notes
    } == prompt.shown.in_part.keys()
    left_out = {"own.py", "checked.py", "named.py"} - prompt.shown.files.keys()
    assert {
        name.partition(" ")[0]
        for name in prompt.left_out
        if name.partition(" ")[0].endswith(".py")
    } == left_out
    assert all(f"- {name}" in prompt.text for name in prompt.left_out)
    if window is None:
        return
    assert estimate_prompt(prompt.request) < window * 3 / 4 + 200
    assert f"Make {OWN}" in prompt.text


def test_what_counts_as_shown_is_what_is_in_the_prompt(busy: Sandbox) -> None:
    for window in range(3_000, 26_000, 4_000):
        prompt = prompt_of(busy, window)
        lines = 0
        for name in ("own.py", "checked.py", "named.py"):
            whole, ranges = (
                f"{name}:\n```py\n{BIG}# {name}\n```",
                prompt.shown.in_part.get(name),
            )
            assert (whole in prompt.text) is (
                name in prompt.shown.files and ranges is None
            )
            if ranges is None:
                lines += 2_000 * (name in prompt.shown.files)
                continue
            of_it = (BIG + f"# {name}\n").splitlines()
            for first, last in ranges:
                part = "\n".join(of_it[first - 1 : last])
                assert f"lines {first} to {last}:\n```py\n{part}\n```" in prompt.text
                lines += part.count("x = 1")
        assert prompt.text.count("x = 1") == lines


def test_the_projects_rules_are_there_unless_there_is_no_room(busy: Sandbox) -> None:
    (busy.root / "AGENTS.md").write_text(f"{RULE}\n" * 1_500)
    prompt = prompt_of(busy)
    assert f"## AGENTS.md\n\n{RULE}" in prompt.request.messages[0].content
    narrow = prompt_of(busy, 4_000)
    assert RULE not in narrow.text
    assert RULES_FOR_AGENTS in narrow.left_out
    assert f"- {RULES_FOR_AGENTS}" in narrow.text


async def test_people_are_told_what_the_model_does_not_see(busy: Sandbox) -> None:
    busy.flags = {"context_window": 9_000}
    events = await run_once(busy.replies(says("own.py", "new")))
    told = [
        event.text
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.NOT_SENT
    ]
    assert [text.partition(" ")[0] for text in told] == ["checked.py", "named.py"]
    assert all("in part (lines " in text for text in told)


async def test_a_file_that_was_shown_in_part_cannot_be_replaced_whole(
    busy: Sandbox,
) -> None:
    busy.flags = {"context_window": 4_000}
    (failed,) = [
        e
        for e in await run_once(busy.replies(says("own.py", "new")))
        if isinstance(e, StepFinished)
    ]
    assert failed.status is StepStatus.FAILED
    assert "own.py" in (failed.error or "")
    assert busy.text("own.py").startswith(BIG)


async def test_what_does_not_fit_at_all_costs_nothing(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt"), description="Word. " * 2_000))
    sandbox.flags = {"context_window": 4_000}
    engine = sandbox.replies(says("a.txt", "good")).engine()
    events = await collect(engine.run_all())
    engine.close()
    assert sandbox.model.requests == []
    (finished,) = [event for event in events if isinstance(event, StepFinished)]
    assert finished.status is StepStatus.PENDING
    assert isinstance(engine.stopped_by, ContextTooLong)
    assert "4,000 tokens" in engine.stopped_by.message


async def test_a_long_failed_reply_makes_room_for_the_reason(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    sandbox.flags = {"context_window": 5_000}
    sandbox.replies(says("a.txt", "bad\n" * 3_000), says("a.txt", "good"))
    engine = sandbox.engine()
    await collect(engine.run_all(attempts=2))
    engine.close()
    assert sandbox.statuses() == ["completed"]
    asked = sandbox.prompt(1)
    assert "exit code" in asked
    assert "```text:a.txt" not in asked
    assert LAST_REPLY in asked


def test_rules_that_are_too_long_do_not_take_the_last_reply_along(
    busy: Sandbox,
) -> None:
    (busy.root / "AGENTS.md").write_text(f"{RULE}\n" * 1_500)
    prompt = prompt_of(
        busy, 4_000, failed=FailedAttempt("It was wrong.", "I did this.")
    )
    assert RULES_FOR_AGENTS in prompt.left_out
    assert "I did this." in prompt.text
    assert LAST_REPLY not in prompt.left_out


async def test_the_work_of_steps_that_it_depends_on_is_shown(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("base.txt", check("base.txt")),
        Step("other.txt", check("other.txt")),
        Step("a.txt", depends="Step 1"),
    )
    sandbox.replies(
        says("base.txt", "good base"),
        says("other.txt", "good other"),
        says("a.txt", "good"),
    )
    await run_once(sandbox)
    assert "good base" in sandbox.prompt(2)
    assert "good other" not in sandbox.prompt(2)


async def test_secrets_that_a_description_names_stay_unseen(sandbox: Sandbox) -> None:
    (sandbox.root / ".env").write_text("KEY=hush\n")
    (sandbox.root / "prod.env").write_text("KEY=hush\n")
    prompt = prompt_of(
        sandbox.write(
            Step(
                "a.txt",
                description="Read `prod.env` and `.env`, `../x.py`, `/etc/passwd.x`.",
            )
        )
    )
    assert "hush" not in prompt.text


async def test_what_stays_the_same_comes_first_and_is_the_same_to_the_byte(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")), spec=SPEC
    )
    await run_once(sandbox.replies(says("a.txt", "good"), says("b.txt", "good")))
    first, second = sandbox.model.requests
    assert first.messages[0] == second.messages[0]
    assert first.messages[1] != second.messages[1]


async def run_once(sandbox: Sandbox) -> list[Event]:
    engine = sandbox.engine()
    try:
        return await collect(engine.run_all())
    finally:
        engine.close()


def test_folders_and_files_that_cannot_be_shown_are_named(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00")
    prompt = prompt_of(sandbox.write(Step("dir", also=("data.bin", "new.txt"))))
    for name in ("- dir/:", "data.bin", "new.txt"):
        assert f"\n{name} " in prompt.text
    assert [note.split()[0] for note in prompt.notes] == ["data.bin"]
    assert "binary" in prompt.notes[0]
    assert "dir" not in prompt.shown.files
    assert prompt.shown.files == {"new.txt": None}


def test_it_never_has_more_than_the_window_whatever_is_left_out(
    sandbox: Sandbox,
) -> None:
    there = [f"src/some/folder/module_{number:03}.py" for number in range(60)]
    (sandbox.root / "src/some/folder").mkdir(parents=True)
    for number, path in enumerate(there):
        (sandbox.root / path).write_text(f"# {path}\n" + "x = 1\n" * 16 * number)
    missing = [f"src/some/folder/new_module_{number:03}.py" for number in range(60)]
    sandbox.write(Step("a.txt", also=(*there, "src", *missing)))
    fitting = 0
    for window in (1_000, 4_000, 10_000, 20_000, 40_000, 100_000):
        try:
            prompt = prompt_of(sandbox, window)
        except ContextTooLong:
            continue
        fitting += 1
        assert estimate_prompt(prompt.request) + min(8_192, window // 4) <= window
        for path in there:
            text, is_whole = (
                (sandbox.root / path).read_text(),
                path in prompt.shown.files.keys() - prompt.shown.in_part,
            )
            assert (f"{path}:\n```py\n{text}```" in prompt.text) is is_whole
    assert fitting > 3


@each_row("window", [5_000, 8_000, 16_000, 32_000])
@each_row(
    "sizes",
    [(9_000, 100, 100), (*[9_000] * 6, 100), (900, 900, 100, 9_000)],
    is_sparse=True,
)
@each_row("order", [1, -1], is_sparse=True)
def test_a_file_that_is_cut_hides_no_other_and_all_that_is_left_out_is_named(
    sandbox: Sandbox, window: int, sizes: tuple[int, ...], order: int
) -> None:
    paths = {f"file_{number}.py": size for number, size in enumerate(sizes)}
    for path, size in paths.items():
        (sandbox.root / path).write_text(f"# {path}\n" + "x = 1\n" * size)
    first, *others = list(paths)[::order]
    guidance = f"As in `{others.pop()}`."
    sandbox.write(Step(first, also=tuple(others)))
    prompt = prompt_of(sandbox, window, guidance=guidance)
    for path, size in paths.items():
        if size == 100:
            assert path in shown(prompt), path
        if path not in prompt.shown.files:
            assert path in " ".join((*prompt.left_out, *prompt.notes))


async def test_tools_have_their_room_in_the_window_too(sandbox: Sandbox) -> None:
    for number in range(40):
        (sandbox.root / f"file_{number}.py").write_text("x = 1\n" * 200)
    sandbox.write(
        Step(
            "a.txt",
            check("a.txt"),
            also=tuple(f"file_{number}.py" for number in range(40)),
        )
    )
    for window in (8_000, 12_000, 16_000):
        sandbox.flags = {"context_window": window, "tool_calls": "on"}
        engine = sandbox.replies("Nothing to do.").engine()
        await collect(engine.run_all())
        engine.close()
        request = sandbox.model.requests[0]
        assert request.tools
        assert estimate_prompt(request) <= window * 0.8  # the rest is for the reply


async def test_where_there_is_no_room_for_tools_the_model_is_asked_without(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    sandbox.flags = {"context_window": 1_800}
    unused = ScriptedReply("", tool_calls=(ToolCall("1", "list_files", "{}"),))
    events = await run_once(sandbox.replies(says("a.txt", "good"), unused))
    assert not sandbox.model.requests[0].tools
    assert NoticeKind.NO_TOOLS in noticed(events)
    assert sandbox.statuses() == ["completed"]


@each_row("name", [".env", "link.txt"])
def test_secrets_are_not_shown_because_an_attempt_met_them(
    sandbox: Sandbox, name: str
) -> None:
    (sandbox.root / ".env").write_text("TOKEN=very-secret\n")
    (sandbox.root / "link.txt").symlink_to(".env")
    sandbox.write(Step("a.txt", description="As in `link.txt`."))
    prompt = prompt_of(sandbox, missed_files={name: ()})
    assert "very-secret" not in prompt.text
    sandbox.write(Step(".env"))
    prompt = prompt_of(sandbox, choices=Choices().pin(".env"))
    assert "very-secret" in prompt.text


NAMED = (
    ".flake8",
    "Makefile",
    "LICENSE",
    "CHANGES",
    "setup.cfg",
    "src/shop/cart.py",
    "bin/deploy",
)


@pytest.fixture
def shop(sandbox: Sandbox) -> Sandbox:
    """A project with files of all kinds of names; each says what it is called."""
    for path in (*NAMED, "src/a/util.py", "src/b/util.py"):
        (sandbox.root / path).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.root / path).write_text(f"# {path}\n")
    return sandbox


@each_row("path", NAMED)
@each_row("words", ["Remove `{}`.", "Say it in `{}` too.", "Change {}."])
def test_a_file_that_the_step_speaks_of_is_shown(
    shop: Sandbox, words: str, path: str
) -> None:
    assert shown(
        prompt_of(shop.write(Step("a.txt", description=words.format(path))))
    ) == {path}


def test_names_count_in_the_title_in_notes_and_in_guidance_and_short_ones_too(
    shop: Sandbox,
) -> None:
    shop.write(Step("a.txt", also=("new.txt (split from cart.py)",)))
    assert shown(prompt_of(shop)) == {"src/shop/cart.py"}
    with_guidance = prompt_of(shop, guidance="Look at LICENSE.")
    assert shown(with_guidance) == {"src/shop/cart.py", "LICENSE"}
    shop.write(Step("Makefile", description="As `shop/cart.py`."))
    assert shown(prompt_of(shop)) == {"Makefile", "src/shop/cart.py"}


def test_one_that_git_ignores_is_shown_if_it_is_named_whole(shop: Sandbox) -> None:
    (shop.root / ".gitignore").write_text("bin/\n")
    shop.write(Step("a.txt", description="See `bin/deploy`."))
    assert shown(prompt_of(shop)) == {"bin/deploy"}
    assert (
        shown(prompt_of(shop.write(Step("a.txt", description="See `deploy`."))))
        == set()
    )


def test_what_cannot_be_shown_is_told_and_hides_nothing_after_it(shop: Sandbox) -> None:
    (shop.root / "huge.json").write_text(f'"{"x" * 300_000}"\n')
    (shop.root / "logo.bmp").write_bytes(b"BM\xff\0")
    (shop.root / ".env").write_text("KEY=hush\n")
    named = "`huge.json`, `logo.bmp`, `.env`, `util.py`, `Makefile`"
    prompt = prompt_of(
        shop.write(Step("a.txt", description=f"See {named}, then `setup.cfg`."))
    )
    assert shown(prompt) == {"Makefile", "setup.cfg"}
    told = {note.split(" is ")[0]: note for note in prompt.notes}
    assert told.keys() == {"huge.json", "logo.bmp", ".env", "util.py"}
    assert {"src/a/util.py", "src/b/util.py"} <= set(
        re.findall(r"[\w/.]+\.py", told["util.py"])
    )
    for name in ("huge.json", "logo.bmp", ".env", "util.py"):
        assert f"\n{name} " in prompt.text
    assert "hush" not in prompt.text


def test_a_large_one_that_is_named_is_shown_and_so_is_what_comes_after(
    shop: Sandbox,
) -> None:
    for name in ("one.py", "two.py", "three.py"):
        (shop.root / name).write_text("x = 1\n" * 15_000 + f"# {name}\n")
    shop.write(
        Step("a.txt", description="See `one.py`, `two.py`, `three.py` and `setup.cfg`.")
    )
    prompt = prompt_of(shop)
    assert shown(prompt) == {"one.py", "two.py", "setup.cfg"}
    (note,) = prompt.notes
    assert note.startswith("three.py ")
    assert "90,011" in note
    assert prompt.shown.in_part.keys() == {"three.py"}
    small = prompt_of(shop, 20_000)
    assert shown(small) == {"setup.cfg"}
    assert small.shown.in_part.keys() == {"one.py", "two.py", "three.py"}


def test_a_name_that_several_have_means_the_one_that_is_shown(shop: Sandbox) -> None:
    shop.write(Step("src/a/util.py", description="Change `util.py`."))
    assert (shown(prompt_of(shop)), prompt_of(shop).notes) == ({"src/a/util.py"}, ())
    shop.write(Step("a.txt", description="First `util.py`, I mean `b/util.py`."))
    assert (shown(prompt_of(shop)), prompt_of(shop).notes) == ({"src/b/util.py"}, ())


def test_what_is_gits_or_ours_is_no_file_of_the_project(shop: Sandbox) -> None:
    for path in (".git/config", ".cdd/runs/x/log.txt"):
        (shop.root / path).parent.mkdir(parents=True, exist_ok=True)
        (shop.root / path).write_text(f"# {path}\n")
    step = Step(
        "a.txt",
        description=(
            "See `.git/config`, `.cdd/runs/x/log.txt`, `plan.md`, `spec.yaml`, `src`,"
            " `.`."
        ),
    )
    assert shown(prompt_of(shop.write(step))) == set()


async def test_the_large_work_of_a_step_before_hides_no_other(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("big.txt", "none", also=("small.txt",)), Step("a.txt", depends="Step 1")
    )
    both = says("big.txt", "big\n" * 20_000) + says("small.txt", "# small.txt")
    await run_once(sandbox.replies(both, says("a.txt", "good")))
    assert "# small.txt\n```" in sandbox.prompt(1)
    assert "big.txt, in part (it has 20,001 lines" in sandbox.prompt(1)


def test_what_the_plan_says_about_tests_is_shown(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    fields = {
        "none": (replace(step, removes_tests=()), "weaken: none"),
        "tests": (
            replace(step, removes_tests=("tests/test_a.py", "test_b")),
            "weaken: tests/test_a.py, test_b",
        ),
        "leave": (
            replace(step, may_fail=(MayFail("test_c"), MayFail("d.py", "3"))),
            "pass yet: test_c, d.py (until step 3)",
        ),
    }
    run = engine.run
    for other, words in fields.values():
        text = build_prompt(
            PromptInputs(sandbox.root, run.spec, run.plan, run.state, other)
        ).text
        assert words in text
    text = build_prompt(
        PromptInputs(sandbox.root, run.spec, run.plan, run.state, step)
    ).text
    assert "this step may remove" not in text
    engine.close()


def test_other_sections_of_the_plan_are_in_the_prompt_where_there_is_room(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    plan = sandbox.ticket / "plan.md"
    notes = "## Decisions\n\nTimes are UTC." + " More words." * 2_000
    plan.write_text(f"{plan.read_text()}\n\n{notes}\n")
    assert "Times are UTC." in prompt_of(sandbox).text
    small = prompt_of(sandbox, 4_000)
    assert "the other sections of the plan" in small.left_out
