"""Chat: who plain text talks to, what it may do, and what is kept of it."""

import json
import os
import re
import shutil
import stat
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.store import Conversation, read_conversation
from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.review import Review
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BudgetExhausted
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted, ToolFinished
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.question_events import Choice, CommandProposed, Proposal
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_events import ChangesApplied
from cdd_agent.events.stream import Event, ignore_event
from cdd_agent.frontend import Decision
from cdd_agent.llm.port import (
    ContextTooLong,
    Message,
    ProviderData,
    StopReason,
    ToolCall,
)
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.tools.base import parse_answer
from cdd_agent.wiring.models import NoModel
from cdd_agent.wiring.root import Wiring
from tests.agents.asking import TEMPLATE, asks
from tests.support.listening import collect, stop_at, tell
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row

QUESTION = "what is the answer to it?"
AGAIN = "what did I ask?"
OWN_PROMPT = "Speak like a pirate."
SUMMARY = "We counted to three."
LAST_WORD = "It is full of words."
RULE = "Use tabs."


@dataclass
class Person:
    """Answers every question the same, and keeps the questions."""

    answer: Choice = Choice.YES
    asked: list[Proposal | Review] = field(default_factory=list)
    reason: str = ""
    """Of a no to changes."""

    async def approve(self, proposal: Proposal) -> Choice:
        self.asked.append(proposal)
        return self.answer

    async def review(self, review: Review) -> Decision:
        self.asked.append(review)
        return Decision(self.answer, review, self.reason)

    async def ask(self, prompt: str) -> str:
        raise AssertionError(f"nobody expected {prompt}")


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / "greet.py").write_text('GREETING = "hi"\n')
    sandbox.frontend = Person()
    return sandbox


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


def seen(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyDelta))


def problems(events: list[Event]) -> list[str]:
    return [event.problem for event in events if isinstance(event, ToolFinished)]


def calls(name: str, **arguments: object) -> ScriptedReply:
    return ScriptedReply(
        tool_calls=(ToolCall(f"{name}-1", name, json.dumps(arguments)),)
    )


def asked_last(sandbox: Sandbox) -> tuple[Message, ...]:
    return sandbox.model.requests[-1].messages


def files(sandbox: Sandbox) -> list[Path]:
    return sorted((sandbox.root / ".cdd" / "conversations").glob("*.jsonl"))


async def test_plain_text_is_answered_and_remembered(project: Sandbox) -> None:
    session = project.replies("Hello.", "You-said-hi.").session()
    assert seen(await say(session, "hi")) == "Hello."
    assert seen(await say(session, QUESTION)) == "You-said-hi."
    system, *said = asked_last(project)
    assert system.content.startswith(load_prompt(project.root, "chat"))
    assert "greet.py" in system.content
    assert [(message.role, message.content) for message in said] == [
        ("user", "hi"),
        ("assistant", "Hello."),
        ("user", QUESTION),
    ]
    assert session.tally.spent.tokens


async def test_the_project_s_prompt_replaces_the_default(project: Sandbox) -> None:
    (project.root / ".cdd" / "prompts").mkdir()
    (project.root / ".cdd" / "prompts" / "chat.md").write_text(f"{OWN_PROMPT}\n")
    await say(project.replies("Arr.").session(), "hi")
    assert asked_last(project)[0].content.startswith(OWN_PROMPT)


async def test_the_prompt_contains_the_project_s_rules(project: Sandbox) -> None:
    (project.root / "AGENTS.md").write_text(f"{RULE}\n")
    await say(project.replies("Yes.").session(), "Do you know how we work?")
    assert f"## AGENTS.md\n\n{RULE}" in project.model.requests[0].messages[0].content


async def test_chat_may_use_tools_before_it_answers(project: Sandbox) -> None:
    session = project.replies(
        calls("read_file", path="greet.py"), "It says hi."
    ).session()
    events = await say(session, "what does it say?")
    assert [event.call for event in events if isinstance(event, ToolFinished)] == [
        "read_file(path=greet.py)"
    ]
    assert "GREETING" in asked_last(project)[-1].content


