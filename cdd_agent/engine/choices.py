"""The files that a person wants a run's prompts to show, and to leave out:
`/context +src/app.py -docs/`.
"""

from pathlib import PurePosixPath

from cdd_agent.files.json_file import JsonFile


class Choices(JsonFile, frozen=True):
    """Files, and folders with all that is in them; in the order of their names."""

    pinned: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    seal: str = ""
    """The user's signature of what is pinned, in the file alone."""

    def pin(self, path: str) -> "Choices":
        """The same with this shown in any case. Of what was left out that is taken
        back, and no more.
        """
        if path in self.without:
            return Choices(
                pinned=self.pinned,
                without=tuple(place for place in self.without if place != path),
            )
        return Choices(pinned=tuple(sorted({*self.pinned, path})), without=self.without)

    def leave_out(self, path: str) -> "Choices":
        """The same with this left out. Of what was pinned that is taken back, and no
        more.
        """
        if path in self.pinned:
            return Choices(
                pinned=tuple(place for place in self.pinned if place != path),
                without=self.without,
            )
        return Choices(pinned=self.pinned, without=tuple(sorted({*self.without, path})))

    def leaves_out(self, path: str) -> bool:
        places = {path, *(str(folder) for folder in PurePosixPath(path).parents)}
        return not places.isdisjoint(self.without) and path not in self.pinned
