"""Loaded by each worker of a cluster on this machine, whose terminal it shares."""

import signal
from types import FrameType


def dask_setup(worker: object) -> None:
    """Ignore Ctrl+C: the client receives it too, and stops the runs. Called by Dask."""
    del worker
    # unlike SIG_IGN, child processes do not inherit a handler
    signal.signal(signal.SIGINT, _ignore)


def _ignore(number: int, frame: FrameType | None) -> None:
    del number, frame
