"""Names in replies that differ from those on the disk in normal form, and renames to
another spelling of the same name, in every form of reply and on every kind of disk.
"""

import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.changes.accepted_changes import accepted_changes
from cdd_agent.changes.build import change_set, creation, edit
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.review import Review
from cdd_agent.changes.targets import Protected
from tests.changes.applying import tree
from tests.support.insensitive_disk import DISKS, InsensitivePath
from tests.support.tables import each_row

OLD, NEW = "one\ntwo\nthree\n", "one\n2\nthree\n"
HUNK = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def quoted(name: str) -> str:
    """The name as git prints it by default."""
    return "".join(
        chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in name.encode()
    )


EDITS: dict[str, Callable[[str], str]] = {
    "whole, named in the info": lambda name: f"```text:{name}\n{NEW}```\n",
    "whole, named above": lambda name: f"`{name}`\n\n```text\n{NEW}```\n",
    "search and replace": lambda name: (
        f"{name}\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"
    ),
    "a diff": lambda name: f"```diff\n--- a/{name}\n+++ b/{name}\n{HUNK}```\n",
    "a diff of git": lambda name: (
        f"```diff\ndiff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{HUNK}```"
    ),
    "a diff of git with quoted names": lambda name: (
        f'```diff\ndiff --git "a/{quoted(name)}" "b/{quoted(name)}"\n'
        f'--- "a/{quoted(name)}"\n+++ "b/{quoted(name)}"\n{HUNK}```'
    ),
    "a patch": lambda name: (
        f"*** Begin Patch\n*** Update File: {name}\n@@\n one\n-two\n+2\n*** End Patch\n"
    ),
}
DELETIONS: dict[str, Callable[[str], str]] = {
    "a patch": lambda name: (
        f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
    ),
    "a diff of git": lambda name: (
        f"```diff\ndiff --git a/{name} b/{name}\ndeleted file mode 100644\n"
        "index 1..0\n```"
    ),
}
NAMES = ("größe.txt", "naïve/über/ガ.txt", "é/plain.txt")
FORMS = ("NFC", "NFD")


def in_form(form: str, text: str) -> str:
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def put(root: Path, name: str, text: str = OLD) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def read(root: Path, reply: str) -> ChangeSet:
    return change_set(root, parse_reply(reply).edits, EditPolicy(seen=None))


def allow_all(place: Path) -> bool:
    return False


ALL: Protected = allow_all


# --- A name in another normal form ----------------------------------------------------


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("text", FORMS)
@each_row("there", FORMS)
@each_row("name", NAMES)
@each_row("form", EDITS.values(), ids=EDITS)
def test_an_edit_changes_the_file_that_has_the_name(
    tmp_path: Path,
    form: Callable[[str], str],
    name: str,
    there: str,
    text: str,
    disk: type[Path],
) -> None:
    put(tmp_path, in_form(there, name))
    root = disk(tmp_path)
    read(root, form(in_form(text, name))).apply(root)
    assert tree(tmp_path) == {in_form(there, name): NEW}


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("text", FORMS)
@each_row("there", FORMS)
@each_row("name", NAMES)
@each_row("form", DELETIONS.values(), ids=DELETIONS)
def test_a_deletion_deletes_the_file_that_has_the_name(
    tmp_path: Path,
    form: Callable[[str], str],
    name: str,
    there: str,
    text: str,
    disk: type[Path],
) -> None:
    put(tmp_path, in_form(there, name))
    root = disk(tmp_path)
    read(root, form(in_form(text, name))).apply(root)
    assert tree(tmp_path) == {}


@each_row("text", FORMS)
@each_row("there", FORMS)
@each_row("name", NAMES)
def test_an_action_means_the_file_that_has_the_name(
    tmp_path: Path, name: str, there: str, text: str
) -> None:
    put(tmp_path, in_form(there, name))
    with pytest.raises(FileAlreadyExistsError):
        creation(tmp_path, in_form(text, name), NEW, ALL)
    edit(tmp_path, in_form(text, name), "two", "2", ALL).apply(tmp_path)
    assert tree(tmp_path) == {in_form(there, name): NEW}


