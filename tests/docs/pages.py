"""The pages of the docs: their headings, links, code blocks and text."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = ("README.md", "PACKAGE.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages outside of `docs/`. CHANGELOG.md tells of pages that are gone."""
TESTED_ELSEWHERE = {"docs/tutorial.md": "tests/cli/test_tutorial.py types it"}
"""Pages whose examples another test executes."""
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)(?P<info>.*)$")
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
_PICTURE = re.compile(
    r"!\[[^\]]*\]\((?P<target>[^)\s]+)\)|<img[^>]* src=\"(?P<src>[^\"]+)\""
)


class Block(Struct, frozen=True):
    """A fenced code block."""

    page: str
    """The path of its page, relative to the repository."""
    line: int
    language: str
    text: str
    skip: str = ""
    """The reason for which it is not executed, from the comment above it:
    `<!-- not run: REASON -->`.
    """

    def __str__(self) -> str:
        return f"{self.page}:{self.line} ({self.language})"


class Page(Struct, frozen=True):
    path: str
    prose: tuple[tuple[int, str], ...]
    """The lines outside of code blocks, with their numbers."""
    blocks: tuple[Block, ...]

    @property
    def anchors(self) -> frozenset[str]:
        """The anchors of its headings, as GitHub and MkDocs make them."""
        anchors: dict[str, int] = {}
        for _, line in self.prose:
            heading = re.match(r"#{1,6} (.+)", line)
            if heading is None:
                continue
            anchor = slug(heading[1])
            count = anchors.get(anchor, 0)
            anchors[anchor] = count + 1
            if count:
                anchors[f"{anchor}-{count}"] = 1
        return frozenset(anchors)

    @property
    def links(self) -> Iterator[tuple[int, str]]:
        for number, line in self.prose:
            # a link in a code span is an example
            text = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", _keep_links, line)
            for link in (*_LINK.finditer(text), *_PICTURE.finditer(text)):
                yield number, link["target"] or link["src"]


def _keep_links(span: re.Match[str]) -> str:
    return "x" * len(span[0])


def slug(heading: str) -> str:
    """Return the anchor of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def _closes(line: str, opened: re.Match[str]) -> bool:
    marks = line.strip()
    return set(marks) == {"`"} and len(marks) >= len(opened["fence"])


def read_page(path: Path) -> Page:
    name = path.relative_to(ROOT).as_posix()
    prose: list[tuple[int, str]] = []
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    content: list[str] = []
    begin = 0
    skip = elsewhere = TESTED_ELSEWHERE.get(name, "")
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is not None:
            if (
                fence
                and fence["fence"].startswith(opened["fence"])
                and not fence["language"]
            ):
                text = "\n".join(content) + "\n"
                blocks.append(Block(name, begin, opened["language"], text, skip))
                opened, content, skip = None, [], elsewhere
            else:
                content.append(line.removeprefix(opened["indent"]))
        elif fence is not None:
            opened, begin = fence, number
        else:
            reason = re.fullmatch(r"<!-- not run: (.+) -->", line)
            if reason:
                skip = reason[1]
            elif line.strip():
                skip = elsewhere
            prose.append((number, line))
    assert opened is None, f"{name}:{begin}: the block has no end"
    return Page(name, tuple(prose), tuple(blocks))


@cache
def all_pages() -> tuple[Page, ...]:
    paths = [*DOCS.rglob("*.md"), *(ROOT / name for name in TOP)]
    return tuple(read_page(path) for path in sorted(paths) if path.exists())


@cache
def page_at(path: Path) -> Page:
    return read_page(path)


def blocks_of(*languages: str) -> list[Block]:
    return [
        block
        for page in all_pages()
        for block in page.blocks
        if block.language in languages
    ]
