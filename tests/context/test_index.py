"""What is looked into, that it is as the disk is now, and what becomes of a cache that
cannot be used.
"""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cdd_agent.context import cache, indexing, project_map
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.walk import walk
from cdd_agent.threads import in_thread
from tests.context.projects import committed, git, made, paths, ranked
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.tables import each_row


def found(project: ProjectMap, text: str = "a range") -> set[str]:
    project.update()
    return {file.path for file in project.rank(Query(text))}


def caches(root: Path) -> list[Path]:
    return list((root / ".cdd" / "cache").glob("*.sqlite"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project, set up with `.cdd`."""
    return made(
        tmp_path / "project",
        {".cdd/config.yaml": "", "a.py": "range = 1\n", "b.py": "slate = 1\n"},
    )


def test_changed_new_moved_and_removed_files(root: Path) -> None:
    project = ProjectMap(root)
    assert found(project) == {"a.py"}

    made(root, {"b.py": "range = 2\n", "new/c.py": "range = 3\n"})
    assert found(project) == {"a.py", "b.py", "new/c.py"}

    (root / "a.py").rename(root / "z.py")
    (root / "b.py").unlink()
    assert found(project) == {"z.py", "new/c.py"}


def test_a_change_of_the_same_size_just_after_reading_is_seen(root: Path) -> None:
    project = ProjectMap(root)
    for word in ("slate", "range", "plate", "range"):
        about = (root / "a.py").stat()
        (root / "a.py").write_text(f"{word} = 1\n")
        os.utime(root / "a.py", ns=(about.st_atime_ns, about.st_mtime_ns))
        assert found(project) == ({"a.py"} if word == "range" else set())


def test_what_is_read_once_is_not_read_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a.py", "b.py"):
        os.utime(root / path, (1, 1))
    monkeypatch.setattr(indexing, "_RACY", 0)
    ProjectMap(root).update()
    read: list[str] = []
    plain = indexing.read_source_file
    monkeypatch.setattr(
        indexing,
        "read_source_file",
        lambda top, path, sets: read.append(path) or plain(top, path, sets),
    )

    made(root, {"b.py": "range = 1\n"})
    assert found(ProjectMap(root)) == {"a.py", "b.py"}

    assert read == ["b.py"]


def test_what_is_parsed_once_is_parsed_again_only_when_it_has_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    plain = project_map.definitions
    monkeypatch.setattr(
        project_map,
        "definitions",
        lambda path, data: parsed.append(path) or plain(path, data),
    )
    made(root, {"b.py": "def range(): pass\n"})
    project = ProjectMap(root)
    assert found(project) == found(project) == {"a.py", "b.py"}
    assert sorted(parsed) == ["a.py", "b.py"]

    made(root, {"b.py": "def slate(): pass\n\n\ndef range(): pass\n"})

    assert found(project) == {"a.py", "b.py"}
    assert project.outline("b.py").split() == [
        "1",
        "def",
        "slate():",
        "pass",
        "4",
        "def",
        "range():",
        "pass",
    ]
    assert sorted(parsed) == ["a.py", "b.py", "b.py"]


def test_the_cache_stays_the_same_file_whatever_changes(root: Path) -> None:
    project = ProjectMap(root)
    found(project)
    (before,) = [place.stat().st_ino for place in caches(root)]

    for changed in (
        {"b.py": "slate = 1\n"},
        {"b.py": ""},
        {"b.py": b"\0"},
        {"c.py": "range = 2\n"},
        {"c.py": "=/<\n"},
    ):
        made(root, changed)
        assert "a.py" in found(project)
    (root / "b.py").unlink()
    found(project)

    assert [place.stat().st_ino for place in caches(root)] == [before]


def test_never_more_is_held_at_once_than_memory_has_room_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_MOST_TOGETHER", 3)
    monkeypatch.setattr(indexing, "_MOST_BYTES", 2_000_000)
    sizes = [1, 1, 1, 1, 900_000, 900_000, 900_000, 50_000_000, 900_000, 3_000_000]

    held = [
        [stamp[0] for stamp in some.values()]
        for some in indexing.portions(
            {f"{n}.py": (size, 0, 0, 0) for n, size in enumerate(sizes)}
        )
    ]

    assert held == [
        [1, 1, 1],
        [1, 900_000, 900_000],
        [900_000, 50_000_000],
        [900_000, 3_000_000],
    ]
    made(root, {f"{number}.py": f"range = {number}\n" for number in range(7)})
    assert len(found(ProjectMap(root))) == 8


@pytest.mark.parametrize("module", ["fts5", "fts0"])
def test_words_are_found_in_names_of_all_kinds(
    root: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Also if SQLite was built without full-text search."""
    monkeypatch.setattr(cache, "_SEARCH", cache._SEARCH.replace("fts5", module))
    project = ProjectMap(root)
    assert found(project) == {"a.py"}

    made(
        root,
        {
            "camel.js": "x(parseRangeOf)\n",
            "RangeServer.txt": "\n",
            "HTTPRange.go": "x\n",
            "no.py": "arrangement\n",
        },
    )

    assert found(project) == {"a.py", "camel.js", "RangeServer.txt", "HTTPRange.go"}
    assert found(project, "parseRangeOf") == {
        "camel.js",
        "a.py",
        "RangeServer.txt",
        "HTTPRange.go",
    }
    assert found(project, "http server") == {"RangeServer.txt", "HTTPRange.go"}
    made(root, {"camel.js": "x(parseSlateOf)\n"})
    assert found(project, "parse") == {"camel.js"}
    assert found(project) == {"a.py", "RangeServer.txt", "HTTPRange.go"}


def test_a_name_in_code_is_not_the_same_with_other_capitals(root: Path) -> None:
    made(
        root,
        {"one.py": "getX1 = 1\n", "two.py": "getx1 = 1\n", "three.py": "GETX1 = 1\n"},
    )

    (uses,) = [
        file.path
        for file in ranked(root, "see `getX1`")
        if any("uses `getX1`" in why for why in file.reasons)
    ]

    assert uses == "one.py"


def test_an_index_of_files_that_are_mostly_gone_is_made_anew(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_ALLOWED_DEAD", 2)
    project = ProjectMap(root)
    for number in range(12):
        made(root, {"b.py": f"range = {number}\n"})
        assert found(project) == {"a.py", "b.py"}
    (cache,) = caches(root)
    project.close()

    ((last,),) = (
        sqlite3.connect(cache)
        .execute("SELECT value FROM facts WHERE name = 'number'")
        .fetchall()
    )
    assert int(last) < 12


def test_what_is_not_looked_into(root: Path) -> None:
    lines = "range = 1\n" * 3
    made(
        root,
        {
            ".env": lines,
            "app.min.js": lines,
            "dist/app.js": lines,
            "node_modules/x/index.js": lines,
            "pkg/vendor/y.go": lines,
            "package-lock.json": lines,
            "made.py": f"# Code generated by tool. DO NOT EDIT.\n{lines}",
            "binary.py": b"range\0" + lines.encode(),
            "line.js": "range(" * 20_000,
            "large.py": lines * 50_000,
            "own/mine.py": lines,
            "tool/out.py": lines,
            "vendor/mine.py": lines,
            ".gitattributes": (
                "tool/*.py linguist-generated\nvendor/mine.py -linguist-vendored\n"
            ),
        },
    )
    (root / "link.py").symlink_to(root / "a.py")
    (root / "out").symlink_to("/usr")
    os.mkfifo(root / "pipe.py")

    project = ProjectMap(root, own=("own",))

    assert found(project) == {"a.py", "vendor/mine.py"}


def test_git_ignores_decide_what_belongs_to_the_project(root: Path) -> None:
    git(root, "init", "--quiet")
    made(root, {".gitignore": "out/\n", "out/a.py": "range = 1\n"})

    assert found(ProjectMap(root)) == {"a.py"}


def test_texts_that_are_not_unicode_and_names_that_no_prompt_can_have(
    root: Path,
) -> None:
    for name in (os.fsdecode(b"caf\xe9.py"), "zwei\nZeilen.py", "caf\u202eyp.py"):
        (root / name).write_text("range = 1\n")
    made(root, {"c.py": b"range = '\xff\xfe'\n", "größe.py": "größe = 1  # range\n"})

    project = ProjectMap(root)

    assert found(project) == {"a.py", "c.py", "größe.py"}
    assert found(project, "die Größe") == {"größe.py"}


@each_row("encoded", ENCODED)
def test_definitions_of_a_file_in_any_encoding(
    tmp_path: Path, encoded: Encoded
) -> None:
    encoded.write(tmp_path)
    lines = encoded.text.splitlines()
    heads = [number for number, line in enumerate(lines, 1) if "def " in line]
    project = ProjectMap(tmp_path)
    project.update()
    outline = project.outline(encoded.path)
    for number in heads:
        assert f"{number}  {lines[number - 1]}" in outline
    name = lines[heads[1] - 1].removeprefix("def ").partition("(")[0]
    assert [file.path for file in project.rank(Query(name))] == [encoded.path]


@pytest.mark.long
def test_hostile_files_take_no_long_time(root: Path) -> None:
    made(
        root,
        {
            "nested.py": "range\n" + "[" * 100_000 + "\n" + "]" * 100_000,
            "nested.js": "range;\n" + "{(\n" * 100_000,
            "line.c": "range" + "(a, " * 1_250_000,
            "spaces.c": ("a " * 2_000 + "\n") * 40 + "range\n",
            "names.py": "".join(
                f"def range_{number}(): pass\n" for number in range(20_000)
            ),
        },
    )
    project = ProjectMap(root)

    assert {"a.py", "names.py"} <= found(project)
    assert project.outline("nested.py") == ""


def test_the_cache_is_no_part_of_the_project(root: Path) -> None:
    committed(root, "Start", {})
    found(ProjectMap(root))

    assert len(caches(root)) == 1
    assert git(root, "status", "--short") == ""
    assert not any("cache" in entry.text for entry in walk(root))


def test_without_a_cdd_folder_nothing_is_written(tmp_path: Path) -> None:
    root = made(tmp_path, {"a.py": "range = 1\n"})

    assert paths(root, "a range") == ["a.py"]
    assert [entry.name for entry in root.iterdir()] == ["a.py"]


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100, None])
def test_a_damaged_cache_is_made_anew(root: Path, damage: bytes | None) -> None:
    project = ProjectMap(root)
    found(project)
    project.close()
    (place,) = caches(root)
    whole = place.read_bytes()
    place.write_bytes(
        whole[:5_000] + b"\xff" * (len(whole) - 5_000) if damage is None else damage
    )

    assert found(ProjectMap(root)) == {"a.py"}
    assert found(ProjectMap(root)) == {"a.py"}


def test_a_cache_that_fails_under_way_is_made_anew(root: Path) -> None:
    project = ProjectMap(root)
    found(project)
    (place,) = caches(root)
    other = sqlite3.connect(place)
    other.execute("DROP TABLE words")
    other.commit()
    other.close()

    assert found(project) == {"a.py"}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE words SET term = x'010203' WHERE term = 'range'",
        "UPDATE words SET term = 'other' WHERE term = 'range'",
        "UPDATE files SET imported = 42, length = 'long'",
        "UPDATE texts_data SET block = x'010203'",
        "UPDATE files SET path = 42 WHERE number = 1",
        "INSERT OR REPLACE INTO facts VALUES ('number', 'many')",
    ],
)
def test_a_cache_that_holds_what_nobody_has_put_in_is_made_anew(
    root: Path, damage: str
) -> None:
    project = ProjectMap(root)
    found(project)
    project.close()
    (root / "b.py").unlink()
    other = sqlite3.connect(caches(root)[0])
    other.execute(damage)
    other.commit()
    other.close()

    assert found(ProjectMap(root)) == {"a.py"}
    assert found(ProjectMap(root)) == {"a.py"}


