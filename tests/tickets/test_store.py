import errno
import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.spec_file import SpecFile
from cdd_agent.tickets.store import Ticket, TicketStore
from cdd_agent.tickets.templates import spec_template
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
        "user-auth",
        "AUTH",
        "tickets/feature-user-auth",
        "tickets/feature-user-auth/",
        "./tickets/feature-user-auth/spec.yaml",
        "tickets/feature-user-auth/plan.md",
        "tickets/../tickets/feature-user-auth",
        "{root}/tickets/feature-user-auth",
        "{root}/tickets/feature-user-auth/execution-state.json",
    ],
)
def test_a_ticket_is_found_by_its_path_or_a_part_of_its_slug(
    store: TicketStore, reference: str
) -> None:
    found = store.find(reference.format(root=store.root), EnoughOfSlug.PART)
    assert found.slug == "feature-user-auth"


@each_row("words", ["AUTH", "user-auth", "Feature-user-a"])
def test_the_beginning_and_whole_words_are_enough_for_commands_that_only_show(
    store: TicketStore, words: str
) -> None:
    assert store.find(words, EnoughOfSlug.WORDS).slug == "feature-user-auth"


@each_row("words", ["AUTH", "user-auth", "Feature-user-a", "feature", "tickets/feat"])
def test_commands_that_start_something_take_no_part_of_a_slug(
    store: TicketStore, words: str
) -> None:
    with pytest.raises(BadInput, match="There is no ticket"):
        store.find(words)
    assert store.find("Feature-User-Auth").slug == "feature-user-auth"


@each_row("part", ["h", "uth", "aut", "er-auth", "-auth", "auth-"])
def test_no_other_part_is_enough_for_commands_that_only_show(
    store: TicketStore, part: str
) -> None:
    with pytest.raises(BadInput) as caught:
        store.find(part, EnoughOfSlug.WORDS)
    assert "feature-user-auth" in caught.value.hint


@each_row("noted", ["feature-user-aut", "feature", "Feature-User-Auth", "auth"])
def test_no_other_ticket_takes_the_place_of_one_that_is_gone(
    store: TicketStore, noted: str
) -> None:
    assert store.find_slug("feature-user-auth").slug == "feature-user-auth"
    with pytest.raises(BadInput, match="There is no ticket"):
        store.find_slug(noted)


def test_an_exact_slug_wins_over_a_prefix(store: TicketStore) -> None:
    assert store.find("bug-login").slug == "bug-login"


def test_an_ambiguous_part_names_the_candidates(store: TicketStore) -> None:
    for part in ("feature-user", "user"):
        with pytest.raises(BadInput, match="feature-user-auth, feature-user-roles"):
            store.find(part, EnoughOfSlug.PART)


def test_the_beginning_of_a_slug_wins_over_another_part(tmp_path: Path) -> None:
    _ticket(tmp_path / "tickets/auth-page")
    _ticket(tmp_path / "tickets/bug-auth")
    assert TicketStore(tmp_path).find("auth", EnoughOfSlug.PART).slug == "auth-page"


@pytest.mark.parametrize(
    "reference", ["feature-usr-auth", "fua", "uesr-auth", "featur-user-auth"]
)
def test_an_unknown_ticket_names_those_near(store: TicketStore, reference: str) -> None:
    with pytest.raises(BadInput) as caught:
        store.find(reference, EnoughOfSlug.PART)

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
        ("ユーザーログイン", "feature-ユーザーログイン"),
        ("ユーサ\u3099ーロク\u3099イン", "feature-ユーザーログイン"),
        ("Вход пользователя", "feature-вход-пользователя"),
        ("تسجيل الدخول", "feature-تسجيل-الدخول"),
        ("हिन्दी में लॉगिन", "feature-हिन्दी-में-लॉगिन"),
        ("한국어 로그인", "feature-한국어-로그인"),
        ("Σύνδεσης", "feature-σύνδεσης"),
        ("用户登录 v2", "feature-用户登录-v2"),
        ("Việt Nam", "feature-viet-nam"),
        ("ＡＢＣ ﬁx ①", "feature-abc-fix-1"),
        ("🚀 Launch 🚀", "feature-launch"),
        ("1️⃣ first", "feature-1-first"),
        ("می\u200cخواهم", "feature-میخواهم"),
        ("left\u202eright", "feature-leftright"),
    ],
)
def test_a_name_becomes_a_slug(tmp_path: Path, name: str, slug: str) -> None:
    ticket = TicketStore(tmp_path).create("feature", name)

    assert (ticket.slug, ticket.folder) == (slug, tmp_path / "tickets" / slug)
    assert ticket.read_spec().missing()
    assert list(ticket.folder.iterdir()) == [ticket.spec_path]


