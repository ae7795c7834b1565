"""Regular expressions that cost nothing until they are used.

To compile all expressions of the program takes longer than to start Python many times,
and a command uses few of them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, AnyStr, Generic


class Pattern(Generic[AnyStr]):
    """A regular expression that is compiled when it is first used.

    It has the methods of `re.Pattern`. Modules use it for their constants.
    """

    search: Callable[..., re.Match[AnyStr] | None]
    match: Callable[..., re.Match[AnyStr] | None]
    fullmatch: Callable[..., re.Match[AnyStr] | None]
    finditer: Callable[..., Iterator[re.Match[AnyStr]]]
    findall: Callable[..., list[Any]]
    split: Callable[..., list[AnyStr | Any]]
    sub: Callable[..., AnyStr]
    subn: Callable[..., tuple[AnyStr, int]]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Compile the expression. Python calls this only while a method is missing, so
        later calls take no detour.
        """
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


_METHODS = frozenset(
    ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")
)
