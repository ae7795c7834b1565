"""Loaded by each worker of a cluster on this machine, whose terminal it shares."""

import signal
from types import FrameType


def dask_setup(worker: object) -> None:
    """Ctrl+C is for the client, which then stops what the workers do. (Called by
    Dask.)
    """
    del worker
    # a handler is not inherited by what the worker starts
    signal.signal(signal.SIGINT, _ignored)


def _ignored(number: int, frame: FrameType | None) -> None:
    del number, frame
