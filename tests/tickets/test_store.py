import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.tickets.store import Ticket, TicketStore
from tests.support.tables import each_row


@pytest.fixture
def store(tmp_path: Path) -> TicketStore:
    for slug in (
        "feature-user-auth",
        "feature-user-roles",
        "bug-login",
        "bug-login-slow",
    ):
        _ticket(tmp_path / "tickets" / slug)
    return TicketStore(tmp_path)


def _ticket(folder: Path, name: str = "spec.yaml", text: str = "title: x\n") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_tickets_are_listed_by_slug(store: TicketStore) -> None:
    (store.root / "tickets" / "notes").mkdir()
    _ticket(store.root / "tickets" / "spike-db", "plan.md")

    slugs = [ticket.slug for ticket in store.list()]

    assert slugs == [
        "bug-login",
        "bug-login-slow",
        "feature-user-auth",
        "feature-user-roles",
        "spike-db",
    ]


def test_a_project_without_tickets_has_none(tmp_path: Path) -> None:
    assert TicketStore(tmp_path).list() == []


def test_the_older_layout_is_found_and_comes_second(store: TicketStore) -> None:
    _ticket(store.root / "specs/tickets/bug-old")
    _ticket(store.root / "specs/tickets/bug-login")

    assert store.find("bug-old").folder == store.root / "specs/tickets/bug-old"
    assert store.find("bug-login").folder == store.root / "tickets/bug-login"


def test_tickets_dir_is_a_setting(tmp_path: Path) -> None:
    _ticket(tmp_path / "work" / "bug-a")

    assert (
        TicketStore(tmp_path, "work").find("bug-a").spec_path
        == tmp_path / "work/bug-a/spec.yaml"
    )


@pytest.mark.parametrize(
    "reference",
    [
        "feature-user-auth",
        "feature-user-a",
        "Feature-User-A",
        "tickets/feature-user-auth",
        "tickets/feature-user-auth/",
        "./tickets/feature-user-auth/spec.yaml",
        "tickets/feature-user-auth/plan.md",
        "tickets/../tickets/feature-user-auth",
        "{root}/tickets/feature-user-auth",
        "{root}/tickets/feature-user-auth/execution-state.json",
    ],
)
def test_a_ticket_is_found_by_slug_prefix_or_path(
    store: TicketStore, reference: str
) -> None:
    assert store.find(reference.format(root=store.root)).slug == "feature-user-auth"


def test_an_exact_slug_wins_over_a_prefix(store: TicketStore) -> None:
    assert store.find("bug-login").slug == "bug-login"


def test_an_ambiguous_prefix_names_the_candidates(store: TicketStore) -> None:
    with pytest.raises(BadInput, match="feature-user-auth, feature-user-roles"):
        store.find("feature-user")


@pytest.mark.parametrize(
    "reference", ["feature-usr-auth", "user-auth", "featur-user-auth"]
)
def test_an_unknown_ticket_names_those_near(store: TicketStore, reference: str) -> None:
    with pytest.raises(BadInput) as caught:
        store.find(reference)

    assert "feature-user-auth" in caught.value.hint


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "  ",
        "..",
        "../..",
        "/etc",
        "/",
        "a\0b",
        "x" * 300,
        "x" * 100_000,
        "a/" * 2000,
        ".",
        "~",
        "\ud800",
        "\n",
        "*",
    ],
)
def test_a_hostile_reference_is_bad_input(store: TicketStore, reference: str) -> None:
    with pytest.raises(BadInput) as caught:
        store.find(reference)

    assert len(caught.value.message) < 200


def test_a_link_out_of_the_project_is_outside(
    store: TicketStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    _ticket(elsewhere / "bug-theirs")
    (store.root / "link").symlink_to(elsewhere)

    with pytest.raises(BadInput, match="outside"):
        store.find("link/bug-theirs")


@each_row(
    ("name", "slug"),
    [
        ("User Auth", "feature-user-auth"),
        ("  user_auth!! ", "feature-user-auth"),
        ("feature-user-auth", "feature-user-auth"),
        ("Größe ändern", "feature-grosse-andern"),
        ("../../etc/passwd", "feature-etc-passwd"),
        ("v2", "feature-v2"),
    ],
)
def test_a_name_becomes_a_slug(tmp_path: Path, name: str, slug: str) -> None:
    ticket = TicketStore(tmp_path).create("feature", name)

    assert (ticket.slug, ticket.folder) == (slug, tmp_path / "tickets" / slug)
    assert ticket.read_spec().missing()
    assert list(ticket.folder.iterdir()) == [ticket.spec_path]


@each_row("name", ["", "!!!", "日本", "feature", "x" * 101])
def test_a_name_that_makes_no_slug_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        TicketStore(tmp_path).create("feature", name)

    assert list(tmp_path.iterdir()) == []


def test_an_unknown_type_names_those_allowed(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        TicketStore(tmp_path).create("epic", "x")

    assert "feature, bug" in caught.value.hint


def test_a_ticket_that_is_there_is_not_touched(store: TicketStore) -> None:
    with pytest.raises(BadInput, match="is there already"):
        store.create("bug", "login")

    assert store.find("bug-login").spec_path.read_text(encoding="utf-8") == "title: x\n"


def test_of_two_that_make_the_same_ticket_one_does(store: TicketStore) -> None:
    def make(number: int) -> bool:
        try:
            return store.create("spike", "same").slug == "spike-same"
        except BadInput as error:
            return "is there already" not in error.message

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(8))) == 1


def test_the_projects_own_template_wins(tmp_path: Path) -> None:
    _ticket(tmp_path / ".cdd" / "templates", "bug.yaml", "title: Ours\ntype: bug\n")

    assert TicketStore(tmp_path).create("bug", "a").read_spec().title == "Ours"


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "tickets").mkdir()
    (tmp_path / "tickets" / "bug-a").write_text("a file in the way", encoding="utf-8")

    with pytest.raises(BadInput, match=r"tickets/bug-a/spec.yaml could not be written"):
        TicketStore(tmp_path).create("bug", "a")


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(BadInput, match="No space left"):
        TicketStore(tmp_path).create("bug", "a")
    assert list((tmp_path / "tickets").rglob("*.yaml*")) == []


def test_a_plan_is_read_with_its_tickets_slug(store: TicketStore) -> None:
    ticket = store.find("bug-login")
    ticket.plan_path.write_text("### Step 1: Look\n", encoding="utf-8")

    assert ticket.read_plan().ticket_slug == "bug-login"
    assert ticket.shown(ticket.plan_path) == "tickets/bug-login/plan.md"


def test_a_missing_plan_says_how_to_make_one(store: TicketStore) -> None:
    with pytest.raises(BadInput, match=r"bug-login .*plan\.md") as caught:
        store.find("bug-login").read_plan()

    assert "/plan bug-" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "reason"), [(b" \n", "is empty"), (b"\xff\xfe", "is not UTF-8")]
)
def test_an_unusable_plan_is_bad_input(
    store: TicketStore, content: bytes, reason: str
) -> None:
    ticket = store.find("bug-login")
    ticket.plan_path.write_bytes(content)

    with pytest.raises(BadInput, match=f"plan.md {reason}"):
        ticket.read_plan()


def test_a_folder_in_place_of_a_file_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").mkdir()

    with pytest.raises(BadInput, match="cannot be read"):
        Ticket("bug-a", tmp_path, tmp_path).read_spec()
