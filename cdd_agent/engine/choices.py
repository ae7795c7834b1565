"""Files that the user pinned to a run's prompts or excluded: `/context +src/app.py
-docs/`.
"""

from pathlib import PurePosixPath

from cdd_agent.files.json_file import JsonFile


class Choices(JsonFile, frozen=True):
    """Files and whole folders, sorted."""

    pinned: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    seal: str = ""
    """The user's signature of `pinned`; only in the file."""

    def pin(self, path: str) -> "Choices":
        """Return the choices with a file pinned. An excluded one is only included
        again.
        """
        if path in self.without:
            return Choices(
                pinned=self.pinned,
                without=tuple(place for place in self.without if place != path),
            )
        return Choices(pinned=tuple(sorted({*self.pinned, path})), without=self.without)

    def leave_out(self, path: str) -> "Choices":
        """Return the choices with a file excluded. A pinned one is only unpinned."""
        if path in self.pinned:
            return Choices(
                pinned=tuple(place for place in self.pinned if place != path),
                without=self.without,
            )
        return Choices(pinned=self.pinned, without=tuple(sorted({*self.without, path})))

    def leaves_out(self, path: str) -> bool:
        places = {path, *(str(folder) for folder in PurePosixPath(path).parents)}
        return not places.isdisjoint(self.without) and path not in self.pinned
