"""Pictures: known by their content, refused before anything is sent, and sent by every
adapter as providers want it.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.fallbacks import WithFallbacks
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.pictures import (
    LARGEST,
    PictureUnusable,
    picture_at,
    picture_of,
    picture_tokens,
)
from cdd_agent.llm.port import (
    ConnectionFailed,
    Done,
    Message,
    Model,
    Picture,
    PicturesRefused,
    QuotaUsedUp,
    Replaced,
    Request,
)
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.llm.recording import RecordingModel
from cdd_agent.llm.scripted import NoReplyLeft, ScriptedModel
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.text.redaction import Redactor
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import after_rounds, heard
from tests.llm.listing import HEAD, answering
from tests.llm.server import Answer, LoopbackServer, failure
from tests.llm.simulators.base import Said
from tests.llm.simulators.chat import DeepSeek
from tests.llm.test_contract import SERVED
from tests.llm.test_model_facts import ENTRY, asked_at, listed
from tests.llm.test_provider_rules import LOOKS, PROVIDERS, Provider, as_saved, post
from tests.support.pictures import ALL, gif, jpeg, png, webp
from tests.support.replies import all_of
from tests.support.tables import each_row

SHOT = picture_of("shot.png", png(60, 40))
ASKED = (
    Message("system", "Be brief."),
    Message("user", "What is this?", pictures=(SHOT,)),
)
REQUEST = Request(ASKED)


async def done(model: Model, request: Request = REQUEST) -> None:
    events = await all_of(model, request)
    assert isinstance(events[-1], Done)


def told(events: Sequence[object]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def repr_of(data: bytes) -> str:
    return repr(data[:16])


# -------------------------------------------------------------------- what is a picture


@each_row(("kind", "data"), ALL.items(), ids=ALL)
@each_row("name", ["shot.png", "shot.txt", "shot"])
def test_a_picture_is_recognized_by_its_content_not_its_name(
    tmp_path: Path, kind: str, data: bytes, name: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert picture_at(tmp_path, name) == Picture(name, kind, 6, 4, data)


@each_row(
    "data",
    [
        png(700, 30),
        gif(700, 30),
        jpeg(700, 30),
        *(webp(k, 700, 30) for k in (b"VP8X", b"VP8L", b"VP8 ")),
    ],
    ids=repr_of,
)
def test_the_size_of_a_picture_is_read_from_its_header(data: bytes) -> None:
    picture = picture_of("x", data)
    assert (picture.width, picture.height) == (700, 30)


@each_row("data", [*ALL.values(), webp(b"VP8X"), webp(b"VP8L")], ids=repr_of)
def test_a_picture_cut_at_any_byte_is_unusable(data: bytes) -> None:
    # some leave out the mark at a GIF's end
    for length in range(len(data) - (data[:3] == b"GIF")):
        with pytest.raises(PictureUnusable):
            picture_of("x", data[:length])


@each_row(
    ("data", "reason"),
    [
        (b"", "shot.png is empty"),
        (b"<html>Not found</html>", "shot.png is not a png, jpeg"),
        (b"BM" + bytes(60), "shot.png is not a png, jpeg"),
        (
            png() + bytes(LARGEST),
            (
                "shot.png is too large: models accept pictures of at most 3,932,160"
                " bytes"
            ),
        ),
        (png(8_001, 1), "shot.png is too large: 8,001 × 1 pixels"),
        (png(0, 4), "shot.png is incomplete or damaged"),
    ],
    ids=["empty", "a page", "a bitmap", "many bytes", "many pixels", "no pixels"],
)
def test_an_unusable_picture_has_a_plain_reason(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "shot.png").write_bytes(data)
    with pytest.raises(PictureUnusable) as raised:
        picture_at(tmp_path, "shot.png")
    assert raised.value.message.startswith(reason)


def test_pictures_outside_the_project_or_secret_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "outside.png").write_bytes(png())
    (root / "link.png").symlink_to(tmp_path / "outside.png")
    (root / ".env").write_bytes(png())
    (root / "key.png").symlink_to(root / ".env")
    for name in ("link.png", ".env", "key.png", "../outside.png"):
        with pytest.raises(CddError):
            picture_at(root, name)


def test_texts_and_folders_are_not_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("GIF89 is a format.")
    assert picture_at(tmp_path, "a.txt") is None
    assert picture_at(tmp_path, ".") is None


def test_a_picture_counts_by_its_pixels_as_providers_bill_it() -> None:
    sizes = [(750, 100), (1_000, 1_000), (8_000, 8_000)]
    assert [
        picture_tokens(Picture("x", "image/png", *size, b"")) for size in sizes
    ] == [100, 1_334, 4_800]
    without = Request((ASKED[0], Message("user", "What is this?")))
    assert estimate_prompt(REQUEST) == estimate_prompt(without) + picture_tokens(SHOT)


# -------------------------------------------------------------------------- on the wire


@pytest.mark.parametrize(
    "served",
    [
        pytest.param(
            "litellm", marks=[pytest.mark.adapters, pytest.mark.xdist_group("litellm")]
        ),
        "direct",
        "responses",
        "messages",
    ],
)
@each_row(("kind", "data"), ALL.items(), ids=ALL)
async def test_a_picture_arrives_complete_with_its_type_and_name(
    served: str, kind: str, data: bytes
) -> None:
    picture = picture_of("shot", data)
    with LoopbackServer(["A red one."]) as server:
        await done(
            SERVED[served](server.url),
            Request((Message("user", "What is this?", pictures=(picture,)),)),
        )

    (message,) = server.requests[0].request.messages
    assert message.content == "shot:What is this?"
    assert [(one.media_type, one.data) for one in message.pictures] == [(kind, data)]


TAKE_PICTURES = {
    name: provider
    for name, provider in PROVIDERS.items()
    if provider.simulated is not DeepSeek
}
TAKE_PICTURES_AND_CACHE = {
    name: provider for name, provider in TAKE_PICTURES.items() if provider.caches
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for n in range(5):
        (tmp_path / f"a{n}.txt").write_text(f"content of {n}\n")
    return tmp_path


def seeing(provider: Provider, url: str) -> DirectModel:
    return provider.asked_at(url, ModelOptions(sees=True))


@each_row("provider", TAKE_PICTURES.values(), ids=TAKE_PICTURES)
async def test_every_provider_accepts_a_picture_in_a_loop_and_after_a_kill(
    provider: Provider, root: Path
) -> None:
    with provider.simulated([*LOOKS[:3], Said("Red.")]) as simulator:
        spoken = await after_rounds(
            Dialogue(seeing(provider, simulator.url), read_only_tools(root), "on"),
            2,
            ASKED,
        )
        again = Dialogue(seeing(provider, simulator.url), read_only_tools(root), "on")
        result = await heard(again, as_saved(spoken))

    assert (result.turn.text, simulator.refusals, len(simulator.bills)) == (
        "Red.",
        [],
        4,
    )
    content = b64encode(SHOT.data).decode()
    assert all(json.dumps(sent.body).count(content) == 1 for sent in simulator.sent)


@each_row("provider", TAKE_PICTURES_AND_CACHE.values(), ids=TAKE_PICTURES_AND_CACHE)
async def test_a_picture_keeps_the_cached_prefix_unchanged(
    provider: Provider, root: Path
) -> None:
    with provider.simulated([*LOOKS, Said("Red.")]) as simulator:
        await heard(
            Dialogue(seeing(provider, simulator.url), read_only_tools(root), "on"),
            ASKED,
        )
    repeated = sum(bill.prompt for bill in simulator.bills[:-1])
    assert sum(bill.cached for bill in simulator.bills[1:]) >= 0.95 * repeated


async def test_a_model_without_vision_gets_no_picture_and_a_notice_says_so() -> None:
    provider = PROVIDERS["deepseek"]
    with provider.simulated(
        [Said("I cannot see it."), Said("As I said.")]
    ) as simulator:
        model = provider.asked_at(simulator.url, ModelOptions(sees=False))
        result = await heard(Dialogue(model), ASKED)
        later = await heard(
            Dialogue(model), (*ASKED, *result.added, Message("user", "Really?"))
        )

    assert simulator.refusals == []
    (notice,) = told(result.events)
    assert {"deepseek/deepseek-v4", "shot.png."} <= set(notice.split())
    assert told(later.events) == []
    assert "shot.png" in json.dumps(simulator.sent[0].body)
    assert len(later.turn.text) > 0


PNG, BMP = b64encode(SHOT.data).decode(), b64encode(b"BM" + bytes(60)).decode()
NO_PICTURES = {
    "a kind that nobody takes": ("image/bmp", BMP),
    "another kind than it is": ("image/jpeg", PNG),
    "no base64": ("image/png", PNG[:-3] + "%%%"),
    "too large": ("image/png", PNG + "A" * (21 * 2**20)),
}


@each_row(("kind", "data"), NO_PICTURES.values(), ids=NO_PICTURES)
@each_row("name", ["anthropic", "openai chat", "openai responses"])
def test_a_naive_client_is_refused(name: str, kind: str, data: bytes) -> None:
    url = {"url": f"data:{kind};base64,{data}"}
    source = {"type": "base64", "media_type": kind, "data": data}
    path, headers, body = {
        "anthropic": (
            "/messages",
            {"x-api-key": "a-key", "anthropic-version": "2023-06-01"},
            {
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": [{"type": "image", "source": source}]}
                ],
            },
        ),
        "openai chat": (
            "/chat/completions",
            {"authorization": "Bearer a-key"},
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": url}],
                    }
                ]
            },
        ),
        "openai responses": (
            "/responses",
            {"authorization": "Bearer a-key"},
            {
                "input": [
                    {
                        "role": "user",
                        "content": [{"type": "input_image", "image_url": url["url"]}],
                    }
                ]
            },
        ),
    }[name]
    with PROVIDERS[name].simulated([]) as simulator:
        answer = post(simulator, f"/v1{path}", {"model": "m", **body}, **headers)
    assert answer.status_code == 400
    assert len(simulator.refusals) == 1


async def test_a_picture_is_sent_if_vision_is_unknown_and_a_refusal_is_raised(
    tmp_path: Path,
) -> None:
    provider = PROVIDERS["deepseek"]
    with provider.simulated([]) as simulator:
        model = provider.asked_at(simulator.url)
        with pytest.raises(PicturesRefused) as raised:
            await heard(Dialogue(model, read_only_tools(tmp_path)), ASKED)

    assert len(simulator.refusals) == 1  # without tools it would be no other
    assert "`image_url`" in raised.value.message
    assert "`pictures: false`" in raised.value.hint


@each_row(
    "words",
    [
        (
            "Failed to deserialize the JSON body: messages[1]: unknown variant"
            " `image_url`, expected `text`"
        ),
        "No endpoints found that support image input",
        "Invalid content type. image_url is only supported by certain models.",
        (
            "image input is not supported - hint: if this is unexpected, you may need"
            " to provide the mmproj"
        ),
        "qwen3 is not a multimodal model",
        "At most 0 image(s) may be provided in one prompt.",
        "This model does not support images.",
        'Unsupported content part type: "image_url"',
    ],
)
@each_row("status", [400, 404, 500])
async def test_the_refusals_of_many_servers_are_known(words: str, status: int) -> None:
    with (
        LoopbackServer([failure(status, words)]) as server,
        pytest.raises(PicturesRefused),
    ):
        await done(SERVED["direct"](server.url))
    assert len(server.requests) == 1


@each_row(
    "words",
    [
        "Could not process image",
        "image exceeds 5 MB maximum",
        "The image is too small.",
    ],
)
async def test_a_model_that_sees_may_refuse_one_picture(words: str) -> None:
    with (
        LoopbackServer([failure(400, words)]) as server,
        pytest.raises(CddError) as raised,
    ):
        await done(SERVED["direct"](server.url))
    assert not isinstance(raised.value, PicturesRefused)


# ---------------------------------------------------------------- who sees, and who not


@each_row(
    ("name", "sees"),
    [
        ("anthropic/claude-opus-5", True),
        ("openai/gpt-5.1", True),
        ("deepseek/deepseek-v4-pro", False),
        ("bedrock/nobody-knows-it", None),
    ],
)
def test_the_setting_for_vision_overrides_the_table(
    name: str, sees: bool | None
) -> None:
    assert LitellmModel(name).sees is sees
    assert LitellmModel(name, options=ModelOptions(sees=not sees)).sees is not sees
    if (endpoint := endpoint_of(name, None, {})) is not None:
        assert DirectModel(name, endpoint).sees is sees
        assert DirectModel(name, endpoint, ModelOptions(sees=not sees)).sees is not sees


@each_row(
    ("takes", "sees"),
    [(["text", "image"], True), (["text"], False), ([], None), ("image", None)],
)
def test_openrouters_list_says_whether_a_model_sees(
    takes: object, sees: bool | None
) -> None:
    with answering(listed({**ENTRY, "architecture": {"input_modalities": takes}})) as (
        port,
        _,
    ):
        assert asked_at(port).sees is sees


@each_row(
    ("said", "sees"),
    [
        ({"modalities": {"vision": True, "audio": False}}, True),
        ({"modalities": {"vision": False}}, False),
        ({"data": [{"id": "m", "type": "vlm"}]}, True),
        ({"data": [{"id": "m", "type": "llm"}]}, False),
        ({"models": [], "capabilities": ["completion", "vision"]}, True),
        ({"models": [], "capabilities": ["completion", "tools"]}, False),
        ({"models": [], "capabilities": []}, None),
        ({"capabilities": ["vision"]}, None),
        ([], None),
        ({"modalities": 1, "data": 2, "models": 3, "capabilities": 4}, None),
    ],
)
def test_local_servers_say_whether_a_model_sees(
    said: object, sees: bool | None
) -> None:
    with answering(HEAD + json.dumps(said).encode()) as (port, heads):
        model = asked_at(port, "openai/m")
        assert model.sees is sees
        asked = len(heads)
        assert model.sees is sees
    assert len(heads) == asked  # once
    is_ollama = isinstance(said, dict) and isinstance(said.get("models"), list)
    assert any("POST /api/show" in head for head in heads) is is_ollama


async def test_a_fallback_without_vision_gets_the_words_and_a_notice_says_so() -> None:
    first = ScriptedModel([QuotaUsedUp("Pay.")], name="first")
    second = ScriptedModel(["I cannot see it."], name="second", sees=False)
    events = await all_of(WithFallbacks(first, [second]), REQUEST)

    (replaced,) = [event for event in events if isinstance(event, Replaced)]
    assert "pictures" in replaced.reason
    assert first.requests[0].messages[1].pictures == (SHOT,)
    assert second.requests[0].messages[1].pictures == ()


async def test_a_record_has_the_picture_s_hash_and_refuses_another_picture(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    await done(RecordingModel(ScriptedModel(["Red."]), path, Redactor()))
    assert b64encode(SHOT.data).decode() not in path.read_text()

    played = ScriptedModel.from_file(path)
    assert played.sees
    other = picture_of("shot.png", png(60, 41))
    with pytest.raises(NoReplyLeft):
        await done(
            played,
            Request((ASKED[0], Message("user", "What is this?", pictures=(other,)))),
        )
    await done(played)


def test_the_repr_of_a_picture_hides_its_content() -> None:
    assert "data" not in repr(SHOT)
    assert b64decode(b64encode(SHOT.data)) == SHOT.data


async def test_a_repeated_call_sends_the_same_picture() -> None:
    with LoopbackServer([Answer("half", cut_after=1), "Red."]) as server:
        model = SERVED["direct"](server.url)
        with pytest.raises(ConnectionFailed):
            await done(model)
        await done(model)
    assert server.requests[0].body == server.requests[1].body
