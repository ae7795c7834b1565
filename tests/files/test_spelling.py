"""A name that a text gives is the entry on the disk that it means, whatever its normal
form; on disks that ignore case, whatever its case.
"""

import os
import sys
import unicodedata
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.files.atomic import respell
from cdd_agent.files.globs import Glob
from cdd_agent.files.index import FileIndex
from cdd_agent.files.named import NamedFile, named_files
from cdd_agent.files.paths import PathRefused, confine, confine_folder
from cdd_agent.files.read import read_source
from cdd_agent.files.spelling import (
    SIGNS_OF_TWO_FORMS,
    find_misspelled,
    has_entry,
    ignores_spelling,
)
from cdd_agent.project.search import glob_files, list_files
from tests.support.insensitive_disk import DISKS, InsensitivePath
from tests.support.tables import each_row

COMPOSED = {
    "an umlaut": "größe.txt",
    "a Vietnamese name": "tệp ngữ.md",
    "a Japanese name": "ガイド.md",
    "a Korean name": "한글.md",
    "a Greek name": "άλφα.txt",
    "a folder": "naïve/größe/a.txt",
    "a folder and no other letter": "é/a.txt",
    "a name without a suffix": "Café",
    "a hidden file": ".größe",
}
FORMS = ("NFC", "NFD")


def in_form(form: str, text: str) -> str:
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def put(root: Path, name: str, content: bytes = b"x") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def files(root: Path) -> dict[str, bytes]:
    plain = Path(str(root))
    return {
        place.relative_to(plain).as_posix(): place.read_bytes()
        for place in plain.rglob("*")
        if place.is_file()
    }


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("text", ["NFC", "NFD"])
@each_row("there", ["NFC", "NFD"])
@each_row("name", COMPOSED.values(), ids=COMPOSED)
def test_a_name_in_another_normal_form_is_the_file_that_has_it(
    tmp_path: Path, name: str, there: str, text: str, disk: type[Path]
) -> None:
    put(tmp_path, in_form(there, name))
    root = disk(tmp_path)
    assert confine(root, in_form(text, name)) == PurePosixPath(in_form(there, name))


SINGLETONS = {
    "Angstrom": ("\u212b.txt", "\u00c5.txt"),
    "Kelvin, which is a plain letter": ("\u212a.txt", "K.txt"),
    "marks in another order": ("a\u0323\u0307.txt", "a\u0307\u0323.txt"),
}


@each_row("names", SINGLETONS.values(), ids=SINGLETONS)
@each_row("turned", [False, True])
def test_names_that_normalisation_makes_equal_are_one(
    tmp_path: Path, names: tuple[str, str], turned: bool
) -> None:
    there, text = reversed(names) if turned else names
    put(tmp_path, there)
    assert confine(tmp_path, text) == PurePosixPath(there)


def test_the_signs_of_two_forms_are_all_that_unicode_has() -> None:
    signs = map(chr, range(128, sys.maxunicode + 1))
    composed = {in_form("NFC", sign) for sign in signs}
    assert {sign for sign in composed if sign.isascii()} == SIGNS_OF_TWO_FORMS


def test_a_name_that_is_there_as_written_is_that_file(tmp_path: Path) -> None:
    for form in FORMS:
        put(tmp_path, in_form(form, "größe.txt"))
    for form in FORMS:
        name = in_form(form, "größe.txt")
        assert confine(tmp_path, name) == PurePosixPath(name)


def test_a_name_that_several_files_have_in_other_forms_is_refused_and_names_them(
    tmp_path: Path,
) -> None:
    mixed = "e\u0301\u00e9.txt"
    put(tmp_path, in_form("NFC", mixed))
    put(tmp_path, in_form("NFD", mixed))
    with pytest.raises(PathRefused) as refused:
        confine(tmp_path, mixed)
    assert ascii("\u00e9\u00e9.txt") in refused.value.message
    assert ascii("e\u0301e\u0301.txt") in refused.value.message


def test_compatible_letters_are_different_names(tmp_path: Path) -> None:
    put(tmp_path, "ﬁle.txt")  # a ligature
    assert confine(tmp_path, "file.txt") == PurePosixPath("file.txt")


def test_case_matters_where_the_disk_tells_it_apart(tmp_path: Path) -> None:
    put(tmp_path, "Readme.md")
    assert confine(tmp_path, "README.md") == PurePosixPath("README.md")


@each_row(
    "disk", [disk for disk in DISKS.values() if issubclass(disk, InsensitivePath)]
)
@each_row(
    ("there", "text"),
    [
        ("Readme.md", "README.md"),
        ("src/App.py", "SRC/app.py"),
        ("größe/GRÖSSE.txt", "Größe/GRÖSSE.TXT"),
        (in_form("NFD", "Äpfel.txt"), "äpfel.txt"),
        ("ärger", "ÄRGER"),
    ],
)
def test_a_disk_that_ignores_case_has_the_last_word(
    tmp_path: Path, there: str, text: str, disk: type[Path]
) -> None:
    put(tmp_path, there)
    assert confine(disk(tmp_path), text) == PurePosixPath(there)
    assert has_entry(disk(tmp_path), there)
    assert not has_entry(disk(tmp_path), text)


def test_a_hard_link_with_another_case_is_another_file(tmp_path: Path) -> None:
    put(tmp_path, "readme.md")
    os.link(tmp_path / "readme.md", tmp_path / "README.md")
    for name in ("readme.md", "README.md"):
        assert confine(tmp_path, name) == PurePosixPath(name)
        assert has_entry(tmp_path, name)