@pytest.mark.parametrize("fault", [ValueError, TypeError])
def test_a_fault_that_is_not_the_caches_is_raised(
    root: Path, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise fault("a fault in ranking")

    monkeypatch.setattr("cdd_agent.context.ranking.Ranking.files", fail)
    with pytest.raises(fault, match="a fault in ranking"):
        found(ProjectMap(root))


def test_a_cache_to_which_somebody_else_writes_for_long_is_left_to_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_BUSY_SECONDS", 0.1)
    found(ProjectMap(root))
    (place,) = caches(root)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = place.stat().st_ino

    assert found(ProjectMap(root)) == {"a.py"}

    assert place.stat().st_ino == before
    other.execute("UPDATE files SET length = length")
    other.execute("COMMIT")
    other.close()


def test_a_cache_of_another_version_is_made_anew(root: Path) -> None:
    project = ProjectMap(root)
    found(project)
    project.close()
    other = sqlite3.connect(caches(root)[0])
    other.execute("PRAGMA user_version = 99")
    other.close()

    assert found(ProjectMap(root)) == {"a.py"}


def test_a_cache_that_somebody_else_made_is_not_opened(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ProjectMap(root)
    found(project)
    project.close()
    (foreign,) = caches(root)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody"))
    foreign.chmod(0)

    assert found(ProjectMap(root)) == {"a.py"}
    assert len(caches(root)) == 2
    assert (
        stat.S_IMODE((tmp_path / "somebody" / "cdd" / "cache-key").stat().st_mode)
        == 0o600
    )


@each_row("link", [".cdd", ".cdd/cache"])
def test_a_cache_folder_that_leads_elsewhere_is_not_used(
    tmp_path: Path, link: str
) -> None:
    elsewhere = made(tmp_path / "elsewhere", {"keep.txt": ""})
    root = made(tmp_path / "project", {"a.py": "range = 1\n"})
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(elsewhere)

    assert found(ProjectMap(root)) == {"a.py"}
    assert [entry.name for entry in elsewhere.iterdir()] == ["keep.txt"]


def test_where_nothing_can_be_written_it_works_in_memory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".cdd" / "cache").write_text("a file is in the way")
    assert found(ProjectMap(root)) == {"a.py"}

    (root / ".cdd" / "cache").unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "a.py"))
    assert found(ProjectMap(root)) == {"a.py"}
    assert caches(root) == []