@each_row("form", EDITS.values(), ids=EDITS)
def test_a_name_that_two_files_have_is_refused_with_both(
    tmp_path: Path, form: Callable[[str], str]
) -> None:
    put(tmp_path, in_form("NFC", "éé.txt"))
    put(tmp_path, in_form("NFD", "éé.txt"))
    with pytest.raises(ReplyRefused) as refused:
        read(tmp_path, form("e\u0301\u00e9.txt"))
    for there in FORMS:
        assert ascii(in_form(there, "éé.txt")) in refused.value.message


def test_a_file_given_and_deleted_under_two_spellings_is_refused(
    tmp_path: Path,
) -> None:
    composed, decomposed = (in_form(form, "größe.txt") for form in FORMS)
    put(tmp_path, decomposed)
    reply = EDITS["whole, named in the info"](decomposed) + "\n"
    with pytest.raises(ReplyRefused, match="one file"):
        read(tmp_path, reply + DELETIONS["a patch"](composed))


@given(
    st.text(st.sampled_from("aäéK\u212a\u0301\u0323한ガ.1"), min_size=1, max_size=5),
    st.sampled_from(("NFC", "NFD", "")),
    st.sampled_from(("NFC", "NFD", "")),
    st.sampled_from(list(EDITS.values())),
    st.sampled_from(list(DISKS.values())),
)
def test_no_edit_of_a_file_makes_a_second_one(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    there: str,
    text: str,
    form: Callable[[str], str],
    disk: type[Path],
) -> None:
    place = tmp_path_factory.mktemp("names")
    name = f"x{name}.txt"
    on_disk = in_form(there, name) if there else name
    put(place, on_disk)
    root = disk(place)
    read(root, form(in_form(text, name) if text else name)).apply(root)
    assert tree(place) == {on_disk: NEW}


# --- Another spelling of the same name ------------------------------------------------

SPELLINGS = {
    "another case": ("readme.md", "README.md"),
    "another case in a folder": ("docs/readme.md", "docs/Readme.md"),
    "composed": (in_form("NFD", "größe.txt"), in_form("NFC", "größe.txt")),
    "decomposed": (in_form("NFC", "größe.txt"), in_form("NFD", "größe.txt")),
    "both": (in_form("NFD", "ärger.txt"), in_form("NFC", "Ärger.txt")),
}


def whole(name: str, text: str = NEW) -> str:
    return f"```text:{name}\n{text}```\n\n"


def added(name: str) -> str:
    return f"*** Add File: {name}\n+one\n+2\n+three\n"


