"""HTML → Markdown."""

import re
import time
import warnings
from typing import Any
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag, XMLParsedAsHTMLWarning
from bs4.element import NavigableString, PreformattedString
from markdownify import MarkdownConverter

from cdd_agent.web.unread_tags import UNREAD

_MOST_TAGS = 100_000
"""A tag takes more than a kilobyte."""
_DEEPEST = 200
"""The converter calls itself three times for each level."""
_LONGEST = 5_000_000
"""A quotation within a quotation within ... begins each of its lines with as many
marks.
"""
_LONG_BLANK = re.compile(r"[ \t\r\n]{100,}")
"""Some patterns of the converter's take the square of the length of such a run."""
_LANGUAGE = re.compile(r"(?:language|lang|highlight(?:-source)?)-([\w+#]{1,20})")


class TooMuch(Exception):
    """The page is too large, too deep or too slow to be taken apart."""


def _check(until: float, *, size: int = 0) -> None:
    if time.monotonic() > until or size > _LONGEST:
        raise TooMuch


def to_markdown(html: str, *, base: str, patience: float) -> str:
    """Convert a page, its title first; links are made absolute. Raises `TooMuch`, and
    whatever the libraries do.
    """
    until = time.monotonic() + patience
    # is written to the screen otherwise
    warnings.filterwarnings("ignore", category=XMLParsedAsHTMLWarning)
    soup = _Soup(html, until)
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    _make_links_absolute(soup, base, until)
    _drop_what_is_not_read(soup, until)
    text = _Converter(until).convert_soup(soup)
    lines = (line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")
    return f"Title: {title}\n\n{text}" if title else text


def _make_links_absolute(soup: BeautifulSoup, base: str, until: float) -> None:
    """Links within the page and to things that are no pages become their text."""
    if isinstance(declared := soup.find("base", href=True), Tag):
        base = _joined(base, str(declared["href"]))
    for link in soup.find_all("a", href=True):
        _check(until)
        if link.decomposed:
            continue
        href = str(link["href"]).strip()
        target = _joined(base, href)
        if href.startswith("#") and len(link.get_text(strip=True)) < 2:
            link.decompose()  # the ¶ of a heading
        elif href.startswith("#") or not target.startswith(("http://", "https://")):
            link.unwrap()
        else:
            link["href"] = target


def _joined(base: str, href: str) -> str:
    try:
        return urlsplit(urljoin(base, href)).geturl()
    except ValueError:  # [ without ]
        return ""


def _drop_what_is_not_read(soup: BeautifulSoup, until: float) -> None:
    for tag in soup.find_all([*UNREAD, "title"]):
        if not tag.decomposed:
            tag.decompose()
    for tag in soup.find_all(colspan=True):
        del tag["colspan"]  # a thousand columns in a dozen bytes
    for string in soup.find_all(string=True):
        _check(until)
        if isinstance(string, PreformattedString):
            string.extract()  # comments, declarations, instructions
        elif _LONG_BLANK.search(string):
            string.replace_with(
                NavigableString(_LONG_BLANK.sub(lambda blank: blank[0][:99], string))
            )


def _ended_by(names: str, *, ends: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(names.split(), frozenset(ends.split()))


_ENDS = {
    **_ended_by(
        "p div ul ol dl table pre blockquote section article h1 h2 h3 h4 h5 h6 hr",
        ends="p",
    ),
    **_ended_by("li", ends="li p"),
    **_ended_by("dt dd", ends="dt dd p"),
    **_ended_by("td th", ends="td th p"),
    **_ended_by("tr", ends="tr td th p"),
    **_ended_by("tbody tfoot", ends="thead tbody tr td th p"),
}
"""Which elements end, without being told, where another begins. The parser does not
know.
"""


class _Soup(BeautifulSoup):
    """A tree that gives up in time: the parser needs hours for a megabyte of
    `<a <a <a`.
    """

    def __init__(self, html: str, until: float) -> None:
        self._until = until
        self._tags = 0
        super().__init__(html, "html.parser")

    def handle_starttag(self, name: str, *arguments: Any, **more: Any) -> Tag | None:
        self._check()
        self._tags += 1
        while self.currentTag is not None and self.currentTag.name in _ENDS.get(
            name, ()
        ):
            self.handle_endtag(self.currentTag.name)
        return super().handle_starttag(name, *arguments, **more)

    def handle_endtag(self, *arguments: Any, **more: Any) -> None:
        self._check()
        super().handle_endtag(*arguments, **more)

    def handle_data(self, data: str) -> None:
        self._check()
        super().handle_data(data)

    def _check(self) -> None:
        _check(self._until)
        if self._tags > _MOST_TAGS or len(self.tagStack) > _DEEPEST:
            raise TooMuch


class _Converter(MarkdownConverter):
    """Markdown for reading: no escapes, no pictures, the language of code where it is
    known.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        super().__init__(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            table_infer_header=True,
            strip_pre=None,
            code_language_callback=_language,
        )

    def process_tag(self, *arguments: Any, **more: Any) -> Any:
        _check(self._until)
        # the library's stubs leave it out
        text = super().process_tag(*arguments, **more)  # type: ignore[misc]
        _check(self._until, size=len(text))
        return text

    def convert_img(self, element: Tag, *_: Any, **__: Any) -> str:
        return str(element.get("alt", ""))

    def convert_pre(self, element: Tag, text: str, *rest: Any, **more: Any) -> Any:
        return super().convert_pre(element, text.strip("\n"), *rest, **more)  # type: ignore[misc]


def _language(pre: Tag) -> str | None:
    """The language of a block of code, which its class says, or that of an element
    close to it.
    """
    for element in (pre.find("code"), pre, *list(pre.parents)[:2]):
        if isinstance(element, Tag) and (
            found := _LANGUAGE.search(" ".join(element.get_attribute_list("class")))
        ):
            return found[1]
    return None
