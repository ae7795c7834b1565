"""No door shows a hidden file to a model: prompts, tools, commands, mentions."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdd_agent.commands.registry import handle
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.project.context import project_context
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan_check import check_plan
from tests.engine.test_prompt import prompt_of
from tests.engine.tool_steps import calls, execute, read, run
from tests.support.examples import count_examples
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.tables import each_row

CANARY = "canary-7f3a"
KEY = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkq" * 4 + "\n"
NAMES = (
    *(".env", "conf/.env.production", "credentials.json", "conf/secrets.yaml"),
    *("terraform.tfvars", "id_rsa", "conf/server.key", ".npmrc", "kubeconfig"),
    *("conf/service-account.json", "deploy.txt", "private/plan.md", "link.txt"),
)
SPELLINGS = ("{}", "./{}", "{}#L1-L2")


def write_hidden(root: Path) -> None:
    (root / ".cddignore").write_text("private/\n")
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        key = KEY if name == "deploy.txt" else ""
        if name != "link.txt":
            (root / name).write_text(f"{CANARY}\n{key}")
    (root / "link.txt").symlink_to(".env")
    (root / "app.py").write_text(f"# {CANARY[:6]} is explained elsewhere\n")


def requests(sandbox: Sandbox) -> str:
    """Everything that the model was sent."""
    return "\n".join(
        sandbox.prompt(number) for number in range(len(sandbox.model.requests))
    )


@each_row("name", NAMES)
def test_no_prompt_shows_a_hidden_file(sandbox: Sandbox, name: str) -> None:
    write_hidden(sandbox.root)
    steps = [Step(spelling.format(name)) for spelling in SPELLINGS]
    steps += [
        Step("conf/", also=("`private/`",)),
        Step("**/*", also=("`conf/*`",)),
        Step("a.txt", description=f"As in `{name}`, which explains {CANARY[:6]}."),
        Step("a.txt", verify=f"python -m run {name}"),
        Step(None, description=f"Explain the {CANARY} of {name}."),
    ]
    shown = []
    for step in steps:
        sandbox.write(step)
        missed = {name: ((1, 2),)}
        prompt = prompt_of(sandbox, missed_files=missed, guidance=f"See {name}")
        if CANARY in prompt.text.replace(f"the {CANARY} of", ""):
            shown.append(step)
    assert shown == []


@each_row("name", NAMES, most=6)
async def test_no_tool_or_action_shows_a_hidden_file(
    sandbox: Sandbox, name: str
) -> None:
    write_hidden(sandbox.root)
    folder = name.rpartition("/")[0] or "."
    looks = [
        read(name),
        read(f"conf/../{name}"),
        ("grep_files", {"pattern": "canary-", "path": folder}),
        ("grep_files", {"pattern": "canary-", "path": name}),
        ("edit_file", {"file_path": name, "find": "canary", "replace": "x"}),
        ("edit_file", {"file_path": name, "find": "", "replace": "x"}),
        ("create_file", {"file_path": name, "content": "x"}),
        ("find_code", {"query": f"{CANARY} {name}"}),
        execute(f"cat {name}"),
        execute(f"cat ./{name}"),
    ]
    sandbox.write(Step("a.txt", check("a.txt")))
    sandbox.replies(calls(*looks), says("a.txt", "good"))
    await run(sandbox)
    sent = requests(sandbox).replace(f"{CANARY} {name}", "")
    assert "hidden" in sent or "is not shown" in sent
    assert CANARY not in sent
    assert (sandbox.root / name).read_text().startswith(CANARY)


@each_row("name", NAMES)
async def test_no_mention_shows_a_hidden_file(sandbox: Sandbox, name: str) -> None:
    write_hidden(sandbox.root)
    (sandbox.root / ".cdd").mkdir()
    sandbox.replies("Yes.", "Yes.")
    session = sandbox.session()
    events = await collect(handle(session, f"explain @{name} and @./{name}"))
    events += await collect(handle(session, "explain @conf/ and @private/"))
    assert CANARY not in requests(sandbox)
    told = [event.text for event in events if isinstance(event, Notice)]
    assert any(f"{name} is not shown" in text for text in told)
    assert CANARY not in project_context(sandbox.root, [name]).as_text()


def test_the_context_lists_what_is_hidden_and_why(sandbox: Sandbox) -> None:
    write_hidden(sandbox.root)
    (sandbox.root / "linked.txt").symlink_to(".env")
    (sandbox.root / "also.py").symlink_to("app.py")
    found = project_context(sandbox.root, ["deploy.txt"])
    hidden = {file.path: file.why for file in found.hidden_files}
    assert hidden["private"] == "it is listed in .cddignore"
    assert hidden[".env"] == hidden["linked.txt"] == "its name suggests secrets"
    assert "also.py" not in hidden
    assert "it holds a private key" in found.as_text()
    assert "app.py" not in hidden


@each_row("name", [".env", "deploy.txt", "private/plan.md"])
async def test_a_step_that_declares_a_hidden_file_is_reported_before_the_first_call(
    sandbox: Sandbox, name: str
) -> None:
    write_hidden(sandbox.root)
    sandbox.write(Step("a.txt", check("a.txt")), Step(name), Step("new/.env"))
    engine = sandbox.engine()
    events = await collect(engine.recover())
    found = [
        event.text
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.PLAN_FINDING
    ]
    assert [f"step 2 declares `{name}`" in text for text in found] == [True]
    assert sandbox.model.requests == []
    engine.run.record.save_choices(Choices().pin(name))
    engine.close()
    again = sandbox.engine()
    events = await collect(again.recover())
    assert not any(name in event.text for event in events if isinstance(event, Notice))
    again.close()
    (problem,) = [
        problem
        for problem in check_plan(engine.run.plan, engine.run.spec, sandbox.root)
        if problem.kind == "hidden_file"
    ]
    assert (problem.step, problem.is_warning) == (2, True)


def test_only_the_user_of_this_machine_pins_a_hidden_file(sandbox: Sandbox) -> None:
    record = RunRecord.of(sandbox.root, SLUG, Redactor())
    record.prepare()
    record.save_choices(Choices().pin(".env").pin("a.txt"))
    assert record.choices.pinned == (".env", "a.txt")
    file = record.folder / "choices.json"
    sealed = json.loads(file.read_text())
    for changes in ({"seal": ""}, {"seal": "0" * 64}, {"pinned": [".env"]}):
        file.write_text(json.dumps({**sealed, **changes}))
        assert ".env" not in record.choices.pinned
    # as older versions wrote it
    del sealed["seal"]
    file.write_text(json.dumps(sealed))
    assert record.choices.pinned == ("a.txt",)


def test_a_pinned_file_is_shown(sandbox: Sandbox) -> None:
    write_hidden(sandbox.root)
    sandbox.write(Step(".env"))
    assert CANARY not in prompt_of(sandbox).text
    assert CANARY in prompt_of(sandbox, choices=Choices().pin(".env")).text


async def test_a_step_may_create_a_file_that_will_hold_secrets(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step(".env", also=("`.env.example`",)))
    reply = says(".env", "A=1") + says(".env.example", "A=")
    sandbox.replies(reply)
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text(".env") == "A=1\n"


async def test_a_reply_cannot_replace_a_hidden_file(sandbox: Sandbox) -> None:
    write_hidden(sandbox.root)
    sandbox.write(Step(".env"))
    sandbox.replies(says(".env", "A=1"), says(".env", "A=2"))
    await run(sandbox, attempts=2)
    assert sandbox.text(".env") == f"{CANARY}\n"
    assert CANARY not in requests(sandbox)


async def test_the_user_pins_a_hidden_file_and_no_hidden_folder(
    sandbox: Sandbox,
) -> None:
    write_hidden(sandbox.root)
    sandbox.write(Step(".env"))
    session = sandbox.session()
    await collect(handle(session, f"/exec {SLUG}"))
    events = await collect(handle(session, "/context +.env"))
    assert any("Models see .env now" in str(event) for event in events)
    with pytest.raises(BadInput, match="private"):
        await collect(handle(session, "/context +private"))
    session.leave()


COMMANDS = (
    *("cat {}", "head -3 {}", "tail -n 3 < {}", "grep -n y {}", "grep -rh y {}"),
    *("sed -n p {}", "awk 1 {}", "cut -c1-80 {}", "sort {}", "od -c {}", "nl {}"),
    *("base64 {}", "cp {} copy; cat copy", "ln -s {} l; cat l", "tar cf - {}"),
    *("diff {} app.py", "tee < {}", "python3 -c \"print(open('{}').read())\""),
    *("sh -c 'cat {}'", "echo $(cat {})", "F={}; cat $F", "cat app.py; cat {}"),
    *("while read l; do echo $l; done < {}", "cat {} | head", "(cat {})"),
    *(
        "cd conf; cat ../{}",
        "env cat {}",
        "xargs cat < {}",
        "dd if={}",
        "wc -c; cat {}",
    ),
    *("for f in {}; do cat $f; done", "cat {} app.py", "cat -- {}", "paste {}"),
)


@st.composite
def spelled_commands(draw: st.DrawFn) -> str:
    """A command that reads a hidden file, in one of the spellings of a shell."""
    name = draw(st.sampled_from(NAMES))
    path = draw(st.sampled_from(("{}", "./{}", "conf/../{}", ".//{}"))).format(name)
    place = draw(st.integers(0, len(name) - 1)) + len(path) - len(name)
    sign = path[place]
    changed = {
        "as it is": sign,
        "quotes": f"{sign}''",
        "quoted": f'"{sign}"',
        "backslash": f"\\{sign}",
        "any": sign if sign in "./" else "?",
        "set": sign if sign in "./" else f"[{sign}]",
        "brace": sign if sign == "/" else f"{{{sign},{sign}}}",
    }
    spelled = draw(st.sampled_from([*changed.values()]))
    path = path[:place] + spelled + path[place + 1 :]
    return draw(st.sampled_from(COMMANDS)).replace("{}", path)


@pytest.mark.story
@given(commands=st.lists(spelled_commands(), min_size=4, max_size=4))
@settings(
    max_examples=count_examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_no_spelling_of_a_command_shows_a_hidden_file(
    commands: list[str],
) -> None:
    with TemporaryDirectory() as folder:
        sandbox = Sandbox(Path(folder) / "app")
        (sandbox.root / ".cdd").mkdir(parents=True)
        write_hidden(sandbox.root)
        sandbox.flags = {"commands": {"mode": "unsafe"}}
        made = tuple(
            ToolCall(f"{number}", "execute_command", json.dumps({"command": command}))
            for number, command in enumerate(commands)
        )
        sandbox.replies(ScriptedReply(tool_calls=made), "That is all.")
        await collect(handle(sandbox.session(), "look at it"))
        assert len(sandbox.model.requests) == 2
        assert CANARY not in requests(sandbox)


@each_row("name", NAMES)
def test_the_context_begins_with_why_a_requested_file_is_hidden(
    sandbox: Sandbox, name: str
) -> None:
    write_hidden(sandbox.root)
    text = project_context(sandbox.root, ["app.py", name]).as_text()
    assert text.startswith(f"## {name}\n\n(")
    assert text.count(f"## {name}\n") == 1
    assert text.index("## Files") < text.index("## app.py")
