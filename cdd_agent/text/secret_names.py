"""Names of environment variables that suggest secrets."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from cdd_agent.pattern import Pattern

# A whole word of a name, or the end of a compound such as PGPASSWORD.
_SECRET = Pattern(
    r"""
    ( (?<![A-Z0-9]) (KEYS? | PASS | PAT)
    | TOKENS? | SECRETS? | PASSWORDS? | PASSWD | PASSPHRASES? | CREDENTIALS? | _PWD
    | (API|ACCESS|AUTH|ENCRYPTION|MASTER|PRIVATE|SECRET|SIGNING|SSH) KEYS?
    | (DB|PG|SSH|SUDO) PASS
    ) [0-9]* (?![A-Z0-9])
    """,
    re.IGNORECASE | re.VERBOSE,
)


# each started program gets an environment, mostly with the same names
@lru_cache(4096)
def is_secret_name(
    name: str, *, hide: tuple[str, ...] = (), passed: tuple[str, ...] = ()
) -> bool:
    """True if `hide` names the variable (also as `AWS_*`), or if its name suggests a
    secret and it is not `passed`.
    """
    if _is_named(name, hide):
        return True
    return bool(_SECRET.search(name)) and not _is_named(name, passed)


def _is_named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)
