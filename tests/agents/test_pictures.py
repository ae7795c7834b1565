"""A picture that a person mentions: it goes with the words, and stays with the
conversation.
"""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from cdd_agent.agents.mention_completion import complete_mention, files_to_mention
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.llm.port import (
    AuthenticationFailed,
    Message,
    PicturesRefused,
    RequestRejected,
)
from cdd_agent.llm.recording import RecordingModel
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.wiring.root import Wiring
from tests.agents.asking import TEMPLATE, asks
from tests.agents.test_chat import asked_last, files
from tests.support.listening import collect, tell
from tests.support.pictures import jpeg, png
from tests.support.projects import SLUG, Sandbox
from tests.support.tables import each_row

SHOT = png(60, 40)
CONTENT = b64encode(SHOT).decode()


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / "shot.png").write_bytes(SHOT)
    return sandbox


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def told(events: list[Event]) -> list[NoticeKind | None]:
    return [event.kind for event in events if isinstance(event, Notice)]


def pictures(message: Message) -> list[tuple[str, bytes]]:
    return [(picture.name, picture.data) for picture in message.pictures]


async def test_a_picture_is_sent_with_the_line_and_stays_in_the_conversation(
    project: Sandbox,
) -> None:
    session = project.replies("A red box.", "Still red.").session()
    events = await say(session, "@shot.png what is this?", "and now?")

    assert told(events) == [NoticeKind.SENT]
    _, first, _, second = asked_last(project)
    assert first.content.startswith("@shot.png what is this?")
    assert (pictures(first), pictures(second)) == ([("shot.png", SHOT)], [])
    assert "\x89PNG" not in "".join(message.content for message in asked_last(project))


async def test_texts_and_several_pictures_are_sent_together(
    project: Sandbox,
) -> None:
    (project.root / "a.py").write_text("RED = 1\n")
    (project.root / "my photo.jpg").write_bytes(jpeg())
    await say(
        project.replies("Red.").session(),
        'Does @a.py do what @shot.png and @"my photo.jpg" show?',
    )

    said = asked_last(project)[-1]
    assert [name for name, _ in pictures(said)] == ["shot.png", "my photo.jpg"]
    assert "RED = 1" in said.content


@each_row(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"Not a picture.", "is not a png, jpeg"),
        (SHOT[:-20], "is incomplete or damaged"),
        (SHOT + bytes(4_000_000), "is too large"),
    ],
    ids=["empty", "wrong", "cut", "large"],
)
async def test_a_line_with_an_unusable_picture_is_not_sent(
    project: Sandbox, data: bytes, reason: str
) -> None:
    (project.root / "shot.png").write_bytes(data)
    session = project.replies("Red.").session()
    with pytest.raises(BadInput, match=reason):
        await say(session, "@shot.png what is this?")
    assert project.model.requests == []

    (project.root / "shot.png").write_bytes(SHOT)
    await say(session, "@shot.png what is this?")
    assert len(asked_last(project)) == 2


async def test_a_link_out_of_the_project_and_a_secret_are_not_sent(
    project: Sandbox,
) -> None:
    outside = project.root.parent / f"{project.root.name}-outside.png"
    outside.write_bytes(SHOT)
    (project.root / "link.png").symlink_to(outside)
    (project.root / ".env").write_text("KEY=hush\n")
    (project.root / "key.png").symlink_to(project.root / ".env")
    session = project.replies("Red.").session()
    for name in ("link.png", "key.png"):
        with pytest.raises(BadInput):
            await say(session, f"what is @{name}?")
    assert project.model.requests == []


async def test_six_pictures_are_too_many(project: Sandbox) -> None:
    for n in range(6):
        (project.root / f"{n}.png").write_bytes(SHOT)
    with pytest.raises(BadInput, match="has 6 pictures"):
        await say(
            project.replies("Red.").session(), " ".join(f"@{n}.png" for n in range(6))
        )


async def test_a_missing_file_is_reported_and_the_line_is_sent(
    project: Sandbox,
) -> None:
    events = await say(project.replies("Which?").session(), "make @logo.png smaller")
    assert told(events) == [NoticeKind.NOT_SENT]
    assert pictures(asked_last(project)[-1]) == []


async def test_a_model_without_vision_gets_words_and_the_next_model_the_picture(
    project: Sandbox,
) -> None:
    project.replies("I cannot see it.", "Red.").model.sees = False
    session = project.session()
    events = await say(session, "@shot.png what is this?")
    assert told(events) == [NoticeKind.NOT_SENT]
    assert pictures(asked_last(project)[1]) == []
    assert asked_last(project)[1].content.endswith("shot.png.)")  # that it was not sent

    project.model.sees = True
    await say(session, "and now?")
    assert pictures(asked_last(project)[1]) == [("shot.png", SHOT)]


