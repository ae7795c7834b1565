"""Whether a block is a file: what the project has, what the task names, and what a form
says, whatever the name.
"""

from pathlib import Path

import pytest

from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.parse import parse_reply
from tests.changes.names_of_projects import NAMES
from tests.support.examples import IS_THOROUGH
from tests.support.tables import each_row

BODY = "hello 1\n"
SAYING = {
    "language:path": "```text:{}\n" + BODY + "```\n",
    'file="path"': '```text file="{}"\n' + BODY + "```\n",
    'path="path"': '```text path="{}"\n' + BODY + "```\n",
    "File: path": "File: {}\n```\n" + BODY + "```\n",
    "**File: `path`**": "**File: `{}`**\n\n```\n" + BODY + "```\n",
    "a tag": '<file path="{}">\n```\n' + BODY + "```\n</file>\n",
    "a diff": "```diff\n--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+x\n```\n",
    "a patch": "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n",
}
"""Forms that say of a name that it is a file's."""
NAMING = {
    "a heading": "### {}\n```\n" + BODY + "```\n",
    "a heading in backticks": "### `{}`\n\n```\n" + BODY + "```\n",
    "bold": "**{}**\n\n```\n" + BODY + "```\n",
    "backticks": "`{}`\n```\n" + BODY + "```\n",
    "a line": "{}\n```\n" + BODY + "```\n",
    "a line with a colon": "{}:\n\n```\n" + BODY + "```\n",
}
"""Forms that titles have, too."""
OTHERS = {
    'title="path"': '```text title="{}"\n' + BODY + "```\n",
    "language path": "```text {}\n" + BODY + "```\n",
    "a comment": "```\n# {}\n" + BODY + "```\n",
    "above search/replace blocks": (
        "{}\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
    ),
    "after SEARCH": "<<<<<<< SEARCH {}\nx\n=======\ny\n>>>>>>> REPLACE\n",
}
TITLES = {"Release Notes", "docs/Getting started"}
"""Nobody takes these for files where nothing says so."""
LANGUAGES = {"Makefile", "makefile", "justfile", "Justfile", "Dockerfile", "Procfile"}


