"""Code that a prompt shows without being told its name: found for the step, shown in
part, followed after a failure.
"""

import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from threading import Event as Flag

import pytest

from cdd_agent.changes.model import ReplyFault
from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.places import RankedFile
from cdd_agent.context.query import Query
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.prompt import (
    LAST_FAILED,
    FailedAttempt,
    PromptInputs,
    StepPrompt,
    build_prompt,
)
from cdd_agent.engine.related_code import MOST
from cdd_agent.events.dialogue_events import PromptMade, ReplyFinished
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.events.stream import Event
from cdd_agent.llm.token_estimates import estimate_prompt, estimate_tokens
from cdd_agent.tickets.status import StepStatus
from tests.engine.tool_steps import answers, calls, finished, problems, replace, run
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, noticed
from tests.support.tables import each_row

FILLING = "".join(
    f"def filling_{number}(value):\n    return value + {number}\n\n\n"
    for number in range(150)
)
LIMITER = '''\
class RateLimiter:
    """Counts the calls of each client and refuses those over the limit."""

    def __init__(self, limit):
        self.limit = limit
        self.calls = {}

    def allows(self, client):
        self.calls[client] = self.calls.get(client, 0) + 1
        return self.calls[client] < self.limit
'''
WANTED = Step(
    None,
    description=(
        "The rate limiter refuses the last call that a client is allowed. Let it"
        " through."
    ),
)


def edit(path: str, find: str, new: str) -> str:
    return f"Here.\n\n{path}\n<<<<<<< SEARCH\n{find}\n=======\n{new}\n>>>>>>> REPLACE\n"


FIXED = edit(
    "src/traffic.py",
    "        return self.calls[client] < self.limit",
    "        return self.calls[client] <= self.limit",
)


@pytest.fixture
def service(sandbox: Sandbox) -> Sandbox:
    """A service whose rate limiter is in the middle of a large file."""
    for path, text in {
        "src/traffic.py": (
            FILLING + LIMITER + "\n\n" + FILLING.replace("filling", "more")
        ),
        "src/mail.py": "def send(letter):\n    print(letter)\n",
        "src/big_other.py": FILLING.replace("filling", "other"),
        "tests/test_traffic.py": (
            "from src.traffic import RateLimiter\n\n\ndef test_limit():\n"
            "    limiter = RateLimiter(1)\n    assert limiter.allows('a')\n"
        ),
    }.items():
        (sandbox.root / path).parent.mkdir(exist_ok=True)
        (sandbox.root / path).write_text(text)
    return sandbox


def prompt_of(
    sandbox: Sandbox, window: int | None = None, **more: object
) -> StepPrompt:
    engine = sandbox.engine()
    try:
        run_, step = engine.run, engine.run.next_step
        assert step is not None
        given = {"private_paths": run_.own, "code": run_.code, **more}
        return build_prompt(
            PromptInputs(
                sandbox.root,
                run_.spec,
                run_.plan,
                run_.state,
                step,
                window=window,
                **given,  # type: ignore[arg-type]
            )
        )
    finally:
        engine.close()


def test_a_step_in_plain_words_sees_the_code_that_it_is_about(service: Sandbox) -> None:
    prompt = prompt_of(service.write(WANTED))
    assert "return self.calls[client] < self.limit" in prompt.text
    ranges = prompt.shown.in_part["src/traffic.py"]
    lines = service.text("src/traffic.py").splitlines()
    shown = [line for first, last in ranges for line in lines[first - 1 : last]]
    assert "class RateLimiter:" in shown
    assert len(shown) < len(lines) / 2
    assert (
        "tests/test_traffic.py"
        in prompt.shown.files.keys() - prompt.shown.in_part.keys()
    )
    whys = {share.name.partition(" ")[0]: share.why for share in prompt.shares}
    assert whys["src/traffic.py"]