async def test_a_change_of_files_is_made_and_reported(project: Sandbox) -> None:
    script = (
        calls("edit_file", file_path="greet.py", find="hi", replace="hello"),
        calls("create_file", file_path="src/new.py", content="x = 1\n"),
        "Done.",
    )
    events = await say(project.replies(*script).session(), "say hello")
    assert project.text("greet.py") == 'GREETING = "hello"\n'
    greet = FileDiff(
        "greet.py",
        1,
        1,
        "--- greet.py\n"
        "+++ greet.py\n"
        "@@ -1 +1 @@\n"
        '-GREETING = "hi"\n'
        '+GREETING = "hello"\n',
    )
    new = FileDiff(
        "src/new.py", 1, 0, "--- /dev/null\n+++ src/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    )
    assert [event for event in events if isinstance(event, ChangesApplied)] == [
        ChangesApplied(None, (), ("greet.py",), (), files=(greet,)),
        ChangesApplied(None, ("src/new.py",), (), (), files=(new,)),
    ]
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [(event.tool, event.target, event.files) for event in finished] == [
        ("edit_file", "greet.py", (greet,)),
        ("create_file", "src/new.py", (new,)),
    ]
    # `approval: edits`, the default
    assert project.frontend.asked == []  # type: ignore[attr-defined]


_WHOLE_FILE = "src/new.py\n```python\nx = 1\n```\n"
_REPLACEMENT = (
    "greet.py\n```python\n<<<<<<< SEARCH\nGREETING\n=======\nHELLO\n"
    ">>>>>>> REPLACE\n```\n"
)
_DIFF = "```diff\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n-a\n+b\n```\n"


@each_row(
    ("tool_calls", "reply", "unwritten"),
    [
        ((), _WHOLE_FILE, "src/new.py"),
        ((), _REPLACEMENT, "greet.py"),
        ((), _DIFF, "greet.py"),
        ((), _REPLACEMENT + _WHOLE_FILE + _DIFF, "greet.py, src/new.py"),
        ((), "Write `x = 1` in src/new.py.", ""),
        ((), "For example:\n\n```python\nx = 1\n```\n", ""),
        (
            (calls("create_file", file_path="src/new.py", content="x = 1\n"),),
            _WHOLE_FILE,
            "",
        ),
    ],
)
async def test_changes_that_a_reply_only_shows_are_reported_as_not_written(
    project: Sandbox, tool_calls: tuple[ScriptedReply, ...], reply: str, unwritten: str
) -> None:
    events = await say(project.replies(*tool_calls, reply).session(), "say hello")
    notices = [event.text for event in events if isinstance(event, Notice)]
    expected = f"Nothing was written to {unwritten}: "
    assert any(text.startswith(expected) for text in notices) is bool(unwritten)
    assert project.text("greet.py") == 'GREETING = "hi"\n'


_GREETED = 'GREETING = "hi"'
_HELD = 'GREETING = "hello"'


def _diff(*lines: str, old: str = "a/greet.py", new: str = "b/greet.py") -> str:
    return "\n".join(("```diff", f"--- {old}", f"+++ {new}", "@@", *lines, "```\n"))


_CHANGED = _diff(f"-{_GREETED}", f"+{_HELD}")
_INSERTED = _diff(f" {_GREETED}", "+x = 1")
_REMOVED = _diff(f" {_GREETED}", "-x = 1")
_DELETED = _diff(f"-{_GREETED}", new="/dev/null")
_QUOTED = f"greet.py\n```python\n{_GREETED}\n```\n"
_SWAPPED = (
    f"greet.py\n```python\n<<<<<<< SEARCH\n{_GREETED}\n=======\n{_HELD}\n"
    ">>>>>>> REPLACE\n```\n"
)


@each_row(
    ("content", "reply", "is_reported"),
    [
        (_GREETED, _CHANGED, True),
        (_HELD, _CHANGED, False),
        (_GREETED, _SWAPPED, True),
        (_HELD, _SWAPPED, False),
        (_GREETED, _INSERTED, True),
        (f"{_GREETED}\nx = 1", _INSERTED, False),
        (f"{_GREETED}\nx = 1", _REMOVED, True),
        (_GREETED, _REMOVED, False),
        (_GREETED, _DELETED, True),
        (None, _DELETED, False),
        (_GREETED, _QUOTED, False),
        (f"x = 1\n{_GREETED}\ny = 2", _QUOTED, False),
        (_HELD, _QUOTED, True),
        (None, _QUOTED, True),
        (
            _GREETED,
            _CHANGED.replace("a/greet.py", "{root}/greet.py").replace(
                "b/greet.py", "{root}/greet.py"
            ),
            True,
        ),
        (_HELD, _QUOTED.replace("greet.py", "{root}/greet.py"), True),
        (_GREETED, _CHANGED.replace("greet.py", "../greet.py"), False),
    ],
)
async def test_only_edits_that_a_file_lacks_are_reported_as_not_written(
    project: Sandbox, content: str | None, reply: str, is_reported: bool
) -> None:
    """A command or an earlier turn may have made them, or the reply quotes the file."""
    if content is None:
        (project.root / "greet.py").unlink()
    else:
        (project.root / "greet.py").write_text(f"{content}\n")
    text = reply.replace("{root}", str(project.root))
    events = await say(project.replies(text).session(), "what did you change?")
    notices = [event.text for event in events if isinstance(event, Notice)]
    expected = "Nothing was written to greet.py: "
    assert any(text.startswith(expected) for text in notices) is is_reported
    assert is_reported or not any("Nothing was written" in text for text in notices)


async def test_with_approval_ask_the_user_reviews_the_change_first(
    project: Sandbox,
) -> None:
    project.flags = {"approval": "ask"}
    edit = calls("edit_file", file_path="greet.py", find="hi", replace="hello")
    await say(project.replies(edit, "Done.").session(), "say hello")
    (proposal,) = project.frontend.asked  # type: ignore[attr-defined]
    assert isinstance(proposal, Review)
    assert [(file.verb, file.path) for file in proposal.files] == [
        ("change", "greet.py")
    ]
    assert {'-GREETING = "hi"', '+GREETING = "hello"'} < set(
        proposal.diff().splitlines()
    )
    assert "hello" in project.text("greet.py")


async def test_a_refused_change_is_not_made_and_the_model_learns_it(
    project: Sandbox,
) -> None:
    project.flags, project.frontend = {"approval": "ask"}, Person(Choice.NO)
    script = (calls("create_file", file_path="new.py", content="x\n"), "Then not.")
    events = await say(project.replies(*script).session(), "make it")
    assert not (project.root / "new.py").exists()
    (problem,) = problems(events)
    assert problem in asked_last(project)[-1].content
    assert not [event for event in events if isinstance(event, ChangesApplied)]


async def test_the_model_learns_why_a_change_was_refused(project: Sandbox) -> None:
    project.flags, project.frontend = (
        {"approval": "ask"},
        Person(Choice.NO, reason="another name"),
    )
    await say(
        project.replies(
            calls("create_file", file_path="new.py", content="x\n"), "Then not."
        ).session(),
        "make it",
    )
    assert not (project.root / "new.py").exists()
    assert "another name" in asked_last(project)[-1].content


@each_row(
    "path",
    [
        f"tickets/{SLUG}/plan.md",
        ".git/config",
        ".cdd/config.yaml",
        "../outside.txt",
        "/etc/motd",
    ],
)
async def test_files_of_cdd_and_outside_the_project_are_not_written(
    project: Sandbox, path: str
) -> None:
    project.write(Step("a.txt"))
    events = await say(
        project.replies(calls("create_file", file_path=path), "No.").session(),
        "write it",
    )
    assert problems(events)[0]
    assert project.frontend.asked == []  # type: ignore[attr-defined]


async def test_the_model_learns_of_wrong_arguments_and_continues(
    project: Sandbox,
) -> None:
    events = await say(
        project.replies(calls("create_file", path="x"), "Sorry.").session(), "make it"
    )
    assert "`path`" in problems(events)[0]
    assert seen(events) == "Sorry."


async def test_a_command_off_the_list_is_refused(project: Sandbox) -> None:
    events = await say(
        project.replies(
            calls("execute_command", command="rm greet.py"), "No."
        ).session(),
        "go",
    )
    (problem,) = problems(events)
    assert "'rm'" in problem
    assert (project.root / "greet.py").exists()


async def test_a_command_off_the_list_is_asked_about_in_mode_ask(
    project: Sandbox,
) -> None:
    project.flags = {"commands": {"mode": "ask"}}
    project.run_program = None
    events = await say(
        project.replies(
            calls("execute_command", command="rm greet.py"), "Gone."
        ).session(),
        "go",
    )
    assert isinstance(project.frontend.asked[0], CommandProposed)  # type: ignore[attr-defined]
    assert problems(events) == [""]
    assert not (project.root / "greet.py").exists()


async def test_the_exit_code_of_a_failed_command_is_shown(project: Sandbox) -> None:
    project.run_program = None
    events = await say(
        project.replies(
            calls("execute_command", command="ls none"), "Not there."
        ).session(),
        "go",
    )
    assert re.fullmatch(r"exit code \d", problems(events)[0])


async def test_chat_has_no_tool_for_questions_to_the_user(
    project: Sandbox,
) -> None:
    await say(
        project.replies(
            calls("chat_with_user", prompt="Which?"), "Which one?"
        ).session(),
        "go",
    )
    assert "'chat_with_user'" in asked_last(project)[-1].content


async def test_without_a_model_only_plain_text_fails_with_a_hint(
    project: Sandbox,
) -> None:
    session = Wiring(project.project, project.frontend, tell).session
    with pytest.raises(NoModel) as raised:
        await say(session, "hello")
    assert "`/model" in raised.value.hint
    assert seen_output(await say(session, "!echo one")) == "one\n"
    assert await say(session, "/list")


def seen_output(events: list[Event]) -> str:
    return "".join(str(getattr(event, "text", "")) for event in events)


@each_row(
    ("line", "answer"),
    [
        *((line, "Type `/exit` instead") for line in ("bye", " Leave ", "logout")),
        ("close", "this is chat"),
        ("clear", "Type `/clear` instead"),
    ],
)
async def test_words_of_shells_are_not_sent_to_the_model(
    project: Sandbox, line: str, answer: str
) -> None:
    assert answer in told(await say(project.session(), line))
    assert project.model.requests == []


async def test_chat_works_as_wired_for_the_shell(project: Sandbox) -> None:
    script = {
        "replies": [
            {
                "tool_calls": [
                    {
                        "name": "create_file",
                        "arguments": {"file_path": "new.py", "content": "x = 1\n"},
                    }
                ]
            },
            {"reply": "Made it."},
        ]
    }
    (project.root / "script.yaml").write_text(json.dumps(script))
    project.flags = {"model": "script:script.yaml", "approval": "ask"}
    session = Wiring(project.project, project.frontend, tell).session
    assert seen(await say(session, "make it")) == "Made it."
    assert project.text("new.py") == "x = 1\n"
    assert len(project.frontend.asked) == 1  # type: ignore[attr-defined]


async def test_a_question_about_code_is_sent_with_matching_places(
    project: Sandbox,
) -> None:
    (project.root / "limits.py").write_text(
        "class RateLimiter:\n    def allows(self):\n        return True\n"
    )
    session = project.replies(
        calls("find_code", query="rate limit"), "In limits.py."
    ).session()
    await say(session, "where is the rate limit handled?")
    found = parse_answer(asked_last(project)[-1].content)["output"].splitlines()
    assert found[0].startswith("limits.py: ")
    assert "lines 1-" in found[1]
    assert "find_code" in {tool.name for tool in project.model.requests[0].tools}


async def test_exit_from_an_agent_returns_to_the_conversation(project: Sandbox) -> None:
    session = (
        project.write(Step("a.txt", check("a.txt"))).replies("One.", "Two.").session()
    )
    events = await say(session, "first", f"/exec {SLUG}", "close", "second")
    assert [event.agent for event in events if isinstance(event, AgentChanged)] == [
        "executor",
        None,
    ]
    assert [message.content for message in asked_last(project)[1:]] == [
        "first",
        "One.",
        "second",
    ]


async def test_a_line_that_could_not_be_sent_is_not_sent_twice(
    project: Sandbox,
) -> None:
    session = project.replies(ContextTooLong("Too long."), "Now.").session()
    with pytest.raises(ContextTooLong):
        await say(session, "hi")
    await say(session, "hi")
    assert [message.content for message in asked_last(project)[1:]] == ["hi"]


async def test_an_interrupted_turn_keeps_the_earlier_conversation(
    project: Sandbox,
) -> None:
    slow = ScriptedReply("Never heard.", slow=60)
    session = project.replies(calls("read_file", path="greet.py"), slow).session()
    await until_asked_again(handle(session, "look"), project)
    (file,) = files(project)
    roles = [message.role for message in read_conversation(file)[0]]
    assert roles == ["user", "assistant", "tool"]
    again = project.replies("It says hi.").session()
    await say(again, "/resume", "go on")
    assert "GREETING" in asked_last(project)[-1].content
    assert asked_last(project)[-1].content.endswith("\n\ngo on")


async def test_files_that_a_stopped_round_wrote_stay_known(project: Sandbox) -> None:
    both = (
        *create("one.py").tool_calls,
        ToolCall("2", "grep_files", '{"pattern": "x"}'),
    )
    session = project.replies(ScriptedReply(tool_calls=both), "Fine.").session()
    events = await stop_at(
        handle(session, "make it"), lambda event: isinstance(event, ToolFinished)
    )
    assert [event.created for event in events if isinstance(event, ChangesApplied)] == [
        ("one.py",)
    ]
    await say(session, "go on")
    assert "one.py" in asked_last(project)[-1].content


def create(path: str) -> ScriptedReply:
    return calls("create_file", file_path=path, content="x = 1\n")


async def until_asked_again(
    work: Coroutine[object, object, None], project: Sandbox
) -> None:
    """Go on until a tool was used, and then stop."""
    await stop_at(
        work,
        lambda event: (
            isinstance(event, ReplyStarted) and len(project.model.requests) == 1
        ),
    )


async def test_a_line_stopped_before_its_answer_is_remembered(
    project: Sandbox,
) -> None:
    session = project.replies("A long answer.").session()
    await stop_at(
        handle(session, "tell me"), lambda event: isinstance(event, ReplyDelta)
    )
    await say(session, "shorter")
    assert [message.content.split() for message in asked_last(project)[1:]] == [
        ["tell", "me", "shorter"]
    ]


async def test_a_cut_reply_is_reported(project: Sandbox) -> None:
    events = await say(
        project.replies(ScriptedReply("Half", stop=StopReason.LENGTH)).session(), "hi"
    )
    assert noticed(events) == [NoticeKind.REPLY_UNUSABLE]


async def test_a_budget_holds_in_chat_too(project: Sandbox) -> None:
    project.flags = {"budget": {"tokens": 2_000}}
    with pytest.raises(BudgetExhausted, match="The budget is too small"):
        await say(project.replies("Hello.").session(), "hi")
    assert project.model.requests == []


async def test_secrets_are_neither_shown_nor_kept_nor_sent(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop")
    events = await say(
        project.replies("It is s3cr3t-of-the-shop.").session(),
        "my key is s3cr3t-of-the-shop",
    )
    assert "s3cr3t" not in seen(events)
    assert Redactor.of_environment().redact("s3cr3t-of-the-shop") in seen(events)
    assert "s3cr3t" not in project.prompt()
    assert "s3cr3t" not in files(project)[0].read_text()


# Kept for later


async def test_a_saved_conversation_is_private(
    project: Sandbox,
) -> None:
    await say(project.replies("Hello.").session(), "hi")
    (file,) = files(project)
    assert re.fullmatch(r"\d{8}T\d{6}\.\d{6}-\d+\.jsonl", file.name)
    assert [message.content for message in read_conversation(file)[0]] == [
        "hi",
        "Hello.",
    ]
    assert (file.parent / ".gitignore").read_text().endswith("\n*\n")
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_nothing_is_saved_outside_a_project(sandbox: Sandbox) -> None:
    assert seen(await say(sandbox.replies("Hello.").session(), "hi")) == "Hello."
    assert list(sandbox.root.iterdir()) == []


async def test_a_disk_error_is_reported_once_and_chat_continues(
    project: Sandbox,
) -> None:
    (project.root / ".cdd" / "conversations").write_text("in the way")
    session = project.replies("One.", "Two.").session()
    assert noticed(await say(session, "first")) == [NoticeKind.NOT_SAVED]
    assert told(await say(session, "second")) == ""


async def test_resume_restores_the_last_conversation(project: Sandbox) -> None:
    await say(project.replies("Answer: 42.").session(), QUESTION)
    session = project.replies("You asked for the answer.").session()
    events = await say(session, "/resume")
    assert "1 message" in notice(events, NoticeKind.RESUMED)
    assert Answer("Answer: 42.") in events
    await say(session, AGAIN)
    assert [message.content for message in asked_last(project)[1:]] == [
        QUESTION,
        "Answer: 42.",
        AGAIN,
    ]


async def test_resume_ignores_a_deleted_file(project: Sandbox) -> None:
    await say(project.replies("Hello.").session(), "hi")
    (
        project.root / ".cdd" / "conversations" / "20260101T000000.000000-1.jsonl"
    ).symlink_to("gone")
    assert Answer("Hello.") in await say(project.session(), "/resume")


async def test_a_resumed_conversation_continues_in_a_separate_file(
    project: Sandbox,
) -> None:
    """The shell that it began in may still be open."""
    first = project.replies("One.", "Two.", "Three.").session()
    await say(first, "a")
    second = project.session()
    await say(second, "/resume", "b")
    await say(first, "c")
    contents = {
        tuple(message.content for message in read_conversation(file)[0])
        for file in files(project)
    }
    assert contents == {("a", "One.", "c", "Three."), ("a", "One.", "b", "Two.")}


async def test_resume_does_not_replace_a_conversation_that_has_begun(
    project: Sandbox,
) -> None:
    await say(project.replies("Old.").session(), "old")
    session = project.replies("New.", "Newer.").session()
    await say(session, "new", "/resume", "newer")
    assert [message.content for message in asked_last(project)[1:]] == [
        "new",
        "New.",
        "newer",
    ]


async def test_resume_restores_the_active_agent_and_its_conversation(
    project: Sandbox,
) -> None:
    project.write(Step("a.txt", check("a.txt"))).replies("Hello.")
    session = project.session()
    await say(session, "hi", f"/exec {SLUG}")
    session.leave()
    again = project.replies("Back.").session()
    events = await say(again, "/resume")
    assert Answer("Hello.") in events
    assert AgentChanged("executor", SLUG) in events
    await say(again, "close", "and?")
    assert [message.content for message in asked_last(project)[1:]] == [
        "hi",
        "Hello.",
        "and?",
    ]


async def test_resume_restores_socrates(project: Sandbox) -> None:
    session = project.write(spec=TEMPLATE).replies(asks("Who needs it?")).session()
    await say(session, f"/socrates {SLUG}")
    session.leave()
    again = project.session()
    assert AgentChanged("socrates", SLUG) in await say(again, "/resume")
    again.leave()


async def test_resume_skips_an_agent_whose_ticket_is_gone(
    project: Sandbox,
) -> None:
    session = project.write(Step("a.txt")).session()
    await say(session, f"/exec {SLUG}", "close")
    shutil.rmtree(project.ticket)
    assert noticed(await say(project.session(), "/resume")) == [NoticeKind.NOT_DONE]


@each_row(
    "content",
    ["", "{", "[]", '{"agent": 1}', '{"agent": "ghost", "ticket": "feature-words"}'],
)
async def test_a_damaged_record_of_the_active_agent_does_no_harm(
    project: Sandbox, content: str
) -> None:
    await say(project.replies("Hello.").session(), "hi")
    (project.root / ".cdd" / "runs" / "last-active.json").write_text(content)
    assert Answer("Hello.") in await say(project.session(), "/resume")


async def test_resume_returns_to_chat_and_names_the_run(
    project: Sandbox,
) -> None:
    project.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "bad"), "Hello.")
    session = project.session()
    await say(session, f"/exec {SLUG}", "c", "close", "hi")
    again = project.session()
    events = await say(again, "/resume")
    assert again.agent is None
    assert f"`/exec {SLUG}`" in notice(events, NoticeKind.WHAT_NEXT)


