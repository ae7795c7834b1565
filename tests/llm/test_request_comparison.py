"""A recorded request is the same request again at another place and time."""

from typing import Literal

import pytest

from cdd_agent.llm.port import Done, Message, Request, TextDelta, ToolCall
from cdd_agent.llm.request_comparison import ComparedRequest
from cdd_agent.llm.scripted import NoReplyLeft, ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply, TimedEvent
from tests.support.replies import all_of
from tests.support.tables import each_row

UUID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"


def asking(text: str) -> Request:
    return Request((Message("system", "Be brief."), Message("user", text)))


def compared(text: str) -> ComparedRequest:
    return ComparedRequest(asking(text))


@each_row(
    "old, new",
    [
        # paths
        ("rootdir: /home/me/shop", "rootdir: /srv/ci/build-7/shop"),
        ('File "/home/me/shop/calc.py", line 3', 'File "/tmp/x/calc.py", line 3'),
        ("(/home/me/my shop/calc.py:3)", "(/srv/calc.py:3)"),
        ("see file:///home/me/a.html", "see file:///srv/www/a.html"),
        ("~/.cache/x is used", "/root/.cache/x is used"),
        (r"C:\Users\me\shop\calc.py is missing", "/home/me/shop/calc.py is missing"),
        ("wrote to /tmp/tmpab12_xyz/out.txt", "wrote to /var/folders/9s/T/out.txt"),
        ("made tmpab12cd_x", "made tmpzz00yyq1"),
        ("/dev/shm/pytest-of-root/pytest-15/test_a0", "/tmp/pytest-of-me/pytest-2/t0"),
        # dates and times
        ("on 2026-11-27", "on 2027-01-02"),
        ("at 2026-11-27T08:10:38.123Z:", "at 2027-01-02T23:59:59+01:00:"),
        ("[2026-11-27 08:10:38,123] INFO", "[2027-01-02 09:00:00,001] INFO"),
        ("Fri Nov 27 08:10:38 UTC 2026", "Sat Jan  2 23:59:59 CET 2027"),
        ("Date: Fri, 27 Nov 2026 08:10:38", "Date: Sat, 2 Jan 2027 23:59:59"),
        (
            "-rw-r--r-- 1 me me 12 Nov 27 08:10 a.py",
            "-rw-r--r-- 1 me me 12 Jan  2 09:00 a.py",
        ),
        ("since November 27, 2026", "since January 2, 2027"),
        ("Start at  08:10:38", "Start at  23:59:59"),
        ("epoch 1795767038", "epoch 1798930799.25"),
        ("epoch 1795767038123", "epoch 1798930799001"),
        # durations
        ("1 failed in 0.03s", "1 failed in 12.50s"),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 1.250s"),
        ("took 3 ms", "took 123.4 µs"),
        ("real\t0m1.234s", "real\t2m0.500s"),
        ("Time:        1.5 s", "Time:        812 ms"),
        ("finished in 2 minutes", "finished in 40 seconds"),
        ("Elapsed: 0:00:03", "Elapsed: 0:01:10"),
        ("# duration_ms 61.123", "# duration_ms 5"),
        ('<testsuite time="0.03">', '<testsuite time="1.25">'),
        # numbers and names of this run
        ("<A object at 0x7f0ea3dc9f80>", "<A object at 0x7fffffffff00>"),
        ("pid 812 ended", "pid 90210 ended"),
        ("[pid: 12]", "[pid: 90210]"),
        ("Process 4711 crashed", "Process 12 crashed"),
        ("serving on http://127.0.0.1:43211/", "serving on http://127.0.0.1:8000/"),
        ("listening at localhost:43211", "listening at localhost:8000"),
        ("Using --randomly-seed=123", "Using --randomly-seed=98765"),
        (f"id {UUID}", "id 7ab459ea-0e8a-4ca4-994e-0077e1603550"),
        ("HEAD is now at 32d7ddc Add", "HEAD is now at 0dbf5d9 Add"),
    ],
)
def test_paths_times_and_numbers_of_a_run_do_not_matter(old: str, new: str) -> None:
    assert compared(old).matches(compared(new))
    assert compared(f"a\n  {old}\nb").matches(compared(f"a\n  {new}\nb"))


