"""Prompts: ours, and a project's own in their place."""

from pathlib import Path

import pytest

from cdd_agent.agents import prompt_files
from cdd_agent.agents.prompt_files import LONGEST, load_prompt
from cdd_agent.errors import BadInput
from tests.support.tables import each_row

OWN = "Ask in Größe 12."
PROMPTS = Path(prompt_files.__file__).parent / "prompts"


def own(root: Path, content: bytes) -> None:
    (root / ".cdd" / "prompts").mkdir(parents=True)
    (root / ".cdd" / "prompts" / "socrates.md").write_bytes(content)


def test_the_default_prompt_is_used_if_the_project_has_none(
    tmp_path: Path,
) -> None:
    assert (
        load_prompt(tmp_path, "socrates")
        == (PROMPTS / "socrates.md").read_text().strip()
    )


def test_the_project_s_prompt_replaces_the_default(tmp_path: Path) -> None:
    own(tmp_path, f"\ufeff{OWN}\n".encode())
    assert load_prompt(tmp_path, "socrates") == OWN


def test_a_prompt_may_have_another_encoding(tmp_path: Path) -> None:
    own(tmp_path, f"{OWN} Größe\n".encode("cp1252"))
    assert load_prompt(tmp_path, "socrates") == f"{OWN} Größe"


@each_row(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * (LONGEST + 1), "is longer than 50,000 characters"),
        ("Größe ".encode() + b"\xff", "is not UTF-8 text"),
        (b"a\0b", "binary file"),
    ],
)
def test_an_unusable_prompt_file_is_an_error(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    own(tmp_path, content)
    with pytest.raises(BadInput, match=reason) as caught:
        load_prompt(tmp_path, "socrates")
    assert "socrates.md" in caught.value.message
    assert "delete it" in caught.value.hint


def test_a_folder_in_place_of_a_prompt_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".cdd" / "prompts" / "socrates.md").mkdir(parents=True)
    with pytest.raises(BadInput, match="is a folder"):
        load_prompt(tmp_path, "socrates")


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the key")
    root = tmp_path / "project"
    (root / ".cdd" / "prompts").mkdir(parents=True)
    (root / ".cdd" / "prompts" / "socrates.md").symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match="outside"):
        load_prompt(root, "socrates")