async def test_damaged_lines_are_skipped_and_reported(project: Sandbox) -> None:
    await say(project.replies("One.", "Two.").session(), "a", "b")
    (file,) = files(project)
    one, two = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(
        one
        + b'{"messages": [{"role": "boss"}]}\n'
        + b"\xff\xfe\n"
        + two[:-1]
        + b"\n"
        + two[:20]
    )
    events = await say(project.session(), "/resume")
    assert notice(events, NoticeKind.DAMAGED).startswith("3 ")
    assert Answer("Two.") in events


async def test_a_torn_line_harms_no_other(project: Sandbox) -> None:
    conversation = Conversation(project.root, Redactor(), ignore_event)
    conversation.add([Message("user", "a")])
    (file,) = files(project)
    file.write_bytes(file.read_bytes() + b'{"time": "20')
    conversation.add([Message("user", "b")])
    messages, damaged = read_conversation(file)
    assert [message.content for message in messages] == ["a", "b"]
    assert damaged == 1


async def test_old_conversations_are_deleted(project: Sandbox) -> None:
    for number in range(55):
        Conversation(project.root, Redactor(), ignore_event).add(
            [Message("user", str(number))]
        )
        os.utime(files(project)[-1], ns=(number, number))
    kept = {read_conversation(file)[0][0].content for file in files(project)}
    assert len(kept) == 50
    assert "54" in kept
    assert "0" not in kept


