"""Locks on files, which end with their process: `filelock` without its locks for many
readers, which need SQLite.

It takes 15 ms to import: whoever locks something imports this when they do.
"""

from cdd_agent.lean_import import import_without

import_without(["filelock._read_write", "filelock._async_read_write"], "filelock")

from filelock import FileLock, Timeout  # noqa: E402  # see above

__all__ = ["FileLock", "Timeout"]