def test_two_at_once_come_to_the_same(root: Path) -> None:
    made(root, {f"part_{number}.py": f"range_{number} = 1\n" for number in range(150)})
    child = (
        "import sys; from pathlib import Path; from cdd_agent.context.project_map"
        " import ProjectMap;ProjectMap(Path(sys.argv[1])).update()"
    )
    others = [
        subprocess.Popen([sys.executable, "-c", child, str(root)]) for _ in range(2)
    ]
    projects = [ProjectMap(root) for _ in range(3)]
    threads = [threading.Thread(target=project.update) for project in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait() for other in others] == [0, 0]

    for project in (*projects, ProjectMap(root)):
        project.update()
        assert len(project.rank(Query("range"), most=1_000)) == 151


def test_the_past_is_read_as_far_as_it_is_new_and_anew_where_it_was_rewritten(
    root: Path,
) -> None:
    committed(root, "Start", {})
    project = ProjectMap(root)
    project.update()
    committed(root, "Weather", {"b.py": "slate = 2\n"})
    assert "changed by past commits with similar messages" in _reasons(
        project, "b.py", "weather"
    )

    git(root, "commit", "--amend", "--quiet", "--message", "Roofs")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "--quiet", "--prune=now")

    assert "changed by past commits with similar messages" in _reasons(
        project, "b.py", "roofs"
    )


