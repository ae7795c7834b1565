"""Enter acts only on what has been on the screen for half a second, or was typed."""

from textual.events import Key

from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.quiet_enter import QUIET, EnterGuard
from tests.tui.person import FingerTime

STEP, NEXT_STEP = "run step 1", "run step 2"


def test_enter_is_ignored_until_its_effect_has_been_shown_for_half_a_second() -> None:
    rows = [
        # text, its effect, typed by the user, then: ignored at once
        ("", STEP, False, True),
        ("/plan x", "plan", False, True),
        ("continue", STEP, True, False),
        ("", None, False, False),
    ]
    for text, effect, is_typed, is_ignored in rows:
        time = FingerTime()
        guard = EnterGuard(time.clock)
        guard.show("before", "something else")
        time.pass_by(60)
        guard.show(text, effect, is_typed=is_typed)
        assert guard.is_too_soon() is is_ignored, (text, effect)
        time.pass_by(QUIET)
        assert not guard.is_too_soon(), (text, effect)


def test_the_same_effect_shown_again_does_not_begin_anew() -> None:
    time = FingerTime()
    guard = EnterGuard(time.clock)
    guard.show("", STEP)
    time.pass_by(QUIET)
    guard.show("", STEP)
    assert not guard.is_too_soon()


def test_a_typed_line_that_now_means_something_else_must_be_seen() -> None:
    time = FingerTime()
    guard = EnterGuard(time.clock)
    guard.show("continue", STEP, is_typed=True)
    time.pass_by(60)
    guard.show("continue", NEXT_STEP, is_typed=True)
    assert guard.is_too_soon()
    time.pass_by(QUIET)
    assert not guard.is_too_soon()


def test_an_enter_counts_when_it_is_pressed_not_when_it_is_handled() -> None:
    now = 1000.0
    clock = KeyClock(lambda: now, lambda event: event.time)
    enter = Key("enter", "\r")
    enter.time = now - 1
    guard = EnterGuard(clock)
    guard.show("", STEP)
    now += 60
    assert guard.is_too_soon(enter)
    enter.time = now
    assert not guard.is_too_soon(enter)
