"""Importing modules without others that they can do without and that take long, as
nobody here uses them.
"""

import sys
from collections.abc import Sequence
from importlib import import_module


def import_without(unused: Sequence[str], *wanted: str) -> None:
    """To Python a module that is None is one that is not installed, which the wanted
    ones put up with.

    The unused ones are such as no other thread can want meanwhile.
    """
    absent = [name for name in unused if name not in sys.modules]
    sys.modules |= dict.fromkeys(absent)  # type: ignore[arg-type]
    try:
        for name in wanted:
            import_module(name)
    finally:
        for name in absent:
            sys.modules.pop(name, None)  # it is gone where two threads do the same