RENAMES: dict[str, Callable[[str, str], str]] = {
    "a diff of git": lambda old, new: (
        f"```diff\ndiff --git a/{old} b/{new}\nrename from {old}\nrename to {new}\n```"
    ),
    "a patch": lambda old, new: (
        f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n*** End Patch\n"
    ),
    "given again, then deleted": lambda old, new: (
        whole(new, OLD) + DELETIONS["a patch"](old)
    ),
}
CHANGING_RENAMES: dict[str, Callable[[str, str], str]] = {
    "a diff of git": lambda old, new: (
        f"```diff\ndiff --git a/{old} b/{new}\nrename from {old}\nrename to {new}\n"
        f"--- a/{old}\n+++ b/{new}\n{HUNK}```"
    ),
    "a patch": lambda old, new: (
        f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n@@\n one\n-two\n"
        "+2\n*** End Patch\n"
    ),
    "new, then deleted": lambda old, new: whole(new) + DELETIONS["a patch"](old),
    "deleted, then new": lambda old, new: DELETIONS["a patch"](old) + "\n" + whole(new),
    "deleted and added in a patch": lambda old, new: (
        f"*** Begin Patch\n*** Delete File: {old}\n{added(new)}*** End Patch\n"
    ),
    "added and deleted in a patch": lambda old, new: (
        f"*** Begin Patch\n{added(new)}*** Delete File: {old}\n*** End Patch\n"
    ),
    "deleted and new in a diff of git": lambda old, new: (
        f"```diff\ndiff --git a/{old} b/{old}\ndeleted file mode 100644\nindex 1..0\n"
        f"diff --git a/{new} b/{new}\nnew file mode 100644\n"
        f"--- /dev/null\n+++ b/{new}\n"
        "@@ -0,0 +1,3 @@\n+one\n+2\n+three\n```"
    ),
}


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", SPELLINGS.values(), ids=SPELLINGS)
@each_row("form", RENAMES.values(), ids=RENAMES)
def test_a_file_gets_another_spelling_of_its_name(
    tmp_path: Path,
    form: Callable[[str, str], str],
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    (tmp_path / old).chmod(0o755)
    root = disk(tmp_path)
    changes = read(root, form(old, new))
    assert changes.renamed == ((old, new),)
    changes.apply(root)
    assert tree(tmp_path) == {new: OLD}
    assert stat.S_IMODE((tmp_path / new).stat().st_mode) == 0o755


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", SPELLINGS.values(), ids=SPELLINGS)
@each_row("form", CHANGING_RENAMES.values(), ids=CHANGING_RENAMES)
def test_a_file_gets_another_spelling_of_its_name_and_other_lines(
    tmp_path: Path,
    form: Callable[[str, str], str],
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    (tmp_path / old).chmod(0o755)
    root = disk(tmp_path)
    changes = read(root, form(old, new))
    assert (changes.created, changes.deleted) == ((new,), (old,))
    changes.apply(root)
    assert tree(tmp_path) == {new: NEW}
    assert stat.S_IMODE((tmp_path / new).stat().st_mode) == 0o755


@each_row("disk", DISKS.values(), ids=DISKS)
def test_two_files_may_swap_their_cases_by_a_third_name(
    tmp_path: Path, disk: type[Path]
) -> None:
    put(tmp_path, "a.txt")
    root = disk(tmp_path)
    for old, new in (("a.txt", "A.txt"), ("A.txt", "a.txt")):
        read(root, RENAMES["a patch"](old, new)).apply(root)
        assert tree(tmp_path) == {new: OLD}


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", SPELLINGS.values(), ids=SPELLINGS)
@each_row("form", [RENAMES["a patch"], CHANGING_RENAMES["new, then deleted"]])
def test_a_rename_is_restored_if_a_later_file_cannot_be_written(
    tmp_path: Path,
    form: Callable[[str, str], str],
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    root = disk(tmp_path)
    changes = read(root, form(old, new) + "\n" + whole("zz/last.txt"))
    (tmp_path / "zz").write_text("in the way\n")
    with pytest.raises(Exception, match="zz"):
        changes.apply(root)
    assert tree(tmp_path) == {old: OLD, "zz": "in the way\n"}


@each_row("disk", DISKS.values(), ids=DISKS)
def test_a_rename_over_a_later_edit_is_refused(
    tmp_path: Path, disk: type[Path]
) -> None:
    put(tmp_path, "readme.md")
    root = disk(tmp_path)
    changes = read(root, RENAMES["a patch"]("readme.md", "README.md"))
    put(tmp_path, "readme.md", "edited\n")
    with pytest.raises(ReplyRefused, match="someone else"):
        changes.apply(root)
    assert tree(tmp_path) == {"readme.md": "edited\n"}


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", SPELLINGS.values(), ids=SPELLINGS)
@each_row(
    "form",
    [*RENAMES.values(), *CHANGING_RENAMES.values()],
    ids=[*RENAMES, *CHANGING_RENAMES],
)
def test_a_rename_is_reviewed_as_one_file(
    tmp_path: Path,
    form: Callable[[str, str], str],
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    root = disk(tmp_path)
    changes = read(root, form(old, new))
    review = Review.from_changes("1", changes)
    assert [file.verb for file in review.files] == ["rename"]
    accepted_changes(review, root, ALL).apply(root)
    assert list(tree(tmp_path)) == [new]


def test_two_files_that_stay_must_not_be_one_on_some_disks(tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    reply = RENAMES["a patch"]("a.txt", "README.md") + "\n" + whole("readme.md")
    with pytest.raises(ReplyRefused, match="same file"):
        read(tmp_path, reply)


def test_two_files_whose_names_differ_in_case_can_be_deleted(tmp_path: Path) -> None:
    for name in ("readme.md", "README.md"):
        put(tmp_path, name)
    delete = DELETIONS["a patch"]
    read(tmp_path, delete("readme.md") + "\n" + delete("README.md")).apply(tmp_path)
    assert tree(tmp_path) == {}


@each_row(
    "disk", [disk for disk in DISKS.values() if issubclass(disk, InsensitivePath)]
)
def test_a_new_folder_name_that_the_disk_takes_for_the_old_one_is_refused(
    tmp_path: Path, disk: type[Path]
) -> None:
    put(tmp_path, "src/a.txt")
    with pytest.raises(ReplyRefused, match="command"):
        read(disk(tmp_path), RENAMES["a patch"]("src/a.txt", "Src/a.txt"))
