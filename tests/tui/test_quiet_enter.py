"""Enter acts only on what has been on the screen for half a second, or was typed."""

from textual.events import Key

from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.quiet_enter import HELD, QUIET, EnterGuard
from tests.tui.person import FingerTime

STEP, NEXT_STEP = "run step 1", "run step 2"
ENTER = Key("enter", "\r")


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


def test_an_enter_that_is_held_down_acts_on_nothing_that_appears() -> None:
    for gap in (0.015, 0.03, 0.1):
        time = FingerTime()
        guard = EnterGuard(time.clock)
        acted = 0
        for repeat in range(100):
            guard.show("", NEXT_STEP if repeat > 9 else None)
            acted += repeat > 9 and not guard.is_too_soon(ENTER)
            if repeat <= 9:
                guard.is_too_soon(ENTER)
            time.pass_by(gap)
        assert acted == 0, gap
        time.pass_by(HELD)
        assert not guard.is_too_soon(ENTER)


def test_typed_lines_may_follow_each_other_fast() -> None:
    time = FingerTime()
    guard = EnterGuard(time.clock)
    for line in ("one", "two", "three"):
        guard.show("", STEP)
        guard.show(line, STEP, is_typed=True)
        assert not guard.is_too_soon(ENTER)
        time.pass_by(0.03)


def test_a_second_enter_behind_the_one_that_closed_another_screen_is_ignored() -> None:
    for text, is_typed in (("", False), ("a draft", True)):
        time = FingerTime()
        guard = EnterGuard(time.clock)
        guard.show(text, STEP, is_typed=is_typed)
        time.pass_by(60)
        guard.press_elsewhere(ENTER)
        time.pass_by(0.2)
        assert guard.is_too_soon(ENTER)
        guard.show("typed since", STEP, is_typed=True)
        assert not guard.is_too_soon(ENTER)
        guard.show(text, STEP, is_typed=is_typed)
        time.pass_by(QUIET)
        assert not guard.is_too_soon(ENTER)
