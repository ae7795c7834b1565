"""The words of the question about settings that need trust."""

import pytest

from cdd_agent.commands.trust_words import in_lines, notices_at_start, numbered_file
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.session.open_project import (
    ProjectTrust,
    TrustAnswer,
    TrustQuestion,
    open_project,
)
from tests.support.projects import Sandbox
from tests.words.test_command_line import cdd

pytestmark = pytest.mark.usefixtures("untrusting")


def write(sandbox: Sandbox, text: str) -> None:
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    (sandbox.root / ".cdd" / "config.yaml").write_text(text)


def asked(sandbox: Sandbox, answer: TrustAnswer) -> TrustQuestion:
    questions = []

    def decide(question: TrustQuestion) -> TrustAnswer:
        questions.append(question)
        return answer

    open_project(sandbox.root, {}, decide=decide)
    return questions[0]


def test_the_question_names_each_setting_its_effect_and_what_was_before(
    sandbox: Sandbox,
) -> None:
    write(sandbox, "api_base: http://127.0.0.1:9/v1\n")
    asked(sandbox, TrustAnswer.TRUST)
    write(
        sandbox,
        "api_base: http://127.0.0.1:8/v1\ncommands: {mode: unsafe}\n"
        "request:\n  headers: {X-Key: abc}\n",
    )
    question = asked(sandbox, TrustAnswer.DEFAULTS)
    assert [line.replace(str(sandbox.root), "ROOT") for line in in_lines(question)] == [
        "ROOT has settings that need your trust. Trust them only if you trust its authors.",
        ".cdd/config.yaml:1: api_base: http://127.0.0.1:8/v1",
        "    your code and your key go to this address",
        "    trusted before: api_base: http://127.0.0.1:9/v1",
        '.cdd/config.yaml:2: commands.mode: "unsafe"',
        "    more commands may run",
        '.cdd/config.yaml:4: request.headers: {"X-Key": "…"}',
        "    every request to a model has these headers",
    ]
    assert numbered_file(question).split("\n")[:2] == [
        ".cdd/config.yaml:",
        "    1  api_base: http://127.0.0.1:8/v1",
    ]


def test_the_shell_and_the_doctor_name_what_is_left_out(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [*notices_at_start(ProjectTrust(not_stored="The disk is full"))] == [
        Notice("The disk is full", Tone.WARNING, kind=NoticeKind.TRUST)
    ]
    assert [*notices_at_start(ProjectTrust())] == []
    write(sandbox, "model: bedrock/x\napi_base: http://127.0.0.1:9/v1\n")
    (notice,) = notices_at_start(open_project(sandbox.root, {}).trust)
    assert notice.text == (
        "Some settings of this project are not trusted and ignored: model, api_base."
        " To review them, type `/trust`."
    )
    _, printed = cdd(sandbox, capsys, "doctor")
    assert (
        "! trust    not trusted and ignored: model, api_base. Review them with `cdd trust`"
    ) in printed


def test_a_refusal_names_the_flag_and_the_command(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    write(sandbox, "commit: step\n")
    for line, code, printed in (
        (
            "exec feature-x --yes",
            3,
            [
                "✗ cdd: ROOT has settings that need your trust. Trust them only if you trust its authors.",
                '✗ .cdd/config.yaml:1: commit: "step"',
                "✗     cdd makes git commits",
                "✗ Review them first with `cdd trust`. To accept them, add `--trust` or set CDD_TRUST=1 for one run, or run `cdd trust --give` for all. See `cdd help not-trusted`.",
            ],
        ),
        (
            "trust",
            0,
            [
                "! These settings of the project are not trusted and not used:",
                '.cdd/config.yaml:1: commit: "step"',
                "    cdd makes git commits",
                "To trust them, add `--give`.",
            ],
        ),
        (
            "trust --give",
            0,
            [
                "These settings of the project are trusted:",
                '.cdd/config.yaml:1: commit: "step"',
                "    cdd makes git commits",
                "Restart an open shell to use them there.",
            ],
        ),
        (
            "trust --revoke",
            0,
            ["The settings of this project are no longer trusted."],
        ),
        ("trust --revoke", 0, ["No setting of this project was trusted."]),
    ):
        assert cdd(sandbox, capsys, line) == (code, printed)
