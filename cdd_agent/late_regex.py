"""Regular expressions that are compiled when they are first used.

Compiling those of all modules takes as long as the rest of their import, and most are
for what rarely comes: languages that a project does not have, forms of a reply that a
model does not use.
"""

import re
from functools import cached_property
from typing import Any, cast


def late_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, to be used by its methods. A wrong pattern is noticed when it is
    used.
    """
    return cast("re.Pattern[str]", _LateRegex(pattern, flags))


class _LateRegex:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        """Of the compiled one: kept, so that only the first use takes this way."""
        value = getattr(self._compiled, name)
        self.__dict__[name] = value
        return value
