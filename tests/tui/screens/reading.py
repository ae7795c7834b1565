"""When a screen has read what it shows."""

from tests.tui.person import Person


def has_read(person: Person) -> bool:
    return all(worker.group == "turn" for worker in person.app.workers)