def test_going_to_and_fro_between_branches_counts_each_commit_once(root: Path) -> None:
    committed(root, "Start", {".gitignore": ".cdd\n"})
    git(root, "checkout", "--quiet", "-b", "topic")
    committed(root, "Weather", {"a.py": "range = 2\n", "b.py": "slate = 2\n"})
    git(root, "checkout", "--quiet", "-b", "other", "HEAD~1")
    committed(root, "Rain", {"c.py": "gutter = 1\n"})
    project = ProjectMap(root)

    for branch in ("topic", "other", "topic", "other", "topic"):
        git(root, "checkout", "--quiet", branch)
        project.update()

    assert "changed with `a.py` in 2 commits" in _reasons(project, "b.py", "a range")
    git(root, "checkout", "--quiet", "other")
    assert "changed with `a.py` in 1 commit" in _reasons(project, "b.py", "a range")


def test_commits_of_a_merged_branch_count_once(root: Path) -> None:
    committed(root, "Start", {".gitignore": ".cdd\n"})
    git(root, "checkout", "--quiet", "-b", "topic")
    committed(root, "Weather", {"a.py": "range = 2\n", "b.py": "slate = 2\n"})
    git(root, "checkout", "--quiet", "-b", "other", "HEAD~1")
    committed(root, "Rain", {"c.py": "gutter = 1\n"})
    git(root, "merge", "--quiet", "--no-edit", "topic")
    project = ProjectMap(root)

    for _ in range(3):
        project.update()

    assert "changed with `a.py` in 2 commits" in _reasons(project, "b.py", "a range")


