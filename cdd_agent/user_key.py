"""The user's key on this machine. With it cdd recognises what it has written itself: a
repository cannot bring the like.
"""

import hashlib
import hmac
import secrets
from contextlib import suppress

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.user_folders import state_folder

_NAME = "cache-key"


def sign(data: bytes) -> str:
    """Return the signature of data; empty without a home folder, or one that cannot be
    written.
    """
    try:
        key = _load_key()
    except (OSError, BadInput):
        return ""
    return hmac.new(key, data, hashlib.sha256).hexdigest() if key else ""


def _load_key() -> bytes | None:
    """Return the key, created on first use."""
    folder = state_folder()
    if folder is None:
        return None
    file = folder / _NAME
    if not file.exists():
        with suppress(FileExistsError):
            create_exclusive(file, secrets.token_bytes(32), 0o600)
    return file.read_bytes()