@each_row("window", [2_600, 8_000, 32_000, 200_000, None])
def test_it_takes_no_more_than_its_part_of_the_window(
    service: Sandbox, window: int | None
) -> None:
    service.write(WANTED)
    prompt, bare = prompt_of(service, window), prompt_of(service, window, code=None)
    assert prompt.context is not None
    assert estimate_tokens(prompt.context.text) <= MOST
    assert estimate_prompt(prompt.request) <= (window or 1_000_000) - min(
        8_192, (window or 0) // 4
    )
    assert bare.request.messages[0] == prompt.request.messages[0]
    assert sum(share.tokens for share in prompt.shares) == pytest.approx(
        estimate_prompt(prompt.request), rel=0.1
    )
    if window is None or window > 6_000:
        assert "return self.calls[client] < self.limit" in prompt.text
        assert "the tree of the project's files" not in prompt.left_out


class _Unwanted(CodeFinder):
    def rank(self, query: Query, most: int = 100) -> list[RankedFile]:
        raise AssertionError("nothing has to be found here")


def test_for_a_step_that_names_its_files_nothing_is_looked_for(
    service: Sandbox,
) -> None:
    service.write(Step("src/mail.py", description="Let `traffic.py` through."))
    prompt = prompt_of(service, code=_Unwanted(service.root))
    assert prompt.context is None
    assert prompt == prompt_of(service, code=None)
    assert prompt_of(service, 200_000, code=_Unwanted(service.root)) == prompt


async def test_what_was_shown_in_part_is_changed_there(service: Sandbox) -> None:
    service.write(
        Step(None, "python -m pytest -q tests", description=WANTED.description)
    ).replies(FIXED)
    events = await run(service)
    assert finished(events).status is StepStatus.COMPLETED
    assert "<= self.limit" in service.text("src/traffic.py")
    made = [event for event in events if isinstance(event, PromptMade)]
    assert any(part.name.startswith("src/traffic.py (lines ") for part in made[0].parts)


async def test_beyond_it_the_reply_is_refused_and_the_next_prompt_shows_what_it_takes(
    service: Sandbox,
) -> None:
    last = "def more_149(value):\n    return value + 149"
    beyond = edit("src/traffic.py", last, last.replace("+ 149", "- 149"))
    service.write(Step(None, "none", description=WANTED.description)).replies(
        beyond, beyond
    )
    events = await run(service, attempts=2)
    (failed,) = [event for event in events if isinstance(event, AttemptFailed)]
    assert ReplyFault.UNSEEN.words in failed.error
    assert "src/traffic.py was shown in part only" in service.prompt(1)
    assert last not in service.prompt(0)
    assert last in service.prompt(1)
    assert finished(events).status is StepStatus.COMPLETED
    assert service.text("src/traffic.py").endswith("return value - 149\n\n\n")


async def test_where_nothing_like_a_text_was_shown_the_next_prompt_shows_the_nearest(
    service: Sandbox,
) -> None:
    nearly = edit(
        "src/traffic.py",
        "def more_149(value):\n    return value  +  150",
        "def more_149(value):\n    return 0",
    )
    service.write(Step(None, "none", description=WANTED.description)).replies(
        nearly, FIXED
    )
    await run(service, attempts=2)
    assert "def more_149(value):" not in service.prompt(0)
    assert (
        "def more_149(value):\n    return value + 149\n"
        in service.prompt(1).partition("# More files")[2]
    )


async def test_what_a_large_file_of_the_step_is_shown_of_stays_in_front_too(
    service: Sandbox,
) -> None:
    service.flags = {"context_window": 6_000}
    last = "def more_149(value):\n    return value + 149"
    beyond = edit("src/traffic.py", last, last.replace("+ 149", "- 149"))
    service.write(
        Step("src/traffic.py", "none", description=WANTED.description)
    ).replies(beyond, beyond)
    events = await run(service, attempts=2)
    assert finished(events).status is StepStatus.COMPLETED
    first, second = (
        service.prompt(number).partition("# Step 1")[0] for number in (0, 1)
    )
    assert first == second
    assert "class RateLimiter:" in first
    assert last not in first