@each_row(
    "old, new",
    [
        ("in green", "in blue"),
        ("# Step 1 of 2: Make it", "# Step 2 of 2: Make it"),
        ("return 5", "return 6"),
        ("src/a.py is shown", "src/b.py is shown"),
        ("`/init` and /exec", "`/plan` and /exec"),
        ("a / b / c", "a / c / b"),
        ("</div><p>", "</span><p>"),
        ("https://a.example/x", "https://b.example/x"),
        ("3 failed, 1 passed", "1 failed, 3 passed"),
        ("calc.py:12:30: error", "calc.py:14:30: error"),
        ("@@ -1,2 +1,3 @@", "@@ -1,2 +1,4 @@"),
        ("version 1.2.3", "version 1.3.0"),
        ("decade", "facade"),
        ("200 words a page", "250 words a page"),
        ("a", "a\n"),
        ("a", ""),
    ],
)
def test_everything_else_matters(old: str, new: str) -> None:
    assert not compared(old).matches(compared(new))
    assert compared(old).describe_difference(compared(new))


def test_calls_of_tools_are_compared_too() -> None:
    def with_call(arguments: str) -> ComparedRequest:
        call = ToolCall("1", "read_file", arguments)
        return ComparedRequest(Request((Message("assistant", "", (call,)),)))

    old = with_call('{"path": "/home/me/a.py"}')
    assert old.matches(with_call('{"path": "/srv/x/a.py"}'))
    assert not old.matches(with_call('{"path": "b.py"}'))


def test_results_of_tools_are_not_compared() -> None:
    def with_result(
        result: str, role: Literal["tool", "user"] = "tool"
    ) -> ComparedRequest:
        return ComparedRequest(Request((Message(role, result),)))

    old = with_result('{"error": "This command was interrupted."}')
    assert old.matches(with_result('{"success": true}'))
    assert not old.matches(with_result('{"success": true}', "user"))


@each_row(
    "old, new, expected",
    [
        ("a\nb", "a\n# What earlier steps did\nb", True),
        ("a\nin 3 s\nb", "a\nx\nin 4 s\ny\nb", True),
        ("a\nb", "b\na", False),
        ("a\nin green\nb", "a\nin blue\nb\nc", False),
    ],
)
def test_lines_that_only_one_request_has_are_a_weaker_match(
    old: str, new: str, expected: bool
) -> None:
    assert not compared(old).matches(compared(new))
    assert compared(old).has_more_or_fewer_lines(compared(new)) is expected
    assert compared(new).has_more_or_fewer_lines(compared(old)) is expected


async def test_the_same_request_is_answered_before_one_with_fewer_lines() -> None:
    model = ScriptedModel([answer_to("a"), answer_to("a\nb")])
    assert TextDelta("to a\nb") in await all_of(model, asking("a\nb"))
    assert TextDelta("to a") in await all_of(model, asking("a\nb"))


def answer_to(text: str) -> ScriptedReply:
    events = (TimedEvent(0.0, TextDelta(f"to {text}")),)
    return ScriptedReply(request=asking(text), events=events, done=Done())


async def test_of_two_requests_that_match_the_most_like_is_answered() -> None:
    model = ScriptedModel(
        [answer_to("port 8000\nat 09:00"), answer_to("port 8001\nat 09:05")]
    )
    events = await all_of(model, asking("port 8001\nat 10:00"))
    assert TextDelta("to port 8001\nat 09:05") in events
    events = await all_of(model, asking("port 8001\nat 10:00"))
    assert TextDelta("to port 8000\nat 09:00") in events
    with pytest.raises(NoReplyLeft):
        await all_of(model, asking("port 8001\nat 10:00"))
