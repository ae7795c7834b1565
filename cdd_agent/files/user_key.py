"""A secret key of the user on this machine. It signs cdd's own files, so that files in
a cloned repository are not mistaken for them.
"""

import hashlib
import hmac
import secrets
from contextlib import suppress

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.settings.user_folders import state_folder

_NAME = "cache-key"


def sign(data: bytes) -> str:
    """Return the signature of data; empty if there is no writable home folder."""
    try:
        key = _load_key()
    except (OSError, BadInput):
        return ""
    if not key:
        return ""
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def _load_key() -> bytes | None:
    folder = state_folder()
    if folder is None:
        return None
    file = folder / _NAME
    if not file.exists():
        with suppress(FileExistsError):
            create_exclusive(file, secrets.token_bytes(32), 0o600)
    return file.read_bytes()