async def test_it_is_not_replaced_whole(service: Sandbox) -> None:
    service.write(WANTED).replies(f"```python:src/traffic.py\n{LIMITER}```\n")
    events = await run(service)
    assert finished(events).status is StepStatus.FAILED
    assert ReplyFault.UNSEEN.words in str(finished(events).error)
    assert service.text("src/traffic.py").startswith(FILLING)


async def test_what_is_the_same_for_each_attempt_stays_in_front_to_the_byte(
    service: Sandbox,
) -> None:
    check = (
        "python -c \"import sys; sys.path.insert(0, '.'); from src import traffic;"
        ' traffic.RateLimiter(1).missing()"'
    )
    service.write(Step(None, check, description=WANTED.description)).replies(
        FIXED, FIXED, FIXED
    )
    await run(service, attempts=3)
    first, *others = [request.messages for request in service.model.requests]
    for messages in others:
        assert messages[0] == first[0]
        assert messages[1].content.startswith(first[1].content)
        assert LAST_FAILED in messages[1].content


async def test_what_was_found_at_first_is_shown_again_though_more_would_be_found_now(
    service: Sandbox,
) -> None:
    leaves = (
        "open('src/limiter.py', 'w').write('class RateLimiter: refuses, limiter,"
        " client, allowed, call'); 1 / 0"
    )
    service.write(
        Step(None, f'python -c "{leaves}"', description=WANTED.description)
    ).replies(FIXED, FIXED)
    await run(service, attempts=2)
    first, second = (
        service.prompt(number)
        .partition("# Code that the step may be about")[2]
        .partition("\n# Step 1")[0]
        for number in (0, 1)
    )
    assert first
    assert first == second
    assert "src/limiter.py" in prompt_of(service).shown.files


async def test_what_a_person_leaves_out_meanwhile_is_not_shown_again(
    service: Sandbox,
) -> None:
    service.write(
        Step(None, "python -c '1 / 0'", description=WANTED.description)
    ).replies(FIXED, FIXED)
    await run(service)
    engine = service.engine()
    engine.run.record.save_choices(Choices().leave_out("tests"))
    engine.close()
    await run(service)
    assert ["def test_limit" in service.prompt(number) for number in (0, 1)] == [
        True,
        False,
    ]


async def test_after_a_failure_the_prompt_follows_its_traceback(
    service: Sandbox,
) -> None:
    (service.root / "src/deep.py").write_text(
        FILLING + "def broken(value):\n    return value.nothing\n"
    )
    (service.root / "call.py").write_text(
        "import sys\nsys.path.insert(0, '.')\nfrom src.deep import broken\nbroken(1)\n"
    )
    service.write(Step("src/mail.py", "python call.py")).replies(
        *[edit("src/mail.py", "    print(letter)", "    pass")] * 2
    )
    await run(service, attempts=2)
    assert "return value.nothing" not in service.prompt(0)
    assert "    return value.nothing\n```" in service.prompt(1)
    first, second = (estimate_prompt(request) for request in service.model.requests)
    assert second - first < 4_000


async def test_a_file_whose_name_is_no_text_does_not_stop_a_step(
    service: Sandbox,
) -> None:
    (service.root / os.fsdecode(b"limiter_caf\xe9.py")).write_text(LIMITER)
    service.write(Step(None, "none", description=WANTED.description)).replies(FIXED)
    assert finished(await run(service)).status is StepStatus.COMPLETED


def test_of_a_huge_file_that_a_step_names_little_is_read(service: Sandbox) -> None:
    for name in ("huge.bin", "huge.png"):
        with (service.root / name).open("wb") as file:
            file.truncate(300_000_000)
    service.write(
        Step("src/mail.py", "none", description="As in `huge.bin` and `huge.png`.")
    )
    tracemalloc.start()
    try:
        prompt = prompt_of(service)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    assert [note.partition(" ")[0] for note in prompt.notes if "not shown" in note] == [
        "huge.bin",
        "huge.png",
    ]


