"""The files that a step declares, for every form in which plans write paths."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.tickets.declared_files import MOST_MATCHES, DeclaredFiles, declare_files
from cdd_agent.tickets.plan import AffectedFile, ImplementationPlan, PlanStep
from cdd_agent.tickets.store import Ticket
from tests.support.tables import each_row

Declare = Callable[..., DeclaredFiles]


@pytest.fixture(scope="module")
def declare(tmp_path_factory: pytest.TempPathFactory) -> Declare:
    """Declares files in a project that the rows share."""
    root = tmp_path_factory.mktemp("project")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "far.py").write_text("far = 1\n")
    files = (
        "README.md",
        "src/a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/deep/test_c.py",
        "src/notes.txt",
        "src/.env",
        "src/server.key",
        "src/ignored.log",
        "build/out.py",
        "app/[id]/page.tsx",
        "app/i/page.tsx",
        "with space/my file.py",
        "straße/größe.py",
        "what?.py",
    )
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / ".cdd").mkdir()
    (root / ".cdd/config.yaml").write_text("model: x\n")
    (root / "src/out.py").symlink_to(outside / "far.py")
    (root / "src/away").symlink_to(outside)
    (root / "src/inner.py").symlink_to(root / "src/a.py")
    (root / "src/innocent.py").symlink_to(root / "src/.env")
    return partial(declared_in, root)


def declared_in(root: Path, *files: AffectedFile | str) -> DeclaredFiles:
    affected = [
        file if isinstance(file, AffectedFile) else AffectedFile(file) for file in files
    ]
    return declare_files(root, PlanStep(1, files_affected=tuple(affected)))


IN_SRC = (
    "src/a.py",
    "src/b.py",
    "src/deep/c.py",
    "src/deep/test_c.py",
    "src/inner.py",
    "src/notes.txt",
)


@dataclass(frozen=True)
class Row:
    file: str
    paths: tuple[str, ...]
    covered: tuple[str, ...] = ()
    """Files that need not exist, and are declared, too."""
    not_covered: tuple[str, ...] = ("src2/a.py", "other.py")
    note: str = ""


@each_row(
    "row",
    [
        Row("src/a.py", ("src/a.py",), not_covered=("src/b.py", "a.py")),
        Row("./src/a.py", ("src/a.py",)),
        Row("src//./a.py", ("src/a.py",)),
        Row(r"src\deep\c.py", ("src/deep/c.py",)),
        Row("src/a.py:1-2", ("src/a.py",)),
        Row("@src/a.py#L3", ("src/a.py",)),
        Row("new.py", ("new.py",)),
        # Folders.
        Row("src/", IN_SRC, ("src/new.py", "src/x/y/new.py")),
        Row("src", IN_SRC, ("src/new.py",), ("src2/a.py", "src")),
        Row("src\\", IN_SRC, ("src/new.py",)),
        Row("./src/deep", IN_SRC[2:4], ("src/deep/d.py",), ("src/a.py",)),
        Row("README.md/", ("README.md",)),
        Row("docs/", (), ("docs/index.md",), note="new"),
        Row("docs", ("docs",), not_covered=("docs/index.md",)),
        Row("build/", ("build/out.py",), ("build/new.py",)),
        # Patterns.
        Row("src/*.py", (*IN_SRC[:2], IN_SRC[4]), ("src/z.py",), ("src/deep/c.py",)),
        Row("src/?.py", IN_SRC[:2], ("src/z.py",), ("src/zz.py",)),
        Row("./src/**/*.py", IN_SRC[:5], ("src/z.py", "src/q/z.py"), ("z.py",)),
        Row(r"src\**\*.py", IN_SRC[:5]),
        Row("**/test_*.py", ("src/deep/test_c.py",), ("test_new.py",)),
        Row("src/**", IN_SRC, ("src/z", "src/q/z")),
        Row("src/*/", IN_SRC[2:4], ("src/q/z.py",), ("src/z.py",)),
        Row("src/{a,b}.py", IN_SRC[:2], (), ("src/c.py",)),
        Row("src/*.{py,txt}", (*IN_SRC[:2], *IN_SRC[4:]), ("src/z.txt",)),
        Row("lib/*.py", (), ("lib/new.py",), ("lib/x/new.py",)),
        Row("migrations/*.sql", (), ("migrations/1.sql",), note="new"),
        Row("src/deep/*.py", IN_SRC[2:4], note="deleted"),
        # Names that look like patterns.
        Row("app/[id]/page.tsx", ("app/[id]/page.tsx",), (), ("app/i/page.tsx",)),
        Row("app/[id]/*.tsx", ("app/[id]/page.tsx",), (), ("app/i/page.tsx",)),
        Row("app/[id]/", ("app/[id]/page.tsx",), (), ("app/i/page.tsx",)),
        Row("app/[id]", ("app/[id]/page.tsx",)),
        Row("what?.py", ("what?.py",), (), ("whats.py",)),
        Row("with space/my file.py", ("with space/my file.py",)),
        Row("with space/*.py", ("with space/my file.py",)),
        Row("straße/*.py", ("straße/größe.py",), ("straße/übung.py",)),
        # Secrets and ignored files: only if they are declared by name.
        Row("src/.env", ("src/.env",)),
        Row("src/*.key", (), (), ("src/server.key", "src/new.key")),
        Row("src/.*", (), (), ("src/.env",)),
        Row("src/*.log", ()),
        Row("src/ignored.log", ("src/ignored.log",)),
        Row("**/*.yaml", (), ("x.yaml",), (".cdd/config.yaml",)),
        # What leads out of the project stays as it is written, and declares nothing.
        Row("src/out.py", ("src/out.py",)),
        Row("src/away/", ("src/away/",), (), ("src/away/far.py",)),
        Row("src/away/*.py", ("src/away/*.py",), (), ("src/away/far.py",)),
        Row("../x/*.py", ("../x/*.py",), (), ("x/a.py",)),
        Row("/etc/hosts", ("/etc/hosts",), (), ("etc/hosts",)),
        Row("./", ("./",)),
        Row("src/" + "{a,b}" * 9 + "*.py", ("src/" + "{a,b}" * 9 + "*.py",)),
    ],
    ids=lambda row: row.file,
)
def test_each_form_of_a_path_declares_its_files(declare: Declare, row: Row) -> None:
    declared = declare(AffectedFile(row.file, row.note))
    assert declared.paths == row.paths
    outside = "src/out.py", "src/away/", "src/away/*.py", "../x/*.py", "/etc/hosts"
    is_refused = row.file in (*outside, "./") or row.file.count("{") > 1
    for path in (*row.paths, *row.covered):
        assert declared.covers(path) is not is_refused, path
    for path in row.not_covered:
        assert not declared.covers(path), path


def test_the_files_of_a_step_come_in_its_order_and_once(declare: Declare) -> None:
    declared = declare("src/*.py", "./src/b.py", "new.py", "src/")
    first = ("src/b.py", "new.py")
    matched = ("src/a.py", "src/inner.py", *IN_SRC[2:4], "src/notes.txt")
    assert declared.paths == (*first, *matched)
    assert declared.named == first


def test_a_step_without_files_declares_none(declare: Declare) -> None:
    declared = declare()
    assert not declared
    assert declared.paths == ()
    assert not declared.covers("src/a.py")


@each_row(
    ("files", "lines"),
    [
        (("src/a.py",), ()),
        (("src/a.py:7",), ((7, 7),)),
        (("src/a.py:3-9",), ((3, 9),)),
        (("src/a.py:9-3",), ((3, 9),)),
        (("./src/a.py#L3-L9", "src/a.py:40", "src/a.py"), ((3, 9), (40, 40))),
        (("src/a.py:0",), ()),
        (("src/:3",), ()),
        (("src/*.py:3",), ()),
    ],
)
def test_lines_are_a_place_in_a_file(
    declare: Declare, files: tuple[str, ...], lines: tuple[tuple[int, int], ...]
) -> None:
    assert declare(*files).lines("src/a.py") == lines


@each_row(
    ("mine", "others", "overlap"),
    [
        (("a.py",), ("a.py",), True),
        (("a.py",), ("./a.py",), True),
        (("a.py",), ("b.py",), False),
        (("src/a.py",), ("src",), True),
        (("src/a.py",), ("src/",), True),
        (("src/new.py",), ("src/",), True),
        (("src2/new.py",), ("src/",), False),
        (("src/new.py",), ("src/*.py",), True),
        (("src/new.txt",), ("src/*.py",), False),
        (("src/q/new.py",), ("src/*.py",), False),
        (("src/",), ("src/deep/",), True),
        (("src/*.py",), ("src/deep/*.py",), True),
        (("src/",), ("app/",), False),
        (("src/*.py",), ("app/*.py",), False),
        (("**/test_*.py",), ("app/",), True),
        (("**/*.md",), ("src/a.py",), False),
        (("nothing",), ("nothing/x.py",), True),
        (("nothing",), ("nothing/*.py",), True),
        (("x", "src/a.py"), ("y", "src/deep/"), False),
        (("/etc/hosts",), ("a.py",), False),
        ((), ("a.py",), False),
    ],
)
def test_what_could_touch_the_same_file_overlaps(
    declare: Declare, mine: tuple[str, ...], others: tuple[str, ...], *, overlap: bool
) -> None:
    one, other = declare(*mine), declare(*others)
    assert one.overlaps(other) is overlap
    assert other.overlaps(one) is overlap


@each_row(
    ("file", "exists"),
    [
        ("src/a.py", True),
        ("src", True),
        ("src/*.py", True),
        ("src/z.py", False),
        ("lib/", False),
        ("src/*.md", False),
        ("src/out.py", False),
    ],
)
def test_a_declared_file_exists_if_the_project_has_it(
    declare: Declare, file: str, *, exists: bool
) -> None:
    assert declare(file).files[0].exists is exists


@each_row(
    ("files", "named"),
    [
        (("readme.md",), ("README.md",)),
        (("SRC/A.py",), ("src/a.py",)),
        (("STRASSE/gro\u0308\u00dfe.py",), ("straße/größe.py",)),
        (("src/A.py:3",), ("src/a.py",)),
        (("src/aa.py",), ("src/aa.py",)),
        (("readme.md", "README.md"), ("readme.md", "README.md")),
        ((AffectedFile("readme.md", "new"),), ("readme.md",)),
        (("missing/readme.md",), ("missing/readme.md",)),
    ],
)
def test_a_path_is_spelled_as_the_project_spells_it(
    declare: Declare, files: tuple[AffectedFile | str, ...], named: tuple[str, ...]
) -> None:
    assert declare(*files).named == named


def test_a_path_that_could_be_two_files_stays_as_it_is_written(tmp_path: Path) -> None:
    for name in ("Calc.py", "CALC.py"):
        (tmp_path / name).touch()
    assert declared_in(tmp_path, "calc.py").named == ("calc.py",)


def test_only_what_a_step_names_or_deletes_can_go_unseen(declare: Declare) -> None:
    folder = AffectedFile("src/deep/", "deleted")
    declared = declare("src/", "README.md", folder)
    assert declared.may_delete("README.md")
    assert declared.may_delete("src/deep/c.py")
    assert not declared.may_delete("src/a.py")


def test_a_large_folder_declares_some_and_says_how_many_more(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(5_000):
        (tmp_path / f"many/{number:04}.py").touch()
    declared = declared_in(tmp_path, "many/", "many/*.py", "many/4999.py")
    assert len(declared.paths) == MOST_MATCHES + 1
    assert declared.more == 5_000 - MOST_MATCHES - 1
    assert declared.covers("many/4998.py")


def test_files_that_appear_later_are_covered_and_not_listed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").touch()
    declared = declared_in(tmp_path, "src/*.py")
    assert declared.paths == ("src/a.py",)
    (tmp_path / "src/b.py").touch()
    assert declared.paths == ("src/a.py",)
    assert declared.covers("src/b.py")


def test_an_absolute_path_in_the_project_is_relative_to_it(tmp_path: Path) -> None:
    root, link = tmp_path / "app", tmp_path / "link"
    root.mkdir()
    link.symlink_to(root)
    rows = {
        f"{root}/src/a.py": "src/a.py",
        f"{root}/src/a.py:3-9": "src/a.py:3-9",
        f"file://{root}/src/a.py": "src/a.py",
        f"{link}/src/a.py": "src/a.py",
        f"{root}/src/": "src/",
        f"{root}/src/*.py": "src/*.py",
        f"{root}/../app/a.py": f"{root}/../app/a.py",
        f"{root}-evil/a.py": f"{root}-evil/a.py",
        f"{root}": f"{root}",
        f"{root}/": f"{root}/",
        "/etc/hosts": "/etc/hosts",
        "src/a.py": "src/a.py",
        "./a.py": "./a.py",
    }
    for text, expected in rows.items():
        plan = ImplementationPlan(
            steps=(PlanStep(1, files_affected=(AffectedFile(text, "new"),)),)
        )
        for base in (root, link, root / ".cdd/runs/feature-x/tree"):
            (step,) = plan.relative_to(base).steps
            assert [file.place for file in step.files_affected] == [expected], text
            assert step.files_affected[0].note == "new"


def test_a_ticket_reads_absolute_paths_of_its_project(tmp_path: Path) -> None:
    ticket = Ticket("feature-x", tmp_path / "tickets/feature-x", tmp_path)
    ticket.folder.mkdir(parents=True)
    ticket.plan_path.write_text(
        f"### Step 1: Add\n\n**Files Affected:**\n- `{tmp_path}/src/a.py`\n"
    )
    plan = ticket.read_plan()
    assert plan.steps[0].files_affected == (AffectedFile("src/a.py"),)
    assert not plan.errors
    assert ticket.plan_digest(plan) is not None


NAMES = st.sampled_from(["a", "b", "a.py", "b.txt", "[a]"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = NAMES | st.sampled_from(["*", "**", "?", "*.py", "{a,b}", "a*"])
FORMS = st.builds(
    lambda parts, end: "/".join(parts) + end,
    st.lists(PARTS, min_size=1, max_size=4),
    st.sampled_from(["", "", "/"]),
)


@given(FORMS, FORMS, PATHS)
def test_steps_that_declare_one_file_overlap(one: str, other: str, path: str) -> None:
    nothing = Path("/nowhere/at-all")
    first, second = declared_in(nothing, one), declared_in(nothing, other)
    assert first.overlaps(second) is second.overlaps(first)
    assert first.overlaps(first)
    if first.covers(path) and second.covers(path):
        assert first.overlaps(second)