def outcome(form: str, name: str, known: ProjectNames) -> str:
    try:
        reply = parse_reply(f"I do.\n\n{form.format(name)}", known)
    except ReplyRefused:
        return "refused"
    paths = [edit.path.removeprefix("./") for edit in reply.edits]
    assert paths in ([], [name]), (form, name, paths)
    return (
        "file"
        if paths
        else "told"
        if [doubt.path for doubt in reply.doubts] == [name]
        else "dropped"
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_the_names_are_many() -> None:
    assert len(set(NAMES)) > 325


@pytest.fixture(scope="module")
def known(project: Path) -> ProjectNames:
    return ProjectNames.collect(project)


@each_row("form", [*SAYING, *NAMING, *OTHERS])
def test_what_the_project_has_is_a_file_in_every_form(
    known: ProjectNames, form: str
) -> None:
    text = (SAYING | NAMING | OTHERS)[form]
    # `make test` tries each name in one or two of the forms
    step = 1 if IS_THOROUGH else 12
    first = [*SAYING, *NAMING, *OTHERS].index(form) % step
    assert [
        name for name in NAMES[first::step] if outcome(text, name, known) != "file"
    ] == []


@each_row("form", [*SAYING, *NAMING, *OTHERS])
def test_what_the_task_lists_is_a_file_in_every_form(form: str) -> None:
    text = (SAYING | NAMING | OTHERS)[form]
    known = ProjectNames(listed=frozenset(NAMES))
    assert [name for name in NAMES[::9] if outcome(text, name, known) != "file"] == []


@each_row("form", NAMING)
def test_what_the_words_of_the_task_name_is_never_dropped(form: str) -> None:
    dropped: list[str] = []
    for name in NAMES[::9]:
        known = ProjectNames.collect(Path("nowhere"), text=f"Change `{name}` as told.")
        if outcome(NAMING[form], name, known) == "dropped" and name not in TITLES:
            dropped.append(name)
    assert dropped == []


@each_row("form", SAYING)
def test_what_a_form_says_to_be_a_file_is_one_whatever_its_name(form: str) -> None:
    others = {
        name
        for name in NAMES
        if outcome(SAYING[form], name, NO_PROJECT_NAMES) != "file"
    }
    assert all(" " in name for name in others)
    assert {
        name
        for name in others
        if outcome(SAYING[form], name, NO_PROJECT_NAMES) == "dropped"
    } == set()


@each_row("form", NAMING)
def test_a_new_name_that_could_be_a_title_is_a_file_or_told(form: str) -> None:
    outcomes = {name: outcome(NAMING[form], name, NO_PROJECT_NAMES) for name in NAMES}
    assert {name for name, what in outcomes.items() if what == "dropped"} <= TITLES
    assert sum(what == "file" for what in outcomes.values()) > 300


def test_a_language_that_is_a_file_too_is_told_where_the_file_is_there(
    project: Path,
) -> None:
    for name in LANGUAGES:
        assert (
            outcome("```{}\n" + BODY + "```\n", name, ProjectNames.collect(project))
            == "told"
        )
        assert outcome("```{}\n" + BODY + "```\n", name, NO_PROJECT_NAMES) == "dropped"


@each_row(
    "text",
    [
        "### Usage\n```\nx\n```\n",
        "**Output**\n```text\nx\n```\n",
        "Run:\n```bash\nmake\n```\n",
        "### Backend\n```python\nx = 1\n```\n",
        "`add`:\n```python\nadd(1, 2)\n```\n",
        "```rust ignore\nx\n```\n",
        "```js twoslash\nx\n```\n",
        "```JSON\n{}\n```\n",
        "```HCL\nx\n```\n",
        "**Tests**\n```console\n$ pytest\n```\n",
        "So:\n```\nx\n```\n",
        "### Before\n```python\nx\n```\n",
        "```ts:line-numbers {1}\nx\n```\n",
        "```text wrap\nx\n```\n",
        "```python\n# TODO\nx\n```\n",
        "```python\n# NOTE\nx\n```\n",
        "The output of `pytest tests/a.py`:\n```\nx\n```\n",
        "`gradlew`:\n```bash\n./gradlew build\n```\n",
        "**bin/deploy**\n```sh\n$ bin/deploy --now\n```\n",
    ],
)
def test_explanation_is_neither_a_file_nor_told(tmp_path: Path, text: str) -> None:
    for name in ("gradlew", "bin/deploy", "TODO"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
    reply = parse_reply(text, ProjectNames.collect(tmp_path))
    assert (reply.edits, reply.doubts) == ((), ())


@each_row("line", ["install:", "**install**", "`install`:", "### install"])
def test_commands_below_a_word_are_no_file_even_where_one_is_called_so(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "install").write_text("#!/bin/sh\nmake\n")
    known = ProjectNames.collect(tmp_path)
    reply = parse_reply(f"{line}\n\n```bash\npip install x\n```\n", known)
    assert (reply.edits, [doubt.path for doubt in reply.doubts]) == ((), ["install"])
    (edit,) = parse_reply(f"{line}\n\n```bash\n#!/bin/sh\nmake all\n```\n", known).edits
    assert edit.path == "install"


def test_a_block_below_a_sentence_about_a_file_is_told_unless_it_shows_what_is_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    known = ProjectNames.collect(tmp_path)
    (doubt,) = parse_reply(
        "Change `a.py` as follows:\n\n```python\nx = 2\n```\n", known
    ).doubts
    assert (doubt.line, doubt.path) == (3, "a.py")
    (doubt,) = parse_reply(
        "Add this to the `Makefile`:\n\n```make\nall:\n```\n", known
    ).doubts
    assert doubt.path == "Makefile"
    assert not parse_reply(
        "In `a.py` there is:\n\n```python\ny = 2\n```\n", known
    ).doubts
    assert not parse_reply(
        "Change `a.py`:\n```python\nx = 2\n```\n```python:a.py\nx = 2\ny = 2\n```\n",
        known,
    ).doubts


def test_a_word_that_the_task_uses_for_another_file_names_none(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Calc\n")
    known = ProjectNames.collect(tmp_path, text="Update the `README`.")
    reply = parse_reply("### README\n\n```\n# Calc 2\n```\n", known)
    assert not reply.edits
    assert [doubt.path for doubt in reply.doubts] == ["README"]


TITLING = [
    *NAMING.values(),
    '```text title="{}"\n' + BODY + "```\n",
    "```\n# {}\n" + BODY + "```\n",
]
"""All that may be the title of a block that is no file."""


@each_row("form", [*TITLING, "### {}\n```sh\nx\n```\n", "`{}`\n```sh\nx\n```\n"])
@each_row("name", ["tools/lint", "NEWS"])
def test_a_new_name_without_a_suffix_is_a_file_where_the_task_says_so(
    tmp_path: Path, form: str, name: str
) -> None:
    (tmp_path / "tools").mkdir()
    assert outcome(form, name, ProjectNames.collect(tmp_path)) in ("told", "dropped")
    assert outcome(form, name, ProjectNames.collect(tmp_path, [name])) == "file"
    is_told_to_be = outcome(
        form, name, ProjectNames.collect(tmp_path, text=f"Write `{name}`.")
    )
    assert is_told_to_be == ("told" if name == "NEWS" and "sh\n" in form else "file")


@each_row("form", [*TITLING, "```text {}\n" + BODY + "```\n"])
@each_row("folder", ["src/handlers", "src", "./src/handlers", "etc/conf.d"])
def test_a_folder_is_no_file_even_where_the_task_names_it(
    tmp_path: Path, form: str, folder: str
) -> None:
    path = f"{folder.removeprefix('./')}/a.txt"
    text = f"{form.format(folder)}\n```text:{path}\ngood\n```\n"
    known = ProjectNames.collect(tmp_path, [folder], f"Fill `{folder}`.")
    assert [edit.path for edit in parse_reply(text, known).edits] == [path]
    (tmp_path / folder).mkdir(parents=True)
    assert not parse_reply(form.format(folder), known).edits


def test_a_form_that_says_of_a_folder_that_it_is_a_file_is_left_to_be_refused() -> None:
    text = "```text:src/handlers\nx\n```\n\n```text:src/handlers/a.txt\ngood\n```\n"
    assert [edit.path for edit in parse_reply(text).edits] == [
        "src/handlers",
        "src/handlers/a.txt",
    ]


@each_row(
    "name", ["", "/", "..", "../x", "a\0b", "x" * 5000, "\ud800", "~", "a/../../b"]
)
def test_any_text_can_be_asked_about(tmp_path: Path, name: str) -> None:
    known = ProjectNames.collect(tmp_path, ["a"], f"Do `{name}`.")
    assert not known.is_file(name)
    assert known.is_folder(name) is (name == "")
    assert not known.is_quotation(name, "x")
    assert known.is_named(name) in (True, False)