def test_a_line_that_the_restored_file_does_not_have_is_not_followed(
    service: Sandbox,
) -> None:
    count = service.text("src/traffic.py").count("\n")
    failure = (
        f"src/traffic.py:{count + 500}: broken\n"
        f"src/big_other.py:{count * 9}: broken\n"
        "src/big_other.py:3: broken"
    )
    service.write(Step("src/mail.py", "none"))
    prompt = prompt_of(service, failed=FailedAttempt(failure, ""))
    assert "src/traffic.py, in part" not in prompt.text
    assert set(prompt.shown.in_part) == {"src/big_other.py"}

    missed = {"src/traffic.py": ((count + 500, count + 520),)}
    assert prompt_of(service, 6_000, missed_files=missed).shown.in_part[
        "src/traffic.py"
    ]


def test_a_failure_of_one_endless_line_is_followed_in_no_time(service: Sandbox) -> None:
    path = service.root / "src/traffic.py"
    failure = f"{'a.' * 50_000}\n{path}:3: broken\n{'a/' * 50_000}"
    begun = time.process_time()
    prompt = prompt_of(
        service.write(Step("src/mail.py", "none")), failed=FailedAttempt(failure, "")
    )
    assert time.process_time() - begun < 3
    assert "src/traffic.py" in prompt.shown.in_part


async def test_with_tools_nothing_is_known_any_more_once_all_that_was_shown_is_deleted(
    service: Sandbox,
) -> None:
    service.flags = {"tool_calls": "on"}
    service.write(Step(None, "none", description=WANTED.description))
    lines = service.text("src/traffic.py").splitlines(keepends=True)
    shown = prompt_of(service, with_tools=True).shown.in_part["src/traffic.py"]
    gone = ["".join(lines[first - 1 : last]) for first, last in shown]
    left = "".join(
        line
        for at, line in enumerate(lines, 1)
        if not any(a <= at <= b for a, b in shown)
    )
    first = left.splitlines()[shown[0][0] - 1 :][:4]
    service.replies(
        *[calls(replace("src/traffic.py", text, "")) for text in gone],
        calls(replace("src/traffic.py", "\n".join(first), "taken = 1")),
        "Done.",
    )
    events = await run(service)
    assert [bool(problem) for problem in problems(events)] == [
        *[False] * len(gone),
        True,
    ]
    assert service.text("src/traffic.py") == left


async def test_frames_in_what_git_ignores_or_a_person_leaves_out_are_not_followed(
    service: Sandbox,
) -> None:
    for folder in ("installed", "left_out"):
        (service.root / folder).mkdir()
        (service.root / folder / "deep.py").write_text(
            f"def {folder}(then):\n    then()\n"
        )
    (service.root / ".gitignore").write_text("installed/\n")
    (service.root / "call.py").write_text(
        "import sys\n"
        "sys.path.insert(0, '.')\n"
        "from installed.deep import installed\n"
        "from left_out.deep import left_out\n"
        "left_out(lambda: installed(lambda: 1 / 0))\n"
    )
    service.write(Step("src/mail.py", "python call.py"))
    prompts = []
    for chosen in (Choices(), Choices().leave_out("left_out")):
        service.replies(*[edit("src/mail.py", "    print(letter)", "    pass")] * 2)
        engine = service.engine(start_over=True)
        engine.run.record.save_choices(chosen)
        await collect(engine.run_all(attempts=2))
        engine.close()
        prompts.append(service.prompt(1))
    assert ["def left_out(" in prompt for prompt in prompts] == [True, False]
    assert not any("def installed(" in prompt for prompt in prompts)


