"""The items of a list in spec.yaml, with the unwritten changes of a conversation."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.tickets.placeholders import is_placeholder

Clean = Callable[[str], str]
"""Returns a text in the form that the draft stores and compares."""


class SpecLine(Struct, frozen=True):
    text: str
    """Empty for an area without items."""
    area: str = ""
    """Empty for a criterion."""


class Item(Struct, frozen=True):
    id: str
    line: SpecLine
    written: SpecLine | None = None
    """The line of spec.yaml that this item is based on; None for a new item."""
    check: str = ""
    is_removed: bool = False
    """True if approval removes the line from spec.yaml."""

    @property
    def is_changed(self) -> bool:
        return self.is_removed or self.line != self.written


class ItemChange(Struct, frozen=True):
    """A new item, or a change of the item with this id."""

    id: str = ""
    text: str = ""
    area: str = ""
    check: str = ""
    remove: bool = False


class RebasedItems(Struct, frozen=True):
    items: "ItemList"
    dropped: tuple[Item, ...] = ()
    """Changes that were dropped because the user changed or removed the line in the
    file.
    """


class ItemList(Struct, frozen=True):
    """The items of one list. An immutable value: each change returns another list.
    Items from the file keep the file's order.
    """

    prefix: str
    noun: str
    """The name of an item in messages to the model."""
    default_area: str = ""
    items: tuple[Item, ...] = ()
    last_number: int = 0

    @property
    def written(self) -> tuple[SpecLine, ...]:
        return tuple(item.written for item in self.items if item.written is not None)

    @property
    def present(self) -> tuple[Item, ...]:
        """The items that approval writes, area by area. A template's placeholders are
        omitted once there is a real item.
        """
        areas = defaultdict[str, list[Item]](list)
        for item in self.items:
            if not item.is_removed:
                areas[item.line.area].append(item)
        present: list[Item] = []
        for items in areas.values():
            present += [item for item in items if item.line.text] or items[:1]
        real = [item for item in present if not _is_placeholder(item.line)]
        is_template = all(map(_is_placeholder, self.written))
        return tuple(real if real and is_template else present)

    @property
    def lines(self) -> tuple[SpecLine, ...]:
        return tuple(item.line for item in self.present)

    # Changes by the model

    def apply(self, change: ItemChange, clean: Clean) -> "ItemList":
        """Apply a change. A change that `problems` refuses has no effect, except that
        an unknown id makes a new item.
        """
        item = self._find(change.id) if change.id else self._find_same(change, clean)
        if item is None:
            return self._with_new(change, clean)
        if change.remove:
            return self._without_item(item) if change.id else self
        return self._with_item(_changed_item(item, change, clean))

    def problems(self, change: ItemChange, clean: Clean) -> Iterator[str]:
        """Yield the problems of a change, for the model."""
        if change.id and self._find(change.id) is None:
            yield (
                f"There is no {self.noun} with the id `{change.id}`. Use an id of the"
                " spec as it stands, or leave `id` out for a new one."
            )
        if change.remove and not change.id:
            yield f"To remove a {self.noun}, give its `id`."
        if change.text and is_placeholder(clean(change.text)):
            yield (
                f"`{change.text.strip()}` is a placeholder. Leave the {self.noun} out"
                " until it is known."
            )
        if not change.id and not clean(change.text):
            yield f"A {self.noun} has neither `id` nor `text`."

    def _find(self, key: str) -> Item | None:
        for item in self.items:
            if item.id == key.strip() and not item.is_removed:
                return item
        return None

    def _find_same(self, change: ItemChange, clean: Clean) -> Item | None:
        text = clean(change.text)
        area = clean(change.area)
        if not text:
            return None
        for item in sorted(self.items, key=lambda item: item.is_removed):
            line = item.line
            if clean(line.text) == text and (not area or clean(line.area) == area):
                return item
        return None

    def _with_new(self, change: ItemChange, clean: Clean) -> "ItemList":
        text = clean(change.text)
        if change.remove or is_placeholder(text) or self._was_issued(change.id):
            return self
        line = SpecLine(text, clean(change.area) or self.default_area)
        number = self.last_number + 1
        item = Item(f"{self.prefix}{number}", line, check=clean(change.check))
        place = len(self.items)
        for index, other in enumerate(self.items, 1):
            if other.line.area == line.area:
                place = index
        items = (*self.items[:place], item, *self.items[place:])
        return replace(self, items=items, last_number=number)

    def _was_issued(self, key: str) -> bool:
        number = key.strip().removeprefix(self.prefix)
        return number.isdecimal() and int(number) <= self.last_number

    def _with_item(self, changed: Item) -> "ItemList":
        items = [changed if item.id == changed.id else item for item in self.items]
        return replace(self, items=tuple(items))

    def _without_item(self, removed: Item) -> "ItemList":
        if removed.written is not None:
            return self._with_item(replace(removed, is_removed=True))
        items = [item for item in self.items if item.id != removed.id]
        return replace(self, items=tuple(items))

    # Changes by the user in the file

    def rebase(self, lines: Sequence[SpecLine]) -> RebasedItems:
        """Rebase the list on the current lines of the file.

        A change of a line that the user has changed or removed is dropped. A new item
        stays after its predecessor.
        """
        if tuple(lines) == self.written:
            return RebasedItems(self)
        if tuple(lines) == self.lines:
            written = [replace(item, written=item.line) for item in self.present]
            return RebasedItems(replace(self, items=tuple(written)))
        items = self._items_of(lines)
        known_ids = {item.id for item in self.items}
        count = sum(item.id not in known_ids for item in items)
        dropped = self._find_dropped(items, has_new_lines=count > 0)
        rebased = replace(
            self, items=self._in_order(items), last_number=self.last_number + count
        )
        return RebasedItems(rebased, dropped)

    def _items_of(self, lines: Sequence[SpecLine]) -> list[Item]:
        """Return an item for each line: the item based on this line, a proposed item
        with the same text, or a new item.
        """
        based = [item for item in self.items if item.written is not None]
        matches = _match(lines, based, lambda item: item.written)
        used = {item.id for item in matches if item is not None}
        proposed = [
            item
            for item in self.items
            if item.id not in used and item.is_changed and not item.is_removed
        ]
        unmatched = [
            line for line, item in zip(lines, matches, strict=True) if item is None
        ]
        adopted = deque(_match(unmatched, proposed, lambda item: item.line))
        number = self.last_number
        items = []
        for line, match in zip(lines, matches, strict=True):
            item = match or adopted.popleft()
            if item is None:
                number += 1
                item = Item(f"{self.prefix}{number}", line)
            items.append(replace(item, written=line))
        return items

    def _find_dropped(
        self, items: Sequence[Item], *, has_new_lines: bool
    ) -> tuple[Item, ...]:
        """Return changed items whose line is gone from the file. If the file has no new
        lines, the user removed the same line as the draft, so nothing is dropped.
        """
        present = {item.id for item in items}
        dropped = []
        for item in self.items:
            if item.written is None or item.id in present or not item.is_changed:
                continue
            if has_new_lines or not item.is_removed:
                dropped.append(item)
        return tuple(dropped)

    def _in_order(self, items: Sequence[Item]) -> tuple[Item, ...]:
        present = {item.id for item in items}
        followers = defaultdict[str, list[Item]](list)
        last = ""
        for item in self.items:
            if item.id in present:
                last = item.id
            elif item.written is None:
                followers[last].append(item)
        ordered: list[Item] = []
        for item in items:
            ordered += [item, *followers[item.id]]
        return (*ordered, *followers[""])


def _changed_item(item: Item, change: ItemChange, clean: Clean) -> Item:
    text = clean(change.text)
    area = clean(change.area)
    line = item.line
    if not is_placeholder(text) and text != clean(line.text):
        line = replace(line, text=text)
    if area and area != clean(line.area):
        line = replace(line, area=area)
    check = clean(change.check) or item.check
    return replace(item, line=line, check=check, is_removed=False)


def _match(
    lines: Sequence[SpecLine],
    items: Sequence[Item],
    words: Callable[[Item], SpecLine | None],
) -> list[Item | None]:
    """Return the item for each line. Among equal items, unchanged ones are used
    first.
    """
    waiting = defaultdict[SpecLine | None, deque[Item]](deque)
    for item in sorted(items, key=lambda item: item.is_changed):
        waiting[words(item)].append(item)
    return [waiting[line].popleft() if waiting.get(line) else None for line in lines]


def _is_placeholder(line: SpecLine) -> bool:
    return bool(line.text) and is_placeholder(line.text)
