"""A picture among a step's files: the model sees it, and nobody asks it to write
one.
"""

from base64 import b64encode

import pytest

from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import Picture, PicturesRefused
from cdd_agent.tickets.status import StepStatus
from tests.engine.test_prompt import prompt_of
from tests.engine.tool_steps import calls, create, finished, read, run, stopped_after
from tests.support.pictures import png
from tests.support.projects import Sandbox, Step, check, notice, says
from tests.support.tables import each_row

SHOT = png(60, 40)
STEP = Step("a.txt", check("a.txt"), also=("shot.png",))


@pytest.fixture
def pictured(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / "shot.png").write_bytes(SHOT)
    return sandbox.write(STEP)


def told(events: list[Event]) -> list[NoticeKind | None]:
    return [event.kind for event in events if isinstance(event, Notice)]


def sent(sandbox: Sandbox, number: int = -1) -> list[Picture]:
    return [
        picture
        for message in sandbox.model.requests[number].messages
        for picture in message.pictures
    ]


async def test_a_file_of_the_step_that_is_a_picture_is_seen_and_not_garbled(
    pictured: Sandbox,
) -> None:
    events = await run(pictured.replies(says("a.txt", "good")))
    assert finished(events).status is StepStatus.COMPLETED
    assert [(picture.name, picture.data) for picture in sent(pictured)] == [
        ("shot.png", SHOT)
    ]
    assert "PNG" not in pictured.prompt()
    assert told(events) == [NoticeKind.SENT]


@each_row(
    "words",
    ["Do as `shot.png` shows.", "Do as @shot.png shows.", "Do as shot.png shows."],
)
def test_one_that_the_steps_words_or_guidance_name_is_seen(
    sandbox: Sandbox, words: str
) -> None:
    (sandbox.root / "shot.png").write_bytes(SHOT)
    by_words = prompt_of(sandbox.write(Step("a.txt", description=words)))
    by_guidance = prompt_of(sandbox.write(Step("a.txt")), guidance=words)
    for prompt in (by_words, by_guidance):
        assert [picture.name for picture in prompt.request.messages[-1].pictures] == [
            "shot.png"
        ]


async def test_a_model_that_sees_none_gets_the_step_without_it(
    pictured: Sandbox,
) -> None:
    pictured.replies(says("a.txt", "good")).model.sees = False
    events = await run(pictured)
    assert finished(events).status is StepStatus.COMPLETED
    assert sent(pictured) == []
    assert NoticeKind.NOT_SENT in told(events)


async def test_in_a_loop_with_tools_and_after_a_kill_it_is_the_same(
    pictured: Sandbox,
) -> None:
    pictured.replies(calls(read("plan.md")), calls(create("a.txt", "good\n")))
    engine = pictured.engine()
    await stopped_after(engine, "create_file")
    engine.close()
    first, second = (request.messages[1] for request in pictured.model.requests)
    assert first == second
    assert [picture.data for picture in first.pictures] == [SHOT]
    (pictured.root / "shot.png").unlink()

    events = await run(pictured.replies(calls(create("a.txt", "good\n")), "Done."))
    assert finished(events).status is StepStatus.COMPLETED
    assert pictured.model.requests[0].messages[1] == first


async def test_what_people_read_of_an_attempt_names_it_and_has_no_content(
    pictured: Sandbox,
) -> None:
    await run(pictured.replies(says("a.txt", "good")))
    content = b64encode(SHOT).decode()
    for file in (pictured.root / ".cdd" / "runs").rglob("*"):
        if file.is_file() and file.suffix in (".md", ".jsonl", ".json"):
            assert content not in file.read_text(errors="replace"), file
    (request,) = (pictured.root / ".cdd" / "runs").rglob("request.md")
    assert "shot.png" in request.read_text()


async def test_a_reply_that_writes_over_it_is_refused(pictured: Sandbox) -> None:
    await run(pictured.replies(says("a.txt", "good") + says("shot.png", "a picture")))
    assert (pictured.root / "shot.png").read_bytes() == SHOT


async def test_a_step_whose_only_file_is_a_picture_may_say_its_words_alone(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "shot.png").write_bytes(SHOT)
    sandbox.write(
        Step("shot.png", 'python -c "print(1)"', description="Say what it shows.")
    )
    events = await run(sandbox.replies("It shows a red box."))
    assert not any(isinstance(event, AttemptFailed) for event in events)
    assert len(sandbox.model.requests) == 1
    assert finished(events).status is StepStatus.COMPLETED


@each_row(
    "data",
    [b"", b"Not one.", SHOT[:-20], SHOT + bytes(4_000_000)],
    ids=["empty", "wrong", "cut", "large"],
)
async def test_one_that_cannot_be_sent_is_told_and_the_step_goes_on(
    sandbox: Sandbox, data: bytes
) -> None:
    (sandbox.root / "shot.png").write_bytes(data)
    events = await run(sandbox.write(STEP).replies(says("a.txt", "good")))
    assert NoticeKind.NOT_SENT in told(events)
    assert sent(sandbox) == []
    assert finished(events).status is StepStatus.COMPLETED


def test_in_a_small_window_it_is_left_out_and_named(sandbox: Sandbox) -> None:
    (sandbox.root / "shot.png").write_bytes(png(2_000, 1_500))
    prompt = prompt_of(sandbox.write(STEP), window=4_000)
    assert prompt.request.messages[-1].pictures == ()
    assert any("shot.png" in part for part in prompt.left_out)


async def test_a_refused_picture_is_not_taken_for_refused_tools(
    pictured: Sandbox,
) -> None:
    refusal = PicturesRefused("It does not accept pictures.")
    events = await run(pictured.replies(refusal, calls(create("a.txt", "good\n"))))
    assert notice(events, NoticeKind.MODEL_FAILED) == refusal.message
    assert NoticeKind.NO_TOOLS not in told(events)
    assert len(pictured.model.requests) == 1
