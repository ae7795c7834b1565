"""The words of `cdd` on the command line: what is typed, the exit code, and what is
printed; `✗` marks what goes to standard error.
"""

import asyncio
import json
import re
import shutil

import pytest

from cdd_agent.cli.main import main
from cdd_agent.errors import ExitCode
from tests.support.projects import SLUG, Sandbox, Step, add_test, check, run_all, says


def cdd(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], line: str
) -> tuple[int, list[str]]:
    code = main([*line.split(), "-C", str(sandbox.root)])
    printed = capsys.readouterr()
    lines = [
        *printed.out.splitlines(),
        *(f"✗ {line}" for line in printed.err.splitlines()),
    ]
    varying = {
        str(sandbox.root): "ROOT",
        r"\d:\d\d:\d\d": "TIME",
        r"[\d,.]+k? tok": "N tok",
    }
    for pattern, name in varying.items():
        lines = [re.sub(pattern, name, line) for line in lines]
    return int(code), lines


def test_from_an_empty_folder_to_a_ticket(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, code, printed in (
        (
            "list",
            0,
            ["No tickets yet. Create one: `cdd new feature NAME`."],
        ),
        (
            "init",
            0,
            [
                "The project is ROOT.",
                "✓ Created .cdd/.gitignore",
                "✓ Created .cdd/config.yaml",
                "✓ Created tickets/.gitkeep",
                "✓ Created AGENTS.md",
                "Fill in the <…> placeholders in AGENTS.md. Until you do, those lines are left out of prompts.",
                "Next: set up a model with `cdd model`, then create a ticket with `cdd new feature NAME`.",
            ],
        ),
        (
            "init",
            0,
            [
                "The project is ROOT.",
                "✓ Already set up; nothing was changed.",
                "Next: set up a model with `cdd model`, then create a ticket with `cdd new feature NAME`.",
            ],
        ),
        (
            "new bug login",
            0,
            [
                "✓ Created tickets/bug-login/spec.yaml. Complete it with `cdd socrates bug-login` or in your editor, then run `cdd plan bug-login`."
            ],
        ),
        (
            "new bug login",
            2,
            [
                "✗ cdd: The ticket bug-login already exists.",
                "✗ It is in tickets/bug-login. See `cdd help ticket-unusable`.",
            ],
        ),
        (
            "new epic x",
            2,
            [
                "✗ cdd: There is no ticket type 'epic'.",
                "✗ Allowed: feature, bug, enhancement, spike, refactor, and `documentation guide NAME` for a page. See `cdd help ticket-unusable`.",
            ],
        ),
        ("list", 0, ["bug-login  empty"]),
        ("list done", 0, ["No ticket is done."]),
        (
            "status bug-l",
            0,
            [
                "bug-login: Login",
                "! tickets/bug-login/spec.yaml is not complete. Missing:",
                "  description: what is wanted, and why",
                "  acceptance_criteria: at least one thing to check when the work is done",
                "Next: write them into tickets/bug-login/spec.yaml, or let Socrates ask you: `/socrates bug-login` in the shell.",
            ],
        ),
        (
            "exec bug-login",
            2,
            [
                "✗ cdd: The ticket bug-login has no plan.md.",
                "✗ Make a plan: `cdd plan bug-login`. See `cdd help nothing-to-plan`.",
            ],
        ),
        (
            "exec nothing",
            2,
            [
                "✗ cdd: There is no ticket 'nothing'.",
                "✗ List the tickets: `cdd list`. See `cdd help ticket-unusable`.",
            ],
        ),
        (
            "exec lgoin",
            2,
            [
                "✗ cdd: There is no ticket 'lgoin'.",
                "✗ Did you mean bug-login? See `cdd help ticket-unusable`.",
            ],
        ),
        (
            "plan bug-login",
            2,
            [
                "✗ cdd: tickets/bug-login/spec.yaml is not complete, so it cannot be planned yet. Missing:",
                "✗ - description: what is wanted, and why",
                "✗ - acceptance_criteria: at least one thing to check when the work is done",
                "✗ Let Socrates ask: `cdd socrates bug-login`. Or fill it in by hand. See `cdd help spec-unusable`.",
            ],
        ),
    ):
        assert cdd(sandbox, capsys, line) == (code, printed), line


def test_tickets_that_are_renamed_copied_or_not_clear(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    sandbox.replies(says("a.txt", "good"))
    tickets = sandbox.root / "tickets"
    asyncio.run(run_all(sandbox))
    sandbox.ticket.rename(tickets / "feature-speech")
    done = [
        "feature-speech: Say words",
        "  ✓ 1. Make a.txt  10 tok",
        "  10 tokens so far",
    ]

    def said(line: str) -> list[str]:
        return cdd(sandbox, capsys, line)[1]

    assert said(f"status {SLUG}") == [
        f"✗ cdd: There is no ticket '{SLUG}'.",
        "✗ It was renamed to feature-speech. See `cdd help ticket-unusable`.",
    ]
    assert said("status feature-speech")[0] == done[0]
    assert said("exec feature-speech")[0] == (
        f"{SLUG} was renamed to feature-speech. Its run continues."
    )
    assert said("exec feature-speech")[0] == done[0]
    shutil.copytree(tickets / "feature-speech", tickets / "feature-copy")
    copied = next(line for line in said("diff feature-copy") if "copy of" in line)
    assert re.sub(r"aside-\w+", "aside-TIME", copied) == (
        "✗ ! tickets/feature-copy is a copy of feature-speech, so its run starts"
        " with the first step. The copied state was renamed to"
        " execution-state.aside-TIME.json."
    )
    (tickets / "feature-speech").rename(tickets / "feature-words")
    (sandbox.root / ".cdd/runs/feature-words").mkdir()
    (sandbox.root / ".cdd/runs/feature-words/choices.json").write_text("{}")
    assert said("exec feature-words") == [
        (
            "✗ cdd: feature-speech was renamed to feature-words, but"
            " .cdd/runs/feature-words has the record of another run with that"
            " name"
        ),
        (
            "✗ Rename the ticket's folder back to feature-speech or to another"
            " name. To continue the run of feature-speech here, move"
            " .cdd/runs/feature-words away. See `cdd help run-elsewhere`."
        ),
    ]
    shutil.copytree(tickets / "feature-copy", tickets / "group/feature-copy")
    assert said("status feature-copy") == [
        (
            "✗ cdd: feature-copy is the name of 2 tickets: tickets/feature-copy,"
            " tickets/group/feature-copy."
        ),
        "✗ Rename all but one: a run is known by the name of its ticket. See `cdd help ticket-unusable`.",
    ]
    (tickets / "feature-words/spec.yml").write_text("title: x")
    assert said("status feature-words") == [
        "✗ cdd: tickets/feature-words has both spec.yaml and spec.yml.",
        "✗ Keep one of them. See `cdd help ticket-unusable`.",
    ]
    for name in ("spec.yaml", "spec.yml"):
        (tickets / "feature-words" / name).unlink()
    (tickets / "feature-words/Spec.yaml").write_text("title: x")
    assert said("status feature-words") == [
        "✗ cdd: tickets/feature-words has no spec.yaml. Did you mean Spec.yaml?",
        "✗ Rename it to spec.yaml. See `cdd help ticket-unusable`.",
    ]


@pytest.mark.story
def test_a_run_and_the_way_back(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    tested = Step("a.txt", add_test(sandbox.root, "a.txt"))
    sandbox.write(tested, Step("b.txt", "none", "Step 1"))
    replies = [
        {"reply": reply}
        for reply in (says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "x"))
    ]
    (sandbox.root / "script.yaml").write_text(f"replies: {json.dumps(replies)}")
    assert cdd(sandbox, capsys, f"exec {SLUG} --model script:script.yaml")[0] == 0
    for line, code, printed in (
        (
            f"plan check {SLUG}",
            0,
            [
                "! tickets/feature-words/plan.md:1: warning: no step names the acceptance criteria that it serves; write their words or numbers, such as `**Serves:** 1, 3`",
                "✓ Plan check passed.",
            ],
        ),
        (
            f"status {SLUG}",
            0,
            [
                "feature-words: Say words",
                "  ✓ 1. Make a.txt  N tok",
                "  ? 2. Make b.txt  (unverified)  N tok",
                "  1/2 steps passed, 1 unverified",
                "  N tokens so far",
            ],
        ),
        (
            f"undo {SLUG} --step 9",
            2,
            [
                "✗ cdd: There is no step 9",
                "✗ The steps are 1, 2.",
            ],
        ),
        (
            f"undo {SLUG}",
            0,
            [
                "✓ Step 2 undone. Type `cdd redo feature-words` to restore it.",
                "Reverted: b.txt",
            ],
        ),
        (f"redo {SLUG}", 0, ["✓ Step 2 redone.", "Restored: b.txt"]),
        (
            f"redo {SLUG}",
            0,
            [
                (
                    "There is nothing to redo: nothing was undone, or another step has"
                    " run since."
                )
            ],
        ),
        (
            f"exec {SLUG}",
            0,
            [
                "feature-words: Say words",
                "  ✓ 1. Make a.txt  N tok",
                "  ? 2. Make b.txt  (unverified)  N tok",
                "  1/2 steps passed, 1 unverified",
                "  N tokens so far",
                "✓ All steps are done, so no step ran.",
                "! feature-words completed: 1/2 steps passed, 1 unverified, 2 files, TIME",
                "!   unverified: 2. Make b.txt",
            ],
        ),
        (
            f"plan {SLUG}",
            0,
            [
                "Kept the existing tickets/feature-words/plan.md. Add `--regenerate` to replace it."
            ],
        ),
    ):
        assert cdd(sandbox, capsys, line) == (code, printed), line


def test_what_a_saved_reply_leaves_out(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (sandbox.root / ".cdd").mkdir()
    reply = sandbox.root / "reply.md"
    commands = "```sh\nmake\n```\n"
    diff = "```diff\n- x\n+ y\n```\n"
    for text, printed in (
        (commands, ["1 block was read as an explanation: line 1."]),
        (
            f"<think>\nHm.\n</think>\n{commands}",
            ["1 block was read as an explanation: line 4."],
        ),
        ("<think>\nHm.\n</think>\nNothing to do.\n", []),
        (commands * 2, ["2 blocks were read as explanations: lines 1, 4."]),
        (
            f"### NEWS\n```\nx\n```\n{diff}",
            [
                "The code block in line 2 of the reply could be NEWS, and was read as an explanation.",
                "The diff in line 5 of the reply names no file, and was read as an explanation.",
            ],
        ),
    ):
        reply.write_text(text)
        code, lines = cdd(sandbox, capsys, f"apply {reply}")
        expected = ["The reply changes no file.", *printed]
        assert (code, lines) == (0, [f"✗ {line}" for line in expected])


def test_a_saved_reply_and_the_way_back(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (sandbox.root / ".cdd").mkdir()
    reply = sandbox.root / "reply.md"
    reply.write_text(says("a.txt", "good"))
    code, lines = cdd(sandbox, capsys, f"apply {reply}")
    undo = "Undo it with `cdd undo -C ROOT`."
    assert (code, lines) == (0, ["✗ created a.txt", f"✗ {undo}"])
    code, lines = cdd(sandbox, capsys, "undo")
    assert code == 0
    assert lines[0].startswith("✓ Undone: `cdd apply ROOT/reply.md` (20")
    assert lines[0].endswith("). Type `cdd redo` to restore it.")
    assert lines[1:] == ["Reverted: a.txt"]
    for line, printed in (
        (
            "undo",
            "There is nothing more to undo outside of tickets. For the steps of a ticket, add its name: `cdd undo SLUG`.",
        ),
        (
            "diff",
            "✗ There are no changes outside of tickets, or all are undone. For the steps of a ticket, add its name: `cdd diff SLUG`.",
        ),
    ):
        assert cdd(sandbox, capsys, line) == (0, [printed])
    cdd(sandbox, capsys, "redo")
    assert cdd(sandbox, capsys, "redo") == (
        0,
        [
            "There is nothing to redo outside of tickets, or a later change replaced it. For the steps of a ticket, add its name: `cdd redo SLUG`."
        ],
    )
    assert cdd(sandbox, capsys, "undo --step 2") == (
        2,
        ["✗ cdd: `--step` needs a ticket", "✗ Name the ticket, too."],
    )
    assert cdd(sandbox, capsys, "undo x --list")[1] == [
        "✗ cdd: `--list` lists the changes of all tickets",
        "✗ List the steps of the ticket with `cdd status x`.",
    ]


def test_a_plan_that_no_longer_fits_its_spec(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"), description="A.\n**Serves:** a file"))
    plan = f"tickets/{SLUG}/plan.md"
    assert cdd(sandbox, capsys, f"plan {SLUG}") == (
        1,
        [
            f"✗ {plan}:1: no step serves acceptance criterion 1 (a.txt says good); add a step, or name it in a `**Serves:**`",
            f"✗ {plan}:7: step 1 serves “a file”, which is not an acceptance criterion of the spec; write the text or the number of one",
            "✗ Plan check failed: 2 problems.",
            f"! Kept the existing {plan}, but it no longer fits the spec. Change it with `/plan {SLUG}` in the shell, or make a new one with `cdd plan {SLUG} --regenerate`; completed steps stay.",
        ],
    )


def test_settings_that_are_wrong(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt"))
    (sandbox.root / ".cdd/config.yaml").write_text("test_timeout: soon\n")
    for line, code, printed in (
        (
            "list",
            2,
            [
                "✗ cdd: ROOT/.cdd/config.yaml:1: `test_timeout` is not a number (over 0, at most 86,400)",
                "✗ See `cdd help settings-invalid`.",
            ],
        ),
    ):
        assert cdd(sandbox, capsys, line) == (code, printed), line


def test_a_plan_that_has_to_be_mended(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(
        Step("a.txt"),
        Step("b.txt", also=("a.txt (new)",), description="Serve.\n**Serves:** 2"),
    )
    plan = f"tickets/{SLUG}/plan.md"
    assert cdd(sandbox, capsys, f"plan check {SLUG}") == (
        1,
        [
            f"✗ {plan}:1: no step serves acceptance criterion 1 (a.txt says good); add a step, or name it in a `**Serves:**`",
            f"! {plan}:7: warning: step 1 names no check; write a command in `**Verify:**`",
            f"✗ {plan}:7: step 1 changes `a.txt` before step 2 creates it; add step 2 to its dependencies, or create the file here",
            f"✗ {plan}:15: step 2 serves acceptance criterion 2, but the spec has 1",
            f"! {plan}:15: warning: step 2 names no check; write a command in `**Verify:**`",
            f"! {plan}:15: warning: step 2 affects `b.txt`, which does not exist; write `(new)` after it if the step creates it",
            "✗ Plan check failed: 3 problems.",
        ],
    )


def test_an_interrupted_demo_promises_no_more_than_a_new_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cdd_agent.cli.demo.copy_sample", interrupt)
    assert main(["demo", "--headless"]) == ExitCode.INTERRUPTED
    said = "Interrupted. `cdd demo` starts again on a new copy."
    assert capsys.readouterr().err.strip() == said
