"""A project's manifests: read once for all who ask, whatever is in them."""

from pathlib import Path

import pytest

from cdd_agent.files.manifests import (
    Manifests,
    ManifestUnreadable,
    parse_manifest,
    section,
)
from tests.support.tables import each_row


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    (tmp_path / "Cargo.toml").mkdir()

    assert not manifests.has("pyproject.toml", "package.json", "Cargo.toml")
    assert (manifests.text("go.mod"), manifests.data("tox.ini"), manifests.targets) == (
        "",
        b"",
        set(),
    )
    assert manifests.content("package.json") == manifests.content("Cargo.toml") == {}


def test_toml_and_json_are_told_from_each_other_by_the_name(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b'\xef\xbb\xbf[tool.a]\r\nb = "c"\r\n')
    (tmp_path / "package.json").write_text('{"scripts": {"test": "jest"}}')

    manifests = Manifests(tmp_path)
    assert section(manifests.content("pyproject.toml"), "tool", "a") == {"b": "c"}
    assert section(manifests.content("package.json"), "scripts") == {"test": "jest"}


@each_row(
    ("name", "data"),
    [
        ("pyproject.toml", b"[a"),
        ("pyproject.toml", b'name = "\xff"'),
        ("package.json", b"{"),
        ("package.json", b"[]"),
        ("package.json", b"[" * 100_000),
        ("Cargo.toml", b"a = " + b"[" * 100_000),
    ],
)
def test_what_cannot_be_read_is_an_error_with_name_and_reason(
    tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ManifestUnreadable) as caught:
        Manifests(tmp_path).content(name)
    assert caught.value.name == name
    assert caught.value.why


def test_a_section_is_empty_where_something_else_is_there() -> None:
    content = parse_manifest("pyproject.toml", "tool = 1\n[a]\nb = 2\n")
    assert (
        section(content, "tool", "pytest")
        == section(content, "a", "b")
        == section(content, "none")
        == {}
    )


def test_the_makefile_that_make_takes_tells_the_targets_in_any_encoding(
    tmp_path: Path,
) -> None:
    (tmp_path / "makefile").write_text("never:\n")
    (tmp_path / "Makefile").write_bytes(
        b"# gr\xfcn\nCC := gcc\ntest : build\n\tmake other:\nbuild:\n"
    )
    assert Manifests(tmp_path).targets == {"test", "build"}
    assert Manifests(tmp_path).recipe("test") == "\tmake other:\n"
    assert Manifests(tmp_path).recipe("build") == ""