async def test_clear_starts_a_new_conversation_and_resume_returns(
    project: Sandbox,
) -> None:
    session = project.replies("One.", "Two.", "Three.").session()
    await say(session, "a", "/clear", "b")
    assert [message.content for message in asked_last(project)[1:]] == ["b"]
    await say(session, "/clear", "/resume", "c")
    assert [message.content for message in asked_last(project)[1:]] == [
        "b",
        "Two.",
        "c",
    ]


async def test_saved_tool_calls_become_words_for_a_model_without_tools(
    project: Sandbox,
) -> None:
    await say(
        project.replies(calls("read_file", path="greet.py"), "It says hi.").session(),
        "look",
    )
    session = project.replies("Fine.").session()
    await say(session, "/resume", "thanks")
    roles = [message.role for message in asked_last(project)]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "```tool" in asked_last(project)[2].content
    assert "read_file" in asked_last(project)[3].content


async def test_provider_data_is_saved_unchanged_or_not_at_all(
    project: Sandbox,
) -> None:
    secret = "hunter2-hunter2-42"
    kept, dropped = (
        ProviderData("model", '{"signature": "abc"}'),
        ProviderData("model", f'{{"text": "{secret}"}}'),
    )
    conversation = Conversation(project.root, Redactor({secret: "TOKEN"}), ignore_event)
    conversation.add([Message("assistant", "One.", provider_data=kept)])
    conversation.add([Message("assistant", "Two.", provider_data=dropped)])

    again = Conversation(project.root, Redactor(), ignore_event)
    again.resume()

    assert [message.provider_data for message in again.messages] == [kept, None]
