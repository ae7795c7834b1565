"""Turns tool calls written as text into edits.

Tables map the tool and argument names of many agents to meanings. Only calls that
change nothing but files become edits.
"""

import json
import re
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import PurePosixPath

from cdd_agent.changes.completeness import PROSE
from cdd_agent.changes.formats.call_readers import WrittenCall
from cdd_agent.changes.formats.diffs import Diffs
from cdd_agent.changes.formats.fences import Fence, find_fences
from cdd_agent.changes.formats.form import Form
from cdd_agent.changes.formats.patches import Patches
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES
from cdd_agent.changes.formats.search_replace import SearchReplace
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Renaming,
    TextReplacement,
    WholeFile,
)


class CallRefused(Exception):
    """Why a call is no change of files, or is not understood."""


_PATH = "path"
_CONTENT = "content"
_OLD = "old"
_NEW = "new"
_EDITS = "edits"
_DIFF = "diff"
_TO = "to"
_COMMAND = "command"
_PLACES = ("start_line", "end_line")
_IGNORED = "ignored"
_ARGUMENTS = {
    _PATH: "path file_path filepath file filename file_name target_file target_path"
    " target_filepath absolute_path relative_path file_to_edit source source_path src"
    " old_path from from_path",
    _TO: "destination destination_path dest dst target new_path new_name to to_path",
    _CONTENT: "content contents file_text file_content text code new_content"
    " code_content full_content",
    _OLD: "old_string old_str old_text old search find search_text search_string"
    " target_content original old_content old_code",
    _NEW: "new_string new_str new_text new replace replacement replace_text"
    " replace_string replacement_content new_code",
    _EDITS: "edits changes replacements",
    _DIFF: "diff patch input patch_text unified_diff",
    _COMMAND: "command",
    **{place: place for place in _PLACES},
    # irrelevant to the file
    _IGNORED: "explanation description instruction instructions reason thought language"
    " toolsummary toolaction overwrite create_dirs create_directories line_count"
    " task_progress encoding replace_all expected_replacements is_new_file"
    " requires_approval security_risk complexity toolname",
}
"""Names of arguments by meaning."""


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


_MEANING_OF_ARGUMENT = {
    _plain(name): meaning
    for meaning, names in _ARGUMENTS.items()
    for name in names.split()
}
_Given = dict[str, object]
"""Arguments by meaning."""


def _create(given: _Given, call: WrittenCall) -> list[Edit]:
    path, content = _texts(given, _PATH, _CONTENT)
    return [WholeFile(path, _content(path, content, call), must_be_new=True)]


def _write(given: _Given, call: WrittenCall) -> list[Edit]:
    path, content = _texts(given, _PATH, _CONTENT)
    return [WholeFile(path, _content(path, content, call))]


def _edit(given: _Given, call: WrittenCall) -> list[Edit]:
    if _DIFF in given or _OLD in given:
        for place in _PLACES:  # the text itself locates the edit
            given.pop(place, None)
    if _DIFF in given:
        return _apply(given)
    if _CONTENT in given:
        return _write(given, call)
    if _EDITS not in given:
        path, old, new = _texts(given, _PATH, _OLD, _NEW)
        old, new = _without_marks(old, call), _without_marks(new, call)
        return [_replacement(path, old, new, call)]
    edits: list[Edit] = []
    items = _as_list(given.pop(_EDITS))
    for item in items:
        edits += _edit({**given, **_by_meaning(item)}, call)
    return edits


def _apply(given: _Given) -> list[Edit]:
    if _PATH in given:
        path, text = _texts(given, _PATH, _DIFF)
    else:
        (text,) = _texts(given, _DIFF)
        path = None
    edits = _edits_in(text, path)
    if not edits:
        raise CallRefused("its diff cannot be read")
    return edits


def _delete(given: _Given, call: WrittenCall) -> list[Edit]:
    del call
    (path,) = _texts(given, _PATH)
    return [Deletion(path)]


def _move(given: _Given, call: WrittenCall) -> list[Edit]:
    del call
    path, to = _texts(given, _PATH, _TO)
    return [Renaming(path, to)]


def _by_command(given: _Given, call: WrittenCall) -> list[Edit]:
    command = given.pop(_COMMAND, None)
    meaning = {"create": _create, "str_replace": _edit}.get(str(command))
    if meaning is None:
        raise CallRefused(f"`{command}` is not carried out from text")
    return meaning(given, call)


def _ignore(given: _Given, call: WrittenCall) -> list[Edit]:
    del given, call
    return []


