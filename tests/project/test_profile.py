"""A project's profile, from the files that it holds."""

from pathlib import Path

from cdd_agent.project.profile import Profile, profile
from tests.support.tables import each_row


def profile_of(root: Path, files: dict[str, str]) -> Profile:
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return profile(root)


def test_a_folder_without_such_files_has_its_own_name_and_no_commands(
    tmp_path: Path,
) -> None:
    found = profile(tmp_path)
    assert (found.name, found.description, found.unread) == (tmp_path.name, "", [])
    assert not any(found.commands.values())


@each_row(
    ("files", "commands"),
    [
        ({"pyproject.toml": "[project]\nname='a'"}, {"set up": ["pip install -e ."]}),
        (
            {
                "pyproject.toml": "[tool.ruff]\n[tool.mypy]\npackages=['a']",
                "uv.lock": "",
            },
            {
                "set up": ["uv sync"],
                "lint": ["uv run ruff check .", "uv run mypy"],
                "format": ["uv run ruff format ."],
            },
        ),
        (
            {"pyproject.toml": "[tool.poetry]\nname='a'\n[tool.mypy]"},
            {"lint": ["poetry run mypy ."]},
        ),
        (
            {"requirements.txt": "", ".flake8": ""},
            {"set up": ["pip install -r requirements.txt"], "lint": ["flake8"]},
        ),
        (
            {
                "package.json": '{"scripts": {"build": "x", "lint": "y", "test": "z"}}',
                "pnpm-lock.yaml": "",
            },
            {
                "set up": ["pnpm install"],
                "build": ["pnpm run build"],
                "lint": ["pnpm run lint"],
            },
        ),
        (
            {"Cargo.toml": "[package]\nname='a'"},
            {"build": ["cargo build"], "lint": ["cargo clippy"]},
        ),
        (
            {"go.mod": "module example.org/a\n"},
            {"build": ["go build ./..."], "lint": ["go vet ./..."]},
        ),
        (
            {"Makefile": "build: x\nlint:\n\ttrue\nformat := no\n"},
            {"build": ["make build"], "format": []},
        ),
        ({".pre-commit-config.yaml": ""}, {"lint": ["pre-commit run --all-files"]}),
    ],
)
def test_commands_are_those_that_the_files_speak_of(
    tmp_path: Path, files: dict[str, str], commands: dict[str, list[str]]
) -> None:
    found = profile_of(tmp_path, files).commands
    assert {purpose: found[purpose] for purpose in commands} == commands


@each_row(
    ("files", "name", "description"),
    [
        (
            {"pyproject.toml": "[project]\nname='a'\ndescription='It\\n does.'"},
            "a",
            "It\\n does.",
        ),
        (
            {"package.json": '{"name": "a", "description": " It\\n does. "}'},
            "a",
            "It does.",
        ),
        (
            {"Cargo.toml": "[package]\nname='a'\ndescription='It does.'"},
            "a",
            "It does.",
        ),
        ({"go.mod": "module example.org/x/a\n"}, "a", ""),
        ({"package.json": '{"name": 7, "description": []}'}, None, ""),
    ],
)
def test_name_and_description_are_found(
    tmp_path: Path, files: dict[str, str], name: str | None, description: str
) -> None:
    found = profile_of(tmp_path, files)
    assert (found.name, found.description) == (name or tmp_path.name, description)


@each_row(
    ("name", "text"),
    [
        ("pyproject.toml", "[a"),
        ("package.json", "{"),
        ("package.json", "[]"),
        ("Cargo.toml", "= 1"),
    ],
)
def test_a_broken_file_is_named_with_the_reason_and_the_others_are_read(
    tmp_path: Path, name: str, text: str
) -> None:
    found = profile_of(tmp_path, {name: text, "Makefile": "build:\n"})
    assert [line.partition(":")[0] for line in found.unread] == [name]
    assert found.commands["build"] == ["make build"]


def test_values_of_another_kind_are_no_crash(tmp_path: Path) -> None:
    found = profile_of(
        tmp_path,
        {"pyproject.toml": "project = 1\ntool = 2", "package.json": '{"scripts": []}'},
    )
    assert found.unread == []
    assert found.commands["build"] == []
