"""Which environment variables hold secrets, as far as their names tell."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

# A whole word of a variable's name, or the end of one that other words are glued to, as
# in PGPASSWORD.
_SECRET = re.compile(
    r"""
    ( (?<![A-Z0-9]) (KEYS? | PASS | PAT)
    | TOKENS? | SECRETS? | PASSWORDS? | PASSWD | PASSPHRASES? | CREDENTIALS? | _PWD
    | (API|ACCESS|AUTH|ENCRYPTION|MASTER|PRIVATE|SECRET|SIGNING|SSH) KEYS?
    | (DB|PG|SSH|SUDO) PASS
    ) [0-9]* (?![A-Z0-9])
    """,
    re.IGNORECASE | re.VERBOSE,
)


# each program that is started is given an environment, mostly of the same names
@lru_cache(4096)
def is_secret_name(
    name: str, *, hide: tuple[str, ...] = (), passed: tuple[str, ...] = ()
) -> bool:
    """Whether a variable is one that `hide` names (also `AWS_*`), or looks like a
    secret and is not `passed`.
    """
    return _named(name, hide) or (
        _SECRET.search(name) is not None and not _named(name, passed)
    )


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)