async def test_of_what_the_failing_code_imports_the_places_are_shown(
    service: Sandbox,
) -> None:
    (service.root / "call.py").write_text(
        "import sys\n"
        "sys.path.insert(0, '.')\n"
        "from src.traffic import RateLimiter\n"
        "if not RateLimiter(1).allows('a'):\n"
        "    raise ValueError('RateLimiter allows nobody')\n"
    )
    service.write(Step("src/mail.py", "python call.py")).replies(
        *[edit("src/mail.py", "    print(letter)", "    pass")] * 2
    )
    await run(service, attempts=2)
    assert "self.calls[client] < self.limit" not in service.prompt(0)
    assert "self.calls[client] < self.limit" in service.prompt(1)
    assert "def more_149" not in service.prompt(1)


@each_row(
    ("failing", "text", "imported"),
    [
        ("web/call.js", 'const { limiter } = require("./limits")\n', "web/limits.js"),
        (
            "web/call.test.ts",
            'import { limiter } from "../web/limits"\n',
            "web/limits.ts",
        ),
        (
            "cmd/call.go",
            'package main\n\nimport (\n\t"example.org/p/limits"\n)\n',
            "limits/count.go",
        ),
        ("src/call.c", '#include "limits.h"\n', "src/limits.h"),
        (
            "crates/a/src/call.rs",
            "use crate::limits::limiter;\n",
            "crates/a/src/limits.rs",
        ),
        ("app/Call.java", "import app.limits.Limiter;\n", "app/limits/Limiter.java"),
        ("lib/call.rb", 'require_relative "limits"\n', "lib/limits.rb"),
    ],
)
def test_in_any_language_the_places_of_what_the_failing_code_imports_are_shown(
    service: Sandbox, failing: str, text: str, imported: str
) -> None:
    for path, content in ((failing, text), (imported, "limiter allows nobody\n")):
        (service.root / path).parent.mkdir(parents=True, exist_ok=True)
        (service.root / path).write_text(content)
    service.write(Step("src/mail.py", "none"))
    said = FailedAttempt(f"{failing}:1: error: the limiter allows nobody", "")

    assert imported in prompt_of(service, failed=said).shown.files
    assert imported not in prompt_of(service).shown.files


def test_a_link_that_leads_out_of_the_project_is_not_followed(
    service: Sandbox, tmp_path: Path
) -> None:
    (tmp_path / "outside.py").write_text("their = 'own'\n")
    (service.root / "link.py").symlink_to(tmp_path / "outside.py")
    service.write(Step("src/mail.py", "none"))

    assert (
        "their = 'own'"
        not in prompt_of(
            service, failed=FailedAttempt("link.py:1: error: their own", "")
        ).text
    )


async def test_a_saved_reply_is_used_only_while_the_parts_are_as_they_were_shown(
    service: Sandbox,
) -> None:
    service.write(Step(None, "none", description=WANTED.description)).replies(
        FIXED, FIXED
    )
    for is_changed, asked in ((False, 1), (True, 2)):
        service.replies(FIXED, FIXED)
        engine = service.engine(start_over=True)
        step = engine.run.next_step
        assert step
        await stop_at(
            engine.run_step(step), lambda event: isinstance(event, ReplyFinished)
        )
        engine.close()
        shown = service.root / ".cdd/runs/feature-words/step-01/attempt-1/shown.json"
        assert "in_part" in shown.read_text()
        if is_changed:
            path = service.root / "src/traffic.py"
            path.write_text("# new\n" + path.read_text().replace("<= self", "< self"))
        events = await run(service)
        assert finished(events).status is StepStatus.COMPLETED
        assert len(service.model.requests) == asked
        if not is_changed:
            path = service.root / "src/traffic.py"
            path.write_text(path.read_text().replace("<= self", "< self"))