@each_row(
    "name", ["", "!!!", "🚀🔥", "\u3164", "\u0947", "feature", "x" * 101, "語" * 61]
)
def test_a_name_that_makes_no_slug_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        TicketStore(tmp_path).create("feature", name)

    assert list(tmp_path.iterdir()) == []


def test_an_unknown_type_names_those_allowed(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        TicketStore(tmp_path).create("epic", "x")

    assert "feature, bug" in caught.value.hint


def test_a_ticket_that_is_there_is_not_touched(store: TicketStore) -> None:
    with pytest.raises(BadInput, match="already exists"):
        store.create("bug", "login")

    assert store.find("bug-login").spec_path.read_text(encoding="utf-8") == "title: x\n"


def test_of_two_that_make_the_same_ticket_one_does(store: TicketStore) -> None:
    def make(number: int) -> bool:
        try:
            return store.create("spike", "same").slug == "spike-same"
        except BadInput as error:
            return "already exists" not in error.message

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(8))) == 1


def test_the_projects_own_template_wins(tmp_path: Path) -> None:
    text = "# Ours\ntitle: x # one line\ntype: bug\nteam: [a]\n"
    _ticket(tmp_path / ".cdd" / "templates", "bug.yaml", text)

    ticket = TicketStore(tmp_path).create("bug", "No words: none")

    assert ticket.spec_path.read_text(encoding="utf-8") == text.replace(
        "title: x", "title: 'No words: none'"
    )


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


@each_row("kind", TicketType)
@given(name=st.text(max_size=120))
def test_a_template_with_any_title_reads_as_that_title(
    kind: TicketType, name: str
) -> None:
    title = replace(TicketSpec(), title=name).title
    if not title:
        return
    plain = spec_template(Path("/nowhere"), kind)

    text = spec_template(Path("/nowhere"), kind, name)

    assert TicketSpec.from_yaml(text).title == title
    assert text.split("\n")[2:] == plain.split("\n")[2:]


@each_row(
    "reference",
    [
        "feature-größe-ユーザ",
        "feature-gro\u0308ße-ユーサ\u3099",
        "FEATURE-GRÖSSE-ユーザ",
        "feature-gr",
        "Feature-GRO\u0308",
        "tickets/feature-größe-ユーザ",
        "feature-größe-ユーザ/",
    ],
)
def test_a_ticket_is_found_in_any_spelling(tmp_path: Path, reference: str) -> None:
    # The folder is decomposed, as some disks have it.
    folder = unicodedata.normalize("NFD", "feature-größe-ユーザ")
    _ticket(tmp_path / "tickets" / folder)
    _ticket(tmp_path / "tickets" / "feature-grund")
    if reference == "feature-gr":
        reference = "feature-grö"
    if reference.startswith("tickets/"):
        reference = f"tickets/{folder}"

    store = TicketStore(tmp_path)
    ticket = store.find(reference.rstrip("/"), EnoughOfSlug.WORDS)

    assert ticket.slug == "feature-größe-ユーザ"
    assert ticket.folder.name == folder


def test_of_two_that_differ_in_case_the_exact_one_is_found(tmp_path: Path) -> None:
    _ticket(tmp_path / "tickets/bug-A")
    _ticket(tmp_path / "tickets/bug-a")
    if len(list((tmp_path / "tickets").iterdir())) == 1:
        pytest.skip("this disk does not tell them apart")

    assert TicketStore(tmp_path).find("bug-A").folder.name == "bug-A"
    with pytest.raises(BadInput, match="Several tickets match"):
        TicketStore(tmp_path).find("BUG-A")


@each_row(
    ("files", "slugs"),
    [
        (["tickets/a/bug-x/spec.yaml"], ["bug-x"]),
        (["tickets/a/b/bug-x/plan.md"], ["bug-x"]),
        (["tickets/a/b/c/bug-x/spec.yaml"], []),
        (["specs/tickets/a/bug-x/spec.yaml"], ["bug-x"]),
        (["tickets/bug-x/spec.yml"], ["bug-x"]),
        (["tickets/a/bug-x/spec.yml"], ["bug-x"]),
        # Nothing below a ticket is one.
        (["tickets/bug-x/spec.yaml", "tickets/bug-x/old/spec.yaml"], ["bug-x"]),
        (["tickets/bug-x/spec.yml", "tickets/bug-x/old/plan.md"], ["bug-x"]),
        (["tickets/.git/bug-x/spec.yaml"], []),
        (["tickets/a/notes.md"], []),
        # One whose name is not spelled right is shown, and says so.
        (["tickets/bug-x/Spec.yaml"], ["bug-x"]),
        (["tickets/a/bug-x/SPEC.YAML"], ["bug-x"]),
        (["tickets/bug-x/spec.yaml", "specs/tickets/a/bug-x/plan.md"], ["bug-x"]),
    ],
)
def test_tickets_are_found_in_groups_and_with_either_name_of_the_spec(
    tmp_path: Path, files: list[str], slugs: list[str]
) -> None:
    for file in files:
        _ticket((tmp_path / file).parent, Path(file).name)

    store = TicketStore(tmp_path)

    assert [ticket.slug for ticket in store.list()] == slugs
    for slug in slugs:
        assert store.find(slug).folder == (tmp_path / files[0]).parent
        assert store.find(str(Path(files[0]).parent)).slug == slug