def test_a_message_that_looks_like_the_log_changes_nothing(root: Path) -> None:
    committed(root, "Start", {})
    committed(
        root,
        "Weather\n\n\x01--output=x\x02\x01<"
        + "a" * 40
        + "\x02m\x01>"
        + "a" * 40
        + "\x02m\x02z.py",
        {"b.py": "slate = 2\n"},
    )
    committed(root, "Roofs", {"b.py": "slate = 3\n"})
    project = ProjectMap(root)

    assert "changed by past commits with similar messages" in _reasons(
        project, "b.py", "roofs"
    )
    committed(root, "Rain", {"b.py": "slate = 4\n"})
    assert "changed by past commits with similar messages" in _reasons(
        project, "b.py", "rain"
    )


def test_a_project_in_a_folder_of_a_repository_knows_its_own_part(
    tmp_path: Path,
) -> None:
    committed(tmp_path, "Start", {"inner/a.py": "x = 1\n", "outer.py": "x = 1\n"})
    committed(tmp_path, "Weather", {"inner/a.py": "x = 2\n", "outer.py": "x = 2\n"})

    assert paths(tmp_path / "inner", "weather") == ["a.py"]


def _reasons(project: ProjectMap, path: str, text: str) -> tuple[str, ...]:
    project.update()
    return next(
        (file.reasons for file in project.rank(Query(text)) if file.path == path), ()
    )


async def test_a_look_that_nobody_waits_for_any_more_stops(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, has_begun, go_on, read = (
        asyncio.get_running_loop(),
        asyncio.Event(),
        threading.Event(),
        list[str](),
    )

    def slow(top: Path, path: str, charsets: Charsets) -> bytes:
        read.append(path)
        loop.call_soon_threadsafe(has_begun.set)
        go_on.wait(60)
        return b"range\n"

    monkeypatch.setattr(indexing, "read_source_file", slow)
    project = ProjectMap(root)
    look = asyncio.ensure_future(in_thread(project.update, name="a look"))
    await asyncio.wait_for(has_begun.wait(), 60)

    look.cancel()
    await asyncio.wait([look])
    go_on.set()
    while any(each.name == "a look" for each in threading.enumerate()):
        await asyncio.sleep(0.01)

    assert read == ["a.py"]
    monkeypatch.undo()
    assert found(project) == {"a.py"}