async def test_with_tools_what_was_read_can_be_changed_too(service: Sandbox) -> None:
    service.flags = {"tool_calls": "on"}
    lines = service.text("src/traffic.py").splitlines()
    last = "    return value + 149"
    at = max(number for number, line in enumerate(lines, 1) if line == last)
    service.write(Step(None, "none", description=WANTED.description)).replies(
        calls(("find_code", {"query": "rate limit"})),
        calls(
            replace(
                "src/traffic.py",
                "def more_149(value):\n    return value + 149",
                "def more_149(value):\n    return 0",
            )
        ),
        calls(
            (
                "read_file",
                {"path": "src/traffic.py", "start_line": at - 1, "end_line": at},
            )
        ),
        calls(
            replace(
                "src/traffic.py",
                "def more_149(value):\n    return value + 149",
                "def more_149(value):\n    return 0",
            )
        ),
        calls(replace("src/traffic.py", "< self.limit", "<= self.limit")),
        "Done.",
    )
    events = await run(service)
    assert "src/traffic.py" in str(answers(service, 1)[0]["output"])
    assert finished(events).status is StepStatus.COMPLETED
    refused = [problem for problem in problems(events) if problem]
    # what a refusal shows is known from then on, if all of it could be shown
    assert len(refused) <= 1
    assert "<= self.limit" in service.text("src/traffic.py")
    assert service.text("src/traffic.py").count("return 0\n") == 1


def test_a_person_pins_files_and_leaves_others_out(service: Sandbox) -> None:
    service.write(WANTED)
    chosen = Choices().pin("src/mail.py").leave_out("tests")
    prompt = prompt_of(service, choices=chosen)
    assert "print(letter)" in prompt.text
    assert not any(path.startswith("tests/") for path in prompt.shown.files)
    assert {share.name: share.why for share in prompt.shares}["src/mail.py"] == "pinned"
    service.write(Step("a.txt", description="As in `traffic.py`."))
    assert "src/traffic.py" in prompt_of(service).shown.files
    assert (
        "src/traffic.py"
        not in prompt_of(service, choices=Choices().leave_out("src")).shown.files
    )


def test_choices_are_kept_with_the_run(service: Sandbox) -> None:
    service.write(WANTED)
    engine = service.engine()
    engine.run.record.save_choices(
        Choices()
        .pin("src/mail.py")
        .leave_out("docs")
        .pin("docs")
        .leave_out("src/big_other.py")
    )
    engine.close()
    engine = service.engine()
    assert engine.run.record.choices == Choices(
        pinned=("src/mail.py",), without=("src/big_other.py",)
    )
    engine.close()


async def test_a_long_look_is_told_and_can_be_stopped(
    service: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, has_begun = Flag(), Flag()
    rank: Callable[..., list[RankedFile]] = CodeFinder.rank

    def slow(finder: CodeFinder, query: Query, most: int = 100) -> list[RankedFile]:
        has_begun.set()
        go_on.wait(30)
        return rank(finder, query, most)

    monkeypatch.setattr(CodeFinder, "rank", slow)
    monkeypatch.setattr("cdd_agent.dialogue.code_search.NOTICE_DELAY", 0.1)
    service.write(WANTED).replies(FIXED)
    engine = service.engine()
    step = engine.run.next_step
    assert step
    events: list[Event] = await stop_at(
        engine.run_step(step),
        lambda event: getattr(event, "kind", None) is NoticeKind.SEARCHING,
    )
    go_on.set()
    assert has_begun.is_set()
    assert NoticeKind.SEARCHING in noticed(events)
    assert service.statuses() == ["pending"]
    await collect(engine.run_all())
    engine.close()
    assert len(service.model.requests) == 1


def test_a_damaged_record_of_what_was_found_is_made_anew(
    service: Sandbox, tmp_path: Path
) -> None:
    service.write(WANTED)
    engine = service.engine()
    attempt = engine.run.attempt(1, 1)
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "context.json").write_text("{")
    assert attempt.context is None
    engine.close()