def test_a_group_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    _ticket(tmp_path / "tickets/a/bug-x")
    (tmp_path / "tickets/a/up").symlink_to(tmp_path / "tickets")

    assert [ticket.slug for ticket in TicketStore(tmp_path).list()] == ["bug-x"]


def test_two_of_one_name_are_named_when_asked_for(tmp_path: Path) -> None:
    _ticket(tmp_path / "tickets/a/bug-x")
    _ticket(tmp_path / "tickets/b/bug-x")
    store = TicketStore(tmp_path)

    assert [ticket.slug for ticket in store.list()] == ["bug-x"]
    for reference in ("bug-x", "bug", "tickets/b/bug-x"):
        with pytest.raises(BadInput) as caught:
            store.find(reference, EnoughOfSlug.WORDS)
        assert "tickets/a/bug-x, tickets/b/bug-x" in caught.value.message


@each_row(
    ("names", "told"),
    [
        (["spec.yaml", "spec.yml"], ["spec.yaml and spec.yml"]),
        (["Spec.yaml"], ["spec.yaml", "Did you mean Spec.yaml?"]),
        (["SPEC.YML", "plan.md"], ["Did you mean SPEC.YML?"]),
        (["plan.md"], ["has no spec.yaml"]),
    ],
)
def test_a_spec_that_cannot_be_chosen_is_named(
    tmp_path: Path, names: list[str], told: list[str]
) -> None:
    for name in names:
        _ticket(tmp_path / "tickets/bug-x", name)
    ticket = TicketStore(tmp_path).find("bug-x")

    for read in (ticket.read_spec, SpecFile(ticket).read):
        if names == ["plan.md"] and read != ticket.read_spec:
            continue
        with pytest.raises(BadInput) as caught:
            read()
        for words in told:
            assert words in caught.value.message


def test_a_spec_yml_is_read_written_and_owned(tmp_path: Path) -> None:
    _ticket(tmp_path / "tickets/bug-x", "spec.yml", "title: x # mine\n")
    store = TicketStore(tmp_path)
    ticket = store.find("bug-x")
    file = SpecFile(ticket)

    assert ticket.read_spec().title == "x"
    read = file.read()
    file.write(read, replace(read.spec, title="y"))

    assert [path.name for path in ticket.folder.iterdir()] == ["spec.yml"]
    assert ticket.spec_path.read_text(encoding="utf-8") == "title: y # mine\n"
    assert store.owns(ticket.folder / "spec.yml")
    assert store.owns(ticket.folder / "spec.yaml")
    assert not store.owns(tmp_path / "docs" / "spec.yml")


def test_a_plan_is_read_with_its_tickets_slug(store: TicketStore) -> None:
    ticket = store.find("bug-login")
    ticket.plan_path.write_text("### Step 1: Look\n", encoding="utf-8")

    assert ticket.read_plan().ticket_slug == "bug-login"
    assert ticket.shown(ticket.plan_path) == "tickets/bug-login/plan.md"


def test_a_missing_spec_says_how_to_write_one(store: TicketStore) -> None:
    """`/new` is no help: it refuses the name of a ticket that exists."""
    ticket = store.find("bug-login")
    ticket.spec_path.unlink()
    ticket.plan_path.write_text("### Step 1: Look\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"bug-login has no spec\.yaml") as caught:
        store.find("bug-login").read_spec()

    assert "tickets/bug-login/spec.yaml" in caught.value.hint
    assert "`/socrates bug-login`" in caught.value.hint


def test_a_ticket_that_was_renamed_meanwhile_is_not_written_again(
    store: TicketStore,
) -> None:
    ticket = store.find("bug-login")
    ticket.folder.rename(ticket.folder.with_name("bug-sign-in"))
    with pytest.raises(BadInput) as caught:
        ticket.read_spec()

    assert "`cdd list`" in caught.value.hint
    assert "Write" not in caught.value.hint


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
