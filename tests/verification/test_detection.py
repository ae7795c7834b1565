"""Which commands run a project's tests, by the files of the project."""

import json
import sys
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.process.command_folder import split_folder
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.baseline import is_of_use
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import checks_for, parse_command
from cdd_agent.verification.detection import detect, survey, why_no_check
from cdd_agent.verification.outcomes import Result, Selection
from tests.support.fake_programs import FakePrograms
from tests.support.tables import each_row

DEV_GROUP = '[dependency-groups]\ndev = ["ruff", "pytest>=8"]\n'
TESTS = "def test_it():\n    assert True\n"
UNITTEST = "import unittest\n\nclass TestIt(unittest.TestCase):\n    pass\n"
VITEST = '{"scripts": {"test": "vitest"}}'


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the programs of this test alone: the usual test tools."""
    folder = tmp_path / "path"
    for name in ("npm", "pnpm", "yarn", "bun", "npx", "cargo", "go", "make"):
        program(folder / name)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path: Path, text: str = "") -> Path:
    """Make a program that does nothing else than the commands in `text`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    root = tmp_path / "project"
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def commands(root: Path) -> list[str]:
    return [check.shown for check in detect(root)]


@each_row(
    ("files", "reason"),
    [
        ({"pyproject.toml": DEV_GROUP}, "pyproject.toml [dependency-groups]"),
        (
            {
                "pyproject.toml": '[dependency-groups]\nt = [{include-group = "a"}]\n'
                'a = ["pytest-asyncio"]'
            },
            "pyproject.toml [dependency-groups]",
        ),
        (
            {"pyproject.toml": '[project]\ndependencies = ["pytest"]'},
            "pyproject.toml [project]",
        ),
        (
            {
                "pyproject.toml": (
                    "[project.optional-dependencies]\n"
                    "test = [\"PyTest[x] ~= 8; python_version>'3'\"]"
                )
            },
            "pyproject.toml [project.optional-dependencies]",
        ),
        (
            {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "^8"'},
            "pyproject.toml [tool.poetry.group]",
        ),
        (
            {"pyproject.toml": '[tool.poetry.dev-dependencies]\npytest = {a = "8"}'},
            "pyproject.toml [tool.poetry.dev-dependencies]",
        ),
        (
            {"pyproject.toml": '[tool.pdm.dev-dependencies]\ntest = ["pytest>=7"]'},
            "pyproject.toml [tool.pdm.dev-dependencies]",
        ),
        (
            {"pyproject.toml": '[tool.uv]\ndev-dependencies = ["pytest"]'},
            "pyproject.toml [tool.uv.dev-dependencies]",
        ),
        (
            {"pyproject.toml": '[tool.hatch.envs.test]\ndependencies = ["pytest"]'},
            "pyproject.toml [tool.hatch.envs]",
        ),
        (
            {"pyproject.toml": '[tool.pixi.feature.t.dependencies]\npytest = "*"'},
            "pyproject.toml [tool.pixi]",
        ),
        ({"requirements.txt": "flask\npytest==8.1  # tests\n"}, "requirements.txt"),
        (
            {"requirements-dev.txt": "-r requirements.txt\npytest\n"},
            "requirements-dev.txt",
        ),
        ({"dev-requirements.in": "pytest-cov\n"}, "dev-requirements.in"),
        ({"requirements/test.txt": "pytest\n"}, "requirements/test.txt"),
        (
            {"setup.cfg": "[options.extras_require]\ntest =\n    pytest\n"},
            "setup.cfg",
        ),
        (
            {"setup.py": "setup(extras_require={'test': ['pytest>=7']})"},
            "setup.py",
        ),
        (
            {"tox.ini": "[testenv]\ndeps =\n    py311: pytest\ncommands = x"},
            "tox.ini",
        ),
        ({"tox.toml": '[env_run_base]\ndeps = ["pytest>=8"]'}, "tox.toml"),
        (
            {"noxfile.py": "def t(session):\n    session.install('pytest')"},
            "noxfile.py",
        ),
        ({"Pipfile": '[dev-packages]\npytest = "*"'}, "Pipfile"),
        (
            {
                "environment.yml": "dependencies:\n  - python=3.12\n  - pip:\n"
                "    - pytest>=8\n"
            },
            "environment.yml",
        ),
    ],
)
def test_a_declared_pytest_runs_wherever_the_tests_are(
    tmp_path: Path, bare_path: Path, files: dict[str, str], reason: str
) -> None:
    root = project(tmp_path, files)
    for place in ("src/app/tests", "app", "packages/a/tests", "unit_tests", "a/b/c/d"):
        project(tmp_path, {f"{place}/test_it.py": TESTS})
        (found,) = survey(root).runs
        assert found.check.shown == "pytest"
        assert found.check.argv == (sys.executable, "-m", "pytest")
        assert found.reason == f"declared in {reason}"


@each_row(
    "files",
    [
        {"pyproject.toml": '[project]\nname = "pytest"\ndependencies = ["pytester"]'},
        {"pyproject.toml": '[project]\nname = "x"\ndescription = "not pytest"'},
        {"requirements.txt": "# pytest\nflask\n-e pytest\n"},
        {"setup.cfg": "[metadata]\ndescription = pytest\n"},
        {"environment.yml": "name: pytest\ndependencies:\n  - python\n"},
    ],
)
def test_a_name_that_declares_nothing_is_no_runner(
    tmp_path: Path, bare_path: Path, files: dict[str, str]
) -> None:
    assert commands(project(tmp_path, files)) == []


@each_row(
    "files",
    [
        {"pytest.ini": "[pytest]"},
        {".pytest.toml": ""},
        {"conftest.py": ""},
        {"pyproject.toml": "[tool.pytest.ini_options]\n"},
        {"pyproject.toml": "[tool.pytest]\n"},
        {"setup.cfg": "[tool:pytest]\n"},
        {"tox.ini": "[pytest]\n"},
        {"tests/unit/test_x.py": ""},
        {"x_test.py": ""},
        {"setup.py": "", "src/app/tests/test_it.py": TESTS},
        {"requirements.txt": "flask", "app/core/users/test_users.py": TESTS},
        {"unit_tests/test_it.py": TESTS},
        {"a/b/c/d/e/test_it.py": UNITTEST},
    ],
)
def test_pytest_is_recognised_by_its_settings_or_by_test_files(
    tmp_path: Path, bare_path: Path, files: dict[str, str]
) -> None:
    (check,) = detect(project(tmp_path, files))
    assert check.argv == (sys.executable, "-m", "pytest")


@each_row(
    ("files", "expected"),
    [
        # Django
        ({"manage.py": "", "shop/tests.py": UNITTEST}, ["python manage.py test"]),
        (
            {
                "manage.py": "",
                "shop/tests/test_a.py": UNITTEST,
                "requirements.txt": "pytest",
            },
            ["python manage.py test"],
        ),
        (
            {
                "manage.py": "",
                "shop/tests.py": UNITTEST,
                "requirements.txt": "pytest-django",
            },
            ["pytest"],
        ),
        (
            {"manage.py": "", "pytest.ini": "[pytest]", "shop/tests.py": UNITTEST},
            ["pytest"],
        ),
        ({"manage.py": "", "shop/models.py": ""}, []),
        # two runners at the root
        (
            {"pyproject.toml": DEV_GROUP, "package.json": VITEST},
            ["pytest", "npm test"],
        ),
        (
            {"pyproject.toml": DEV_GROUP, "Cargo.toml": "[package]"},
            ["pytest", "cargo test"],
        ),
        # a script that only starts the other runner
        (
            {
                "pyproject.toml": DEV_GROUP,
                "package.json": '{"scripts": {"test": "uv run pytest -q"}}',
            },
            ["pytest"],
        ),
        # folders with a project of their own
        (
            {
                "backend/pyproject.toml": DEV_GROUP,
                "backend/tests/test_it.py": TESTS,
                "frontend/package.json": VITEST,
            },
            ["cd backend && pytest", "cd frontend && npm test"],
        ),
        (
            {
                "pyproject.toml": DEV_GROUP,
                "frontend/package.json": VITEST,
                "packages/a/pyproject.toml": DEV_GROUP,
            },
            ["pytest", "cd frontend && npm test"],
        ),
        (
            {
                "services/my api/requirements.txt": "pytest",
                "services/my api/a/test_it.py": TESTS,
            },
            ["cd 'services/my api' && pytest"],
        ),
        (
            {"examples/a/package.json": VITEST, "node_modules/b/package.json": VITEST},
            [],
        ),
        ({".gitignore": "old/\n", ".git/HEAD": "x", "old/package.json": VITEST}, []),
        # package managers
        ({"package.json": VITEST, "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": VITEST, "yarn.lock": ""}, ["yarn test"]),
        ({"package.json": VITEST, "bun.lock": ""}, ["bun run test"]),
        (
            {
                "package.json": '{"packageManager": "pnpm@9.1.0", "scripts":'
                ' {"test": "jest"}}',
                "package-lock.json": "{}",
            },
            ["pnpm test"],
        ),
        (
            {"package.json": '{"scripts": {"test:unit": "vitest run"}}'},
            ["npm run test:unit"],
        ),
        (
            {
                "package.json": '{"devDependencies": {"vitest": "3"}}',
                "node_modules/x": "",
            },
            ["npx --no-install vitest run"],
        ),
        # workspaces
        (
            {
                "package.json": '{"workspaces": ["packages/*"]}',
                "packages/a/package.json": VITEST,
            },
            ["npm test --workspaces --if-present"],
        ),
        (
            {
                "package.json": "{}",
                "pnpm-workspace.yaml": "",
                "packages/a/package.json": VITEST,
            },
            ["pnpm -r --if-present run test"],
        ),
        (
            {
                "package.json": '{"workspaces": ["p/*"]}',
                "yarn.lock": "",
                "p/a/package.json": VITEST,
            },
            ["yarn workspaces run test"],
        ),
        (
            {
                "package.json": '{"workspaces": ["p/*"]}',
                "yarn.lock": "",
                ".yarnrc.yml": "",
                "p/a/package.json": VITEST,
            },
            ["yarn workspaces foreach --all run test"],
        ),
        (
            {
                "package.json": '{"workspaces": ["p/*"]}',
                "bun.lock": "",
                "p/a/package.json": VITEST,
            },
            ["bun run --filter '*' test"],
        ),
        (
            {"package.json": '{"workspaces": ["p/*"]}', "p/a/package.json": "{}"},
            [],
        ),
        (
            {
                "package.json": '{"workspaces": ["p/*"], "scripts": {"test": "x"}}',
                "p/a/package.json": VITEST,
            },
            ["npm test"],
        ),
        # Rust and Go
        ({"Cargo.toml": "[package]"}, ["cargo test"]),
        ({"Cargo.toml": "[workspace]", "a/Cargo.toml": "[package]"}, ["cargo test"]),
        ({"Cargo.toml": "[package]\n[workspace]"}, ["cargo test --workspace"]),
        ({"go.mod": "module x"}, ["go test ./..."]),
        (
            {"go.work": "go 1.22\nuse (\n\t./api\n\t./cli\n)\n", "api/go.mod": ""},
            ["go test ./api/... ./cli/..."],
        ),
        ({"wasm/Cargo.toml": "", "wasm/src/lib.rs": "fn a() {}"}, []),
        (
            {"wasm/Cargo.toml": "", "wasm/src/lib.rs": "#[tokio::test]\nfn a() {}"},
            ["cd wasm && cargo test"],
        ),
        ({"api/go.mod": "", "api/x.go": ""}, []),
        ({"api/go.mod": "", "api/x_test.go": ""}, ["cd api && go test ./..."]),
        # what the runner around it does not run
        (
            {"go.mod": "", "store/go.mod": "", "store/x_test.go": ""},
            ["go test ./...", "cd store && go test ./..."],
        ),
        (
            {
                "go.work": "use (\n\t.\n\t./store\n)",
                "go.mod": "",
                "store/go.mod": "",
                "store/x_test.go": "",
            },
            ["go test ./... ./store/..."],
        ),
        (
            {
                "Cargo.toml": '[workspace]\nmembers = ["crates/*"]',
                "crates/a/Cargo.toml": "[package]",
                "crates/a/lib.rs": "#[test]",
                "other/Cargo.toml": "[package]",
                "other/lib.rs": "#[test]",
            },
            ["cargo test", "cd other && cargo test"],
        ),
        (
            {"package.json": VITEST, "client/package.json": VITEST},
            ["npm test", "cd client && npm test"],
        ),
        (
            {
                "package.json": '{"scripts": {"test": "npm --prefix client test"}}',
                "client/package.json": VITEST,
            },
            ["npm test"],
        ),
        (
            {
                "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]',
                "libs/a/pyproject.toml": DEV_GROUP,
                "libs/a/test_it.py": TESTS,
            },
            ["pytest", "cd libs/a && pytest"],
        ),
        (
            {
                "pytest.ini": "[pytest]\ntestpaths =\n    tests\n    libs/*/tests\n",
                "libs/a/pyproject.toml": DEV_GROUP,
                "libs/a/tests/test_it.py": TESTS,
            },
            ["pytest"],
        ),
        # a folder that declares its tests counts more than files without a declaration
        (
            {
                "pyproject.toml": "[tool.uv.workspace]",
                "backend/pyproject.toml": DEV_GROUP,
                "backend/tests/test_it.py": TESTS,
            },
            ["cd backend && pytest"],
        ),
        (
            {
                "requirements.txt": "django",
                "shop/manage.py": "",
                "shop/cart/tests.py": UNITTEST,
                "shop/cart/test_it.py": UNITTEST,
            },
            ["cd shop && python manage.py test"],
        ),
        # a program of tests that no runner finds by its name
        ({"setup.py": "", "test.py": UNITTEST}, ["pytest test.py"]),
        ({"tests.py": TESTS, "x.py": ""}, ["pytest tests.py"]),
        ({"setup.py": "", "tests.py": UNITTEST, "test_it.py": TESTS}, ["pytest"]),
        ({"setup.py": "", "test.py": "print('a test of the camera')"}, []),
        ({"package.json": VITEST, "test.py": "import sys"}, ["npm test"]),
        # but files in the usual folders around it run, too
        (
            {
                "pyproject.toml": "[project]",
                "tests/test_it.py": UNITTEST,
                "profiler/requirements.txt": "pytest-profiling",
                "profiler/test_speed.py": TESTS,
            },
            ["cd profiler && pytest", "pytest tests"],
        ),
        (
            {
                "setup.py": "",
                "test_it.py": TESTS,
                "test/deep/test_it.py": TESTS,
                "scripts/test_data.py": TESTS,
                "libs/a/setup.cfg": "[tool:pytest]",
                "libs/a/test_it.py": TESTS,
            },
            ["cd libs/a && pytest", "pytest test test_it.py"],
        ),
        # a Makefile counts more than test files without a declaration
        (
            {
                "setup.py": "",
                "tests/test_it.py": UNITTEST,
                "Makefile": "test:\n\tpython -m django test tests\n",
            },
            ["make test"],
        ),
        (
            {
                "setup.py": "",
                "tests/test_it.py": TESTS,
                "Makefile": "test: lint\n\tpython -m pytest\nlint:\n\tx\n",
            },
            ["pytest"],
        ),
        # make only without another
        ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "test:\n", "pom.xml": ""}, ["make test"]),
        ({"Makefile": "test:\n", "pyproject.toml": DEV_GROUP}, ["pytest"]),
        ({"Makefile": "test:\n", "tools/test_data.py": ""}, ["make test"]),
        # nothing
        ({}, []),
        (
            {
                "package.json": (
                    '{"scripts": {"test": "echo \\"Error: no test specified\\" && x"}}'
                )
            },
            [],
        ),
        ({"package.json": "{}"}, []),
        ({"Makefile": "test := 1\nall:\n"}, []),
        ({"src/app.py": ""}, []),
    ],
)
def test_the_files_of_a_project_tell_the_commands(
    tmp_path: Path, bare_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    assert commands(project(tmp_path, files)) == expected


def test_only_a_project_environment_without_pytest_runs_unittest(
    tmp_path: Path, bare_path: Path
) -> None:
    root = project(tmp_path, {"tests/test_it.py": UNITTEST})
    assert commands(root) == ["pytest"]
    program(root / ".venv/bin/python")
    assert commands(root) == ["python -m unittest discover -s tests"]
    project(tmp_path, {"tests/__init__.py": ""})
    assert commands(root) == ["python -m unittest discover"]
    project(tmp_path, {"tests/test_other.py": TESTS})
    assert commands(root) == ["pytest"]
    (root / "tests/test_other.py").unlink()
    program(root / ".venv/bin/pytest")
    assert commands(root) == ["pytest"]


def test_it_runs_a_program_of_tests_by_its_name(
    tmp_path: Path, bare_path: Path
) -> None:
    root = project(tmp_path, {"setup.py": "", "test.py": UNITTEST})
    program(root / ".venv/bin/python")
    assert commands(root) == ["python -m unittest test.py"]
    project(tmp_path, {"test.py": TESTS})
    assert commands(root) == ["pytest test.py"]


def test_a_second_runner_that_is_not_installed_is_named_and_left_out(
    tmp_path: Path, bare_path: Path
) -> None:
    package = json.dumps({"scripts": {"test": "vitest"}, "devDependencies": {"v": "1"}})
    root = project(
        tmp_path, {"pyproject.toml": DEV_GROUP, "frontend/package.json": package}
    )
    known = survey(root)
    assert [found.check.shown for found in known.runs] == ["pytest"]
    (note,) = known.notes
    assert "cd frontend && npm test" in note
    project(tmp_path, {"frontend/node_modules/v/index.js": ""})
    assert commands(root) == ["pytest", "cd frontend && npm test"]
    (bare_path / "npm").unlink()
    assert commands(root) == ["pytest"]


def test_the_only_runner_stays_so_that_its_error_is_shown(
    tmp_path: Path, bare_path: Path
) -> None:
    (bare_path / "go").unlink()
    assert commands(project(tmp_path, {"go.mod": "module x"})) == ["go test ./..."]


def test_many_projects_in_one_repository_run_on_request(
    tmp_path: Path, bare_path: Path
) -> None:
    files = {f"services/s{n}/package.json": VITEST for n in range(7)}
    known = survey(project(tmp_path, files))
    assert known.runs == ()
    (note,) = known.notes
    assert "services/s6" in note


TOOLS: list[tuple[str, dict[str, str], str]] = [
    ("Maven", {"pom.xml": ""}, "mvn -q test"),
    ("Maven", {"pom.xml": "", "mvnw": ""}, "./mvnw -q test"),
    ("Gradle", {"build.gradle.kts": ""}, "gradle test"),
    ("Gradle", {"settings.gradle": "", "gradlew": ""}, "./gradlew test"),
    (
        "CTest",
        {"CMakeLists.txt": "Enable_Testing()"},
        "ctest --test-dir build --output-on-failure",
    ),
    (
        "CTest",
        {"CMakeLists.txt": "include( CTest )", "out/CTestTestfile.cmake": ""},
        "ctest --test-dir out --output-on-failure",
    ),
    ("dotnet", {"App.sln": ""}, "dotnet test"),
    ("dotnet", {"src/App/App.csproj": ""}, "cd src/App && dotnet test"),
    ("RSpec", {".rspec": ""}, "rspec"),
    ("RSpec", {".rspec": "", "Gemfile": ""}, "bundle exec rspec"),
    (
        "Rake",
        {"Rakefile": "Rake::TestTask.new", "Gemfile": ""},
        "bundle exec rake test",
    ),
    ("PHPUnit", {"phpunit.xml.dist": ""}, "vendor/bin/phpunit"),
    ("PHPUnit", {"phpunit.xml": "", "vendor/bin/pest": ""}, "vendor/bin/pest"),
    ("Deno", {"deno.json": "{}"}, "deno test"),
    ("Deno", {"deno.jsonc": '{"tasks": {"test": "deno test -A"}}'}, "deno task test"),
    ("just", {"justfile": "build:\n\ntest *args: build\n    x\n"}, "just test"),
    ("Task", {"Taskfile.yml": "tasks:\n  test:\n    cmds: [x]\n"}, "task test"),
    ("tox", {"tox.ini": "[tox]\nenvlist = py\n"}, "tox"),
    ("nox", {"noxfile.py": "import nox"}, "nox"),
    ("make", {"Makefile": "check: all\n"}, "make check"),
    ("Maven", {"backend/pom.xml": ""}, "cd backend && mvn -q test"),
]


@each_row(("name", "files", "command"), TOOLS)
def test_a_tool_that_builds_or_fetches_runs_only_on_request(
    tmp_path: Path, bare_path: Path, name: str, files: dict[str, str], command: str
) -> None:
    root = project(tmp_path, files)
    known = survey(root)
    assert known.runs == ()
    (tool,) = known.requested
    assert (tool.name, tool.command) == (name, command)
    assert tool.file in files
    assert command in why_no_check(root)


@each_row(
    "files",
    [
        {"CMakeLists.txt": "project(x)"},
        {"justfile": "test := 'x'\nbuild:\n  test\n"},
        {"tox.ini": "[flake8]\n"},
        {"Rakefile": "task :build"},
        {"pyproject.toml": "[tool.ruff]\n"},
    ],
)
def test_a_file_of_a_tool_without_tests_is_no_sign(
    tmp_path: Path, bare_path: Path, files: dict[str, str]
) -> None:
    root = project(tmp_path, files)
    assert survey(root).requested == ()
    assert why_no_check(root) == "cdd found no test runner that it knows"


def test_a_tool_around_a_runner_that_is_found_is_not_named(
    tmp_path: Path, bare_path: Path
) -> None:
    files = {"pyproject.toml": DEV_GROUP, "tox.ini": "[tox]", "pom.xml": ""}
    names = [tool.name for tool in survey(project(tmp_path, files)).worth_naming]
    assert names == ["Maven"]


def test_a_manifest_that_cannot_be_read_is_an_error_at_the_root_only(
    tmp_path: Path, bare_path: Path
) -> None:
    root = project(tmp_path, {"api/pyproject.toml": "[", "web/package.json": VITEST})
    assert commands(root) == ["cd web && npm test"]
    for name in ("package.json", "Pipfile"):
        project(tmp_path, {name: "["})
        with pytest.raises(BadInput, match=f"^{name} cannot be read"):
            detect(root)
        (root / name).unlink()


@each_row(
    ("text", "folder", "command"),
    [
        ("cd backend && pytest -q", "backend", "pytest -q"),
        ("cd  a/b-c  &&  npm test", "a/b-c", "npm test"),
        ("cd 'my api' && pytest", "my api", "pytest"),
        ("cd a && pytest | tee x", "a", "pytest | tee x"),
        ("cd $HOME && pytest", "", "cd $HOME && pytest"),
        ("cd a; pytest", "", "cd a; pytest"),
        ("cd a || pytest", "", "cd a || pytest"),
        ("cd && pytest", "", "cd && pytest"),
        ("pytest", "", "pytest"),
    ],
)
def test_a_check_may_name_its_folder(text: str, folder: str, command: str) -> None:
    assert split_folder(text) == (folder, command)


# --- Checks in a folder ---------------------------------------------------------------


async def test_a_check_in_a_folder_reports_tests_from_the_root(tmp_path: Path) -> None:
    root = project(tmp_path, {"backend/tests/test_it.py": TESTS})
    check = parse_command("cd backend && pytest -q", root)
    commands = CommandRunner(root, run_program=FakePrograms())
    ran = await run_check(check, commands, 60, tmp_path)
    assert ran.tests is not None
    assert ran.tests.results == {"backend/tests/test_it.py::test_it": Result.PASSED}
    assert ran.tests.selection.paths == ("backend",)
    assert check.shown == "cd backend && pytest -q"


@each_row(
    ("text", "words"),
    [
        ("cd .. && pytest", "leaves the project"),
        ("cd /tmp && pytest", "relative"),
        ("cd file && pytest", "is not a folder"),
        ("cd backend && pytest | tee x", "needs a shell"),
        ("cd backend && rm -r x", "`rm` is not on the list"),
    ],
)
def test_the_folder_of_a_check_is_inside_the_project(
    tmp_path: Path, text: str, words: str
) -> None:
    root = project(tmp_path, {"file": "", "backend/x": ""})
    step = PlanStep(number=1, title="x", description="", checks=(text,))
    with pytest.raises(BadInput) as caught:
        checks_for(step, None, CommandRunner(root))
    assert words in caught.value.message


def test_files_above_the_folder_of_a_check_may_decide_how_tests_run(
    tmp_path: Path,
) -> None:
    check = parse_command("cd backend && pytest", project(tmp_path, {"backend/x": ""}))
    assert check.invocation is not None
    for path in ("backend/pytest.ini", "pytest.ini"):
        assert check.invocation.what_matters(PurePosixPath(path)) is not None
    assert check.invocation.what_matters(PurePosixPath("backend/app.py")) is None


def test_the_tests_of_one_runner_are_not_missed_by_another() -> None:
    vitest, pytest_run = Selection(runner="vitest"), Selection(runner="pytest")
    assert not pytest_run.must_reach("web/a.test.ts::it", vitest)
    assert vitest.must_reach("web/a.test.ts::it", vitest)
    # records of earlier versions name no runner
    assert vitest.must_reach("web/a.test.ts::it", Selection())


@each_row(
    ("files", "command"),
    [
        ({"pom.xml": ""}, "mvn -q verify"),
        ({"pom.xml": "", "mvnw": ""}, "./mvnw test"),
        ({"tox.ini": "[tox]", "requirements.txt": "pytest"}, "tox -e py"),
        ({"uv.lock": ""}, "uv run pytest tests"),
        ({"pdm.lock": ""}, "pdm run pytest"),
        ({"web/package.json": VITEST}, "cd web && npm test"),
    ],
)
def test_a_plan_may_name_a_tool_of_the_project(
    tmp_path: Path, bare_path: Path, files: dict[str, str], command: str
) -> None:
    step = PlanStep(number=1, title="x", description="", checks=(command,))
    (check,) = checks_for(step, None, CommandRunner(project(tmp_path, files)))
    assert (check.shown, check.command.objection) == (command, "")
    with pytest.raises(BadInput):
        checks_for(step, None, CommandRunner(project(tmp_path / "other", {})))


def test_a_baseline_is_of_use_if_one_of_several_runners_reports_tests(
    tmp_path: Path, bare_path: Path
) -> None:
    steps = [PlanStep(1, checks=("pytest tests/a",))]
    files = {"package.json": '{"scripts": {"test": "node check.js"}}'}
    root = project(tmp_path, files)
    assert not is_of_use(steps, None, CommandRunner(root))
    project(tmp_path, {"pyproject.toml": DEV_GROUP})
    assert commands(root) == ["pytest", "npm test"]
    assert is_of_use(steps, None, CommandRunner(root))