Meaning = Callable[[_Given, WrittenCall], list[Edit]]
_NAMES: Mapping[Meaning, str] = {
    _create: "create_file create_new_file new_file add_file",
    _write: "write_file write_to_file write file_write save_file save-file"
    " overwrite_file update_file create_or_update_file replace_file_contents fs_write"
    " fsWrite writeTextFile",
    _edit: "edit_file edit file_edit str_replace string_replace replace_in_file"
    " apply_diff apply_patch patch_file patch"
    " search_replace search_and_replace find_and_replace multi_edit multi_edit_file"
    " modify_file edit_existing_file replace_string_in_file insert_edit_into_file"
    " str_replace_edit_tool replace_file_content replace",
    _by_command: "str_replace_editor str_replace_based_edit_tool",
    _delete: "delete_file remove_file delete remove delete_files",
    _move: "move_file rename_file move rename",
    # these end a conversation or keep a list, and ask for nothing
    _ignore: "attempt_completion task_complete finish final_answer update_todo_list"
    " todo_write TodoWrite think directly_answer directly-answer plan_mode_respond",
}
_MEANINGS = {
    _plain(name): meaning for meaning, names in _NAMES.items() for name in names.split()
}
_OTHERS = (
    "read_file read view_file open_file cat list_files list_dir list_directory ls glob"
    " glob_files grep grep_files grep_search search_files search_code codebase_search"
    " list_code_definition_names execute_command run_command run_terminal_cmd"
    " run_in_terminal execute_bash bash shell terminal exec execute run python"
    " run_shell_command code_interpreter web_search web_fetch fetch_url google_search"
    " research browser_action use_mcp_tool access_mcp_resource ask_followup_question"
    " ask_user chat_with_user switch_mode new_task fetch_instructions insert_content"
    " git_status git_diff git_log run_tests semantic_search find_code view"
    " read_many_files"
)
"""Other tools. Without a mark, text is a call only if it has a known name."""
_KNOWN = _MEANINGS.keys() | {_plain(name) for name in _OTHERS.split()}
TAGS = frozenset(
    name
    for names in (*_NAMES.values(), _OTHERS)
    for name in names.split()
    if "_" in name
)
"""Names that, as tags, are hardly anything but calls."""


def is_known_tool(name: str) -> bool:
    return _base_name(name) in _KNOWN


def changes_files(name: str) -> bool:
    return _MEANINGS.get(_base_name(name), _ignore) is not _ignore


def shown_name(name: str) -> str:
    return re.sub(r"\A(?:functions|default_api)\.|:\d+\Z", "", name.strip())[:80]


def _base_name(name: str) -> str:
    """Remove a namespace such as `functions.` or `mcp__files__`."""
    return _plain(re.split(r"[./:]|__", re.sub(r":\d+\Z", "", name.strip()))[-1])


def edits_of_call(call: WrittenCall) -> list[Edit]:
    """Raises `CallRefused`, and `ReplyRefused` for a wrong diff."""
    meaning = _MEANINGS.get(_base_name(call.name))
    if meaning is None:
        raise CallRefused("")
    if meaning is _ignore:
        return []
    if call.arguments is None:
        raise CallRefused("its arguments cannot be read")
    return meaning(_by_meaning(call.arguments), call)


def _by_meaning(arguments: object) -> _Given:
    if not isinstance(arguments, dict):
        raise CallRefused("its arguments cannot be read")
    given: _Given = {}
    for name, value in arguments.items():
        meaning = _MEANING_OF_ARGUMENT.get(_plain(name))
        if meaning is None:
            raise CallRefused(f"its argument `{name}` is not understood")
        if meaning is _IGNORED:
            continue
        if given.get(meaning, value) != value:
            raise CallRefused(f"its argument `{name}` is given twice")
        given[meaning] = value
    return given


def _texts(given: _Given, *meanings: str) -> list[str]:
    """Return these arguments, which must be texts, and the only ones."""
    texts = []
    for meaning in meanings:
        value = given.get(meaning)
        if not isinstance(value, str) or (
            meaning in (_PATH, _TO) and not value.strip()
        ):
            names = _ARGUMENTS[meaning].split()
            raise CallRefused(f"it has no argument `{names[0]}` that is a text")
        texts.append(value.strip() if meaning in (_PATH, _TO) else value)
    for meaning in given.keys() - set(meanings):
        raise CallRefused(f"its argument for `{meaning}` does not belong there")
    return texts


def _as_list(value: object) -> list[object]:
    if isinstance(value, str):
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list) or not value:
        raise CallRefused("its list of edits cannot be read")
    return value


def _content(path: str, text: str, call: WrittenCall) -> str:
    """Return a file's content. Raw text is whole lines, may be in a code block, and may
    begin on the line after its mark.
    """
    if not call.is_raw:
        return text
    block = _only_block(text)
    if block is not None and PurePosixPath(path).suffix.lower() not in PROSE:
        return block
    if not call.is_on_lines:
        text = text.removeprefix("\n")
    text = _without_marks(text, call)
    return text if not text or text.endswith("\n") else f"{text}\n"


def _only_block(text: str) -> str | None:
    """Return the content if the text is one code block, else None."""
    if not text.lstrip().startswith(("```", "~~~")):
        return None
    lines = text.split("\n")
    fences = find_fences(lines)
    if len(fences) != 1 or not fences[0].is_closed:
        return None
    after = "".join(lines[fences[0].end :])
    return None if after.strip() else fences[0].content


def _without_marks(text: str, call: WrittenCall) -> str:
    if not call.is_on_lines or not text.startswith("\n"):
        return text
    return text.removeprefix("\n").removesuffix("\n")


def _replacement(path: str, old: str, new: str, call: WrittenCall) -> Edit:
    if not old:
        return WholeFile(path, _content(path, new, call), must_be_new=True)
    return TextReplacement(path, old, new)


def _edits_in(text: str, path: str | None) -> list[Edit]:
    if "&lt;&lt;&lt;" in text:  # some models escape tag content
        text = unescape(text)
    lines = text.replace("\r\n", "\n").split("\n")
    blocks = SearchReplace().marked(lines, NO_PROJECT_NAMES)
    if blocks:
        return [edit for block in blocks for edit in block.read(block.path or path)]
    fence = Fence(0, len(lines) + 2, "```", "diff", path, f"{text}\n", True)
    forms: tuple[Form, ...] = (Patches(), Diffs())
    for form in forms:
        if form.accepts(fence):
            return form.read(fence)
    return []
