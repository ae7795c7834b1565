"""A line that starts with `skip` leaves a step out, is a question or is asked about.
It never runs a step.
"""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.run_events import QuestionAnswered
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished
from tests.agents.test_words import THREE, at_step_two, say
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, notice
from tests.support.tables import each_row

SKIPS = (
    "skip",
    "Skip",
    "SKIP",
    "s",
    " skip ",
    "skip keep",
    "skip\tkeep",
    "skip 2",
    "skip step 2",
    "Skip because the header is optional",
    "skip\nbecause the header is optional",
)
ASKED = (
    "skip it",
    "skip this one please",
    "skip the header row of the table",
    "skip the header please",
    "Skip the header and write the rows instead.",
    "skip\tthe header row of the table",
    "skip step two and write the table",
    "skip 2 please, it is not needed any more",
    "skip 3",
    "skip step 3",
    "skip keep 2",
    "skip keep the old table as it was written",
    "skip, the header row is not needed here",
    "skip: the header row is not needed here",
    "skip - the header row is not needed here",
    "skip; write the table without a header",
    "skip... write the table without a header",
    "skip! The header row is not needed here.",
    "skip/ignore the header row of the table",
    "skip_header must be true in the parser",
    "skip-header must be true in the parser",
    "skip()  must be called by the parser first",
    "skipping is fine",
    "skipping the header row is fine for me",
    "skipped the auth test, see the log file",
    "Skips of the header must be logged by the parser",
    "SKIPPED tests must fail the build here",
    "`skip` the header row of the table",
    '"skip" must be a parameter of the parser',
    "**skip** the header row of the table",
    "- skip the header row of the table",
    "* skip the header row of the table",
    "1. skip the header row of the table",
    "\u200bskip the header row of the table",
    "skip --all the tests of this module",
    "skip the tests && write the table",
    "skip the header\nwrite the table with its rows",
    "skip the header\n\nskip",
    "skip the header row " + "of the table " * 1_000,
)
QUESTIONS = (
    "skip the header row?",
    "skipped the auth test?",
    "skip step 2 or keep it as it is?",
    "skipping is fine, is it not?",
)


@each_row("line", SKIPS)
async def test_the_command_leaves_the_next_step_out(
    sandbox: Sandbox, line: str
) -> None:
    with at_step_two(sandbox) as agent:
        meaning = agent.meaning(line)
        assert "skip step 2" in meaning.hint
        await agent.carry_out(meaning)
    assert sandbox.statuses() == ["completed", "skipped", "pending"]
    assert sandbox.model.requests == []


@each_row("line", (*ASKED, "skip?"))
async def test_any_other_line_is_answered_with_what_is_possible(
    sandbox: Sandbox, line: str
) -> None:
    with at_step_two(sandbox) as agent:
        meaning = agent.meaning(line)
        events = await collect(agent.carry_out(meaning))
        assert "Enter does nothing" in meaning.hint
        assert len(meaning.hint) <= 78
        answer = notice(events, NoticeKind.NOT_DONE)
        assert "`skip" in answer or "Step 3 is not the next one" in answer
        assert not agent.steer(meaning, lambda: True)
    assert sandbox.statuses() == ["completed", "pending", "pending"]
    assert sandbox.model.requests == []


@each_row("line", QUESTIONS)
async def test_a_question_is_answered_and_no_step_runs(
    sandbox: Sandbox, line: str
) -> None:
    session = sandbox.write(*THREE).replies("It is optional.").session()
    await say(session, f"/exec {SLUG}")
    meaning = session.meaning(line)
    assert meaning is not None
    assert "no step runs" in meaning.hint
    events = await say(session, line)
    assert [event for event in events if isinstance(event, QuestionAnswered)]
    assert not [e for e in events if isinstance(e, StepStarted | StepFinished)]
    session.leave()


def test_no_line_that_starts_with_skip_is_guidance(sandbox: Sandbox) -> None:
    case = st.sampled_from(["skip", "Skip", "SKIP", "sKiP", "`skip`", "- skip"])
    words = st.lists(
        st.one_of(
            st.text(string.printable, max_size=12),
            st.sampled_from(["step", "2", "because", "keep", "the", "parser", "rows"]),
        ),
        max_size=9,
    )
    between = st.sampled_from(["", " ", "\t", "\n", ", "])

    @settings(deadline=None)
    @given(case, between, words)
    def check_it(start: str, gap: str, rest: list[str]) -> None:
        line = start + gap + " ".join(rest)
        assert agent.meaning(line).name in ("skip", "question", "nothing"), line

    with at_step_two(sandbox) as agent:
        check_it()


@each_row("line", ("> skip the header row of the table", ">skip it"))
def test_a_line_for_the_model_may_say_skip(sandbox: Sandbox, line: str) -> None:
    with at_step_two(sandbox) as agent:
        assert agent.meaning(line).name == "guidance"
