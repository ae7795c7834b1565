"""The store of contents that must not enter git."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.files.atomic import NotRead, NotWritten
from cdd_agent.git.content_store import ContentGone, ContentStore
from tests.git.repositories import git
from tests.support.examples import count_examples

UGLY = (b"", b"\0", b"a\r\nb\r", "ü€".encode("utf-16"), b"x" * (9 << 20))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_contents_come_back_under_the_ids_that_git_gives(
    tmp_path: Path, object_format: str
) -> None:
    git(tmp_path, "init", "-q", f"--object-format={object_format}", "repository")
    store = ContentStore(tmp_path / "contents", object_format)
    for number, content in enumerate(UGLY):
        place = tmp_path / f"file-{number}"
        place.write_bytes(content)
        expected = git(
            tmp_path / "repository", "hash-object", "--no-filters", str(place)
        )

        assert not store.has(expected)
        assert store.put(place) == expected
        assert store.put(content) == expected
        assert store.has(expected)
        assert store.read(expected) == content
    assert len(list(store.folder.iterdir())) == len(UGLY)


@settings(max_examples=count_examples(30))
@given(contents=st.lists(st.binary(max_size=50)))
def test_each_content_is_saved_once_and_comes_back(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    store = ContentStore(tmp_path_factory.mktemp("store") / "contents")
    ids = [store.put(content) for content in contents]

    assert [store.read(content_id) for content_id in ids] == contents
    assert len(set(ids)) == len(set(contents))


def test_only_the_user_can_read_what_is_saved(tmp_path: Path) -> None:
    folder = tmp_path / "contents"
    folder.mkdir(mode=0o755)
    public = tmp_path / "public"
    public.write_bytes(b"secret")
    public.chmod(0o644)
    store = ContentStore(folder)
    content_id = store.put(public)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.find(content_id).stat().st_mode) == 0o600


def test_a_file_that_cannot_be_read_is_named_and_saves_nothing(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "contents")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "folder", "link", "pipe"):
        with pytest.raises(NotRead) as caught:
            store.put(tmp_path / name)
        assert caught.value.path == tmp_path / name
    assert list(store.folder.iterdir()) == []


def test_a_store_that_cannot_be_written_is_the_users_to_repair(tmp_path: Path) -> None:
    (tmp_path / "contents").write_text("a file")
    with pytest.raises(NotWritten):
        ContentStore(tmp_path / "contents").put(b"x")


def test_a_content_that_is_gone_is_reported(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "contents")
    content_id = store.put(b"x")
    shutil.rmtree(store.folder)

    assert not store.has(content_id)
    with pytest.raises(ContentGone):
        store.read(content_id)
    assert store.put(b"x") == content_id
    assert store.read(content_id) == b"x"


@pytest.mark.parametrize("text", ["", "..", "../outside", "a" * 39, "A" * 40, "a" * 64])
def test_an_id_never_leads_outside_the_store(tmp_path: Path, text: str) -> None:
    store = ContentStore(tmp_path / "contents")
    store.put(b"x")
    (tmp_path / "outside").write_text("private")

    assert not store.has(text)
    with pytest.raises(ContentGone):
        store.chunks(text)