async def test_the_setting_for_pictures_overrides_known_facts(
    project: Sandbox,
) -> None:
    (project.root / ".cdd" / "config.yaml").write_text(
        "model: script:s.yaml\npictures: false\n"
    )
    (project.root / "s.yaml").write_text("replies:\n  - reply: I cannot.\n")
    events = await say(
        Wiring(project.project, Nobody(), tell).session, "@shot.png what is this?"
    )
    assert told(events) == [NoticeKind.NOT_SENT]


async def test_a_refused_picture_is_reported_and_not_sent_again(
    project: Sandbox,
) -> None:
    session = project.replies(
        PicturesRefused("It does not accept pictures."), "Hello."
    ).session()
    with pytest.raises(PicturesRefused):
        await say(session, "@shot.png what is this?")
    await say(session, "hi")
    assert len(asked_last(project)) == 2


async def test_after_a_kill_the_conversation_keeps_a_picture_whose_file_is_gone(
    project: Sandbox,
) -> None:
    await say(project.replies("Red.").session(), "@shot.png what is this?")
    (project.root / "shot.png").unlink()

    session = project.replies("Still red.").session()
    await say(session, "/resume", "and now?")
    assert pictures(asked_last(project)[1]) == [("shot.png", SHOT)]
    assert CONTENT in files(project)[-1].read_text()


async def test_the_name_of_a_picture_is_redacted(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "hunter2-hunter2-42")
    (project.root / "hunter2-hunter2-42.png").write_bytes(SHOT)
    await say(project.replies("Red.").session(), "@hunter2-hunter2-42.png")
    assert "hunter2" not in repr(asked_last(project))
    assert "hunter2" not in files(project)[-1].read_text()


async def test_the_run_s_record_holds_no_picture_content(project: Sandbox) -> None:
    project.real_model = RecordingModel(
        ScriptedModel(["Red."]), project.root / "run.jsonl", Redactor()
    )
    await say(project.session(), "@shot.png what is this?")
    assert CONTENT not in (project.root / "run.jsonl").read_text()
    assert "shot.png" in (project.root / "run.jsonl").read_text()


def test_pictures_are_completed_like_other_files(project: Sandbox) -> None:
    (offer,) = complete_mention(files_to_mention(project.root), "what is @sh")
    assert offer.line == "what is @shot.png"
    assert offer.help.startswith("picture")


# ----------------------------------------------------------------------------- Socrates


def begun(
    project: Sandbox, *script: str | RequestRejected | AuthenticationFailed
) -> Session:
    project.write(spec=TEMPLATE)
    return project.replies(asks("What shall it look like?"), *script).session()


async def test_socrates_sees_a_picture_and_remembers_it(
    project: Sandbox,
) -> None:
    session = begun(project, asks("A red box?"), asks("Anything else?"))
    events = await say(session, f"/socrates {SLUG}", "Like @shot.png, please.", "Yes.")
    session.leave()

    assert told(events).count(NoticeKind.SENT) == 1
    with_pictures = [message for message in asked_last(project) if message.pictures]
    assert [pictures(message) for message in with_pictures] == [[("shot.png", SHOT)]]
    assert "Like @shot.png, please." in with_pictures[0].content


async def test_socrates_keeps_a_picture_after_a_kill(project: Sandbox) -> None:
    session = begun(project, AuthenticationFailed("Gone."))
    with pytest.raises(AuthenticationFailed):
        await say(session, f"/socrates {SLUG}", "Like @shot.png, please.")
    session.leave()
    (project.root / "shot.png").unlink()

    session = project.replies(asks("A red box?")).session()
    await say(session, f"/socrates {SLUG}", "continue")
    session.leave()
    assert pictures(asked_last(project)[-1]) == [("shot.png", SHOT)]


async def test_socrates_continues_after_a_refused_picture(
    project: Sandbox,
) -> None:
    session = begun(
        project, PicturesRefused("It does not accept pictures."), asks("A red box?")
    )
    with pytest.raises(PicturesRefused):
        await say(session, f"/socrates {SLUG}", "Like @shot.png, please.")

    await say(session, "continue")
    session.leave()
    assert "Like @shot.png, please." in asked_last(project)[-1].content
    assert not any(message.pictures for message in asked_last(project))


async def test_a_broken_picture_is_not_sent_to_socrates(project: Sandbox) -> None:
    (project.root / "shot.png").write_bytes(SHOT[:-20])
    session = begun(project)
    await say(session, f"/socrates {SLUG}")
    with pytest.raises(BadInput, match="incomplete or damaged"):
        await say(session, "Like @shot.png, please.")
    session.leave()
    saved = json.loads(
        Path(project.root / ".cdd" / "runs" / SLUG / "socrates.json").read_text()
    )
    assert saved["said"] == []
