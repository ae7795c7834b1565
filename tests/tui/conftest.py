"""Of the shell's tests."""

from tests.tui.resting import keys_take_no_time

__all__ = ["keys_take_no_time"]