@each_row(
    "disk", [disk for disk in DISKS.values() if issubclass(disk, InsensitivePath)]
)
def test_a_hard_link_with_other_letters_is_not_meant(
    tmp_path: Path, disk: type[Path]
) -> None:
    put(tmp_path, "readme.md")
    os.link(tmp_path / "readme.md", tmp_path / "other.md")
    assert confine(disk(tmp_path), "README.md") == PurePosixPath("readme.md")


@each_row("disk", DISKS.values(), ids=DISKS)
def test_paths_that_the_disk_finds_under_another_spelling_are_listed(
    tmp_path: Path, disk: type[Path]
) -> None:
    for name in ("a.txt", "src/Main.c", "src/deep/x"):
        put(tmp_path, name)
    root = disk(tmp_path)
    is_insensitive = issubclass(disk, InsensitivePath)
    assert ignores_spelling(root) is is_insensitive
    paths = ["a.txt", "A.txt", "src/main.c", "src/Main.c", "SRC/deep/x", "b.txt"]
    wrong = ["A.txt", "src/main.c", "SRC/deep/x"] if is_insensitive else []
    assert find_misspelled(root, paths) == wrong


def test_a_name_behind_a_link_to_a_folder_is_found_too(tmp_path: Path) -> None:
    put(tmp_path, in_form("NFD", "real/größe.txt"))
    (tmp_path / "link").symlink_to("real")
    text = in_form("NFC", "link/größe.txt")
    assert confine(tmp_path, text) == PurePosixPath(in_form("NFD", text))


def test_a_link_out_of_the_project_under_another_normal_form_is_refused(
    tmp_path: Path,
) -> None:
    root = tmp_path / "app"
    root.mkdir()
    (root / in_form("NFD", "größe")).symlink_to(tmp_path)
    with pytest.raises(PathRefused, match="link"):
        confine(root, in_form("NFC", "größe/a.txt"))


NAMES = st.text(
    st.sampled_from("aäAÄéeK\u212a\u0301\u0323\u0307한ガ.1 "), min_size=1, max_size=6
).filter(lambda text: text == text.strip() and text.strip(".") and len(text) < 7)


@given(
    NAMES,
    st.sampled_from(("NFC", "NFD", "")),
    st.sampled_from(("NFC", "NFD", "")),
    st.sampled_from(list(DISKS.values())),
)
def test_any_name_in_any_normal_form_is_the_one_file_that_has_it(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    there: str,
    text: str,
    disk: type[Path],
) -> None:
    root = tmp_path_factory.mktemp("names")
    on_disk = in_form(there, name) if there else name
    put(root, on_disk)
    given_text = in_form(text, name) if text else name
    assert confine(disk(root), given_text) == PurePosixPath(on_disk)


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row(
    ("old", "new"),
    [
        ("readme.md", "README.md"),
        ("src/readme.md", "src/README.md"),
        (in_form("NFD", "größe.txt"), in_form("NFC", "größe.txt")),
        (in_form("NFC", "größe.txt"), in_form("NFD", "größe.txt")),
    ],
)
@each_row("data", [None, b"changed"])
def test_an_entry_gets_another_spelling_of_its_name(
    tmp_path: Path, old: str, new: str, data: bytes | None, disk: type[Path]
) -> None:
    put(tmp_path, old, b"first")
    (tmp_path / old).chmod(0o751)
    root = disk(tmp_path)
    respell(root / old, root / new, data)
    assert files(tmp_path) == {new: data or b"first"}
    assert (tmp_path / new).stat().st_mode & 0o777 == 0o751


# --- Wherever a name is used ----------------------------------------------------------


@each_row("text", FORMS)
@each_row("there", FORMS)
def test_whoever_looks_at_a_file_means_the_one_that_has_the_name(
    tmp_path: Path, there: str, text: str
) -> None:
    on_disk, typed = in_form(there, "naïve/größe.txt"), in_form(text, "naïve/größe.txt")
    put(tmp_path, on_disk, b"good\n")
    folder, typed_folder = (name.partition("/")[0] for name in (on_disk, typed))
    names = ProjectNames.collect(tmp_path, [on_disk], f"change `{on_disk}`")
    index = FileIndex(tmp_path)
    index.build()
    found = {
        "a folder to work in": str(confine_folder(tmp_path, typed_folder)) == folder,
        "read": read_source(tmp_path, typed).text == "good\n",
        "listed": list_files(tmp_path, typed_folder) == list_files(tmp_path, folder),
        "matched": glob_files(tmp_path, in_form(text, "*/größ?.txt")).lines
        == (on_disk,),
        "a pattern": Glob(tmp_path, in_form(text, "n*/größ?.txt")).matches(on_disk),
        "named": named_files(f"in `{typed}`", [on_disk])
        == [NamedFile(typed, (on_disk,))],
        "named by its end": named_files(in_form(text, "größe.txt"), [on_disk])
        == [NamedFile(in_form(text, "größe.txt"), (on_disk,))],
        "a file of the project": names.is_file(typed),
        "a file that the task names": names.is_named(typed),
        "a folder of the project": names.is_folder(typed_folder),
        "found by its beginning": index.find(in_form(text, "größ"), 5, 5.0)
        == [on_disk],
    }
    assert [name for name, is_found in found.items() if not is_found] == []


def test_a_text_may_tell_two_files_apart_that_look_the_same() -> None:
    paths = [in_form(form, "größe.txt") for form in FORMS]
    for path in paths:
        assert named_files(f"`{path}`", paths) == [NamedFile(path, (path,))]
