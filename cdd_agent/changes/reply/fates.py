"""Lists the blocks of a reply as applied, refused, explanation or ignored."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.file_names import SHELLS, is_code
from cdd_agent.changes.formats.form import Form
from cdd_agent.changes.formats.naming import DIFFS
from cdd_agent.changes.formats.project_names import ProjectNames, plain_name
from cdd_agent.changes.model import (
    BlockFate,
    Edit,
    EditProblem,
    ModeChange,
    ReplyBlock,
)
from cdd_agent.changes.reply.lines import ReplyLines
from cdd_agent.changes.reply.parts import Part, ReplyPiece

_COMMANDS = SHELLS | {"console", "shell-session", "shellsession", "powershell", "cmd"}
_NOT_APPLIED = "Nothing of a refused reply is applied."


def list_blocks(
    reply: ReplyLines, parts: Sequence[Part], project_names: ProjectNames
) -> tuple[ReplyBlock, ...]:
    blocks: list[ReplyBlock] = []
    if reply.thoughts:
        blocks.append(
            ReplyBlock(
                1,
                reply.thoughts,
                "thoughts",
                BlockFate.IGNORED,
                reason="The model's thoughts before its answer.",
            )
        )
    paths = {plain_name(edit.path) for part in parts for edit in part.edits}
    for part in parts:
        for piece in part.pieces:
            if piece.edits or piece.refusal or part.fence is None:
                blocks += _list_edits(piece)
            else:
                blocks.append(
                    _describe_explanation(part.fence, piece, paths, project_names)
                )
    return tuple(blocks)


def refused(
    blocks: Sequence[ReplyBlock], problems: Sequence[EditProblem] = ()
) -> tuple[ReplyBlock, ...]:
    reasons = {plain_name(problem.path): problem.reason for problem in problems}
    marked: list[ReplyBlock] = []
    for block in blocks:
        if block.fate is BlockFate.APPLIED:
            reason = reasons.get(plain_name(block.path), _NOT_APPLIED)
            block = replace(block, fate=BlockFate.REFUSED, reason=reason)  # noqa: PLW2901
        marked.append(block)
    return tuple(marked)


def _list_edits(piece: ReplyPiece) -> Iterator[ReplyBlock]:
    """Yield an edit block once for each file."""
    line, end, kind = piece.start + 1, piece.end, piece.kind
    if piece.refusal:
        path, reason = piece.refusal.path, piece.refusal.in_a_line
        yield ReplyBlock(line, end, kind, BlockFate.REFUSED, path, reason)
        return
    by_path: dict[str, list[Edit]] = {}
    for edit in piece.edits:
        by_path.setdefault(plain_name(edit.path), []).append(edit)
    if not by_path:
        reason = "It changes nothing."
        yield ReplyBlock(line, end, kind, BlockFate.EXPLANATION, reason=reason)
    for path, edits in by_path.items():
        if all(isinstance(edit, ModeChange) for edit in edits):
            reason = "It changes permissions, and a reply changes content only."
            yield ReplyBlock(line, end, kind, BlockFate.EXPLANATION, path, reason)
        else:
            yield ReplyBlock(line, end, kind, BlockFate.APPLIED, path)


def _describe_explanation(
    fence: Fence, piece: ReplyPiece, paths: set[str], project_names: ProjectNames
) -> ReplyBlock:
    name = plain_name(fence.doubt)
    is_doubtful, reason = _why_not_applied(fence, piece, name, paths, project_names)
    is_requested = bool(name) and is_doubtful and project_names.is_requested(name)
    # words such as `config.load` above code name no file
    is_listed = name in project_names.listed or not is_code(fence.language)
    return ReplyBlock(
        piece.start + 1,
        piece.end,
        "diff" if _is_nameless_diff(fence) else piece.kind,
        BlockFate.EXPLANATION,
        name,
        reason,
        is_doubtful,
        is_requested and is_listed,
    )


def _why_not_applied(
    fence: Fence,
    piece: ReplyPiece,
    name: str,
    paths: set[str],
    project_names: ProjectNames,
) -> tuple[bool, str]:
    if piece.kind != Form.kind:
        return False, "It changes nothing."
    if fence.holds_a_name(project_names) and name in ("", fence.content.strip()):
        return False, "It holds the name of a file alone."
    if name:
        if any(path == name or path.endswith(f"/{name}") for path in paths):
            return False, f"Another block changes {name}."
        if project_names.is_quotation(name, fence.content):
            return False, f"It shows what {name} contains."
        return True, f"It could be {name}, but the reply does not name it clearly."
    if _is_nameless_diff(fence):
        return True, "The diff names no file."
    if fence.language in _COMMANDS:
        return False, "Commands in a reply are not run."
    return False, "No file is named."


def _is_nameless_diff(fence: Fence) -> bool:
    """True for a diff block without a file name."""
    if fence.language not in DIFFS:
        return False
    return any(line.startswith(("+", "-")) for line in fence.lines)
