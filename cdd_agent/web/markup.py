"""Convert web pages to Markdown or to bare text."""

import contextlib
import html
import re
import time
import warnings
from typing import Any
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup, Tag, XMLParsedAsHTMLWarning
from bs4.element import NavigableString, PreformattedString
from markdownify import MarkdownConverter

from cdd_agent.pattern import Pattern

_MAX_TAGS = 100_000
"""Maximum number of `<` signs. A tag takes more than a kilobyte."""
_MAX_TEXT = 5_000_000
"""Characters. Nested quotations repeat their marks on each line."""
_LONG_BLANK = Pattern(r"([ \t\r\n]{99})[ \t\r\n]+")
"""The converter takes quadratic time on these."""
_LANGUAGE = Pattern(r"(?:language|lang|highlight(?:-source)?)-([\w+#]{1,20})")
_TAG = Pattern(r"<([^<>]*)>")
_UNREAD = frozenset(
    (
        *("script", "style", "noscript", "template", "svg"),
        *("nav", "iframe", "object", "canvas"),
    )
)
_INLINE = frozenset(
    (
        *("a", "b", "code", "em", "i", "kbd", "mark", "q", "s"),
        *("samp", "small", "span", "strong", "sub", "sup"),
    )
)


class PageTooComplex(Exception):
    """A page takes too much time or memory."""


def to_markdown(markup: str, *, base: str, patience: float) -> str:
    """Convert the main part of a page, after its title. `base` is its address. Raises
    `PageTooComplex` after `patience` seconds, and errors of libraries.
    """
    if markup.count("<") > _MAX_TAGS:
        raise PageTooComplex
    deadline = time.monotonic() + patience
    # the warning would be printed
    warnings.filterwarnings("ignore", category=XMLParsedAsHTMLWarning)
    soup = BeautifulSoup(markup, "lxml")
    title = ""
    if soup.title:
        title = " ".join(soup.title.get_text().split())
    _remove_unread(soup)
    content = _find_main(soup)
    _make_links_absolute(content, _find_base(soup, base))
    text = _Converter(deadline).process_tag(content)
    lines = [line.rstrip() for line in text.split("\n")]
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")
    return f"Title: {title}\n\n{text}" if title else text


def strip_tags(markup: str) -> str:
    """Return the text outside tags. It is fast for any markup."""
    pieces: list[str] = []
    # the open element without text
    unread = ""
    end = 0
    for tag in _TAG.finditer(markup):
        name = "".join(tag[1].split(maxsplit=1)[:1]).lower()
        if not unread:
            pieces.append(markup[end : tag.start()])
            if name.strip("/") not in _INLINE:
                pieces.append("\n")
            if name in _UNREAD:
                unread = name
        elif name == f"/{unread}":
            unread = ""
        end = tag.end()
    if not unread:
        pieces.append(markup[end:])
    text = "".join(pieces)
    # a number may have thousands of digits
    with contextlib.suppress(ValueError):
        text = html.unescape(text)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return "\n".join(filter(None, lines))


def _remove_unread(soup: BeautifulSoup) -> None:
    for tag in soup.find_all([*_UNREAD, "title"]):
        if not tag.decomposed:
            tag.decompose()
    for tag in soup.find_all(colspan=True):
        # a few bytes could make a thousand columns
        del tag["colspan"]
    for string in soup.find_all(string=True):
        if isinstance(string, PreformattedString):
            # comments, declarations, instructions
            string.extract()
        elif _LONG_BLANK.search(string):
            string.replace_with(NavigableString(_LONG_BLANK.sub(r"\1", string)))


def _find_main(soup: BeautifulSoup) -> Tag:
    """Return the page's main element, or the whole page if none is marked."""
    for selector in ("main", "[role=main]", "article"):
        elements = soup.select(selector)
        if len(elements) == 1 and elements[0].get_text(strip=True):
            return elements[0]
    return soup


def _find_base(soup: BeautifulSoup, address: str) -> str:
    declared = soup.find("base", href=True)
    if isinstance(declared, Tag):
        return _join(address, str(declared["href"]))
    return address


def _make_links_absolute(content: Tag, base: str) -> None:
    for link in content.find_all("a", href=True):
        href = str(link["href"]).strip()
        target = _join(base, href)
        if href.startswith("#") and len(link.get_text(strip=True)) < 2:
            # the sign after a heading
            link.extract()
        elif href.startswith("#") or not target.startswith(("http://", "https://")):
            link.unwrap()
        else:
            link["href"] = target


def _join(base: str, href: str) -> str:
    try:
        return urlsplit(urljoin(base, href)).geturl()
    # a [ without ]
    except ValueError:
        return ""


class _Converter(MarkdownConverter):
    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        super().__init__(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            table_infer_header=True,
            strip_pre=None,
            code_language_callback=_find_language,
        )

    def process_tag(self, *arguments: Any, **options: Any) -> str:
        # the library's stubs leave it out
        text = str(super().process_tag(*arguments, **options))  # type: ignore[misc]
        if time.monotonic() > self._deadline or len(text) > _MAX_TEXT:
            raise PageTooComplex
        return text

    def convert_img(self, element: Tag, *_: Any, **__: Any) -> str:
        return str(element.get("alt", ""))

    def convert_pre(self, element: Tag, text: str, *rest: Any, **options: Any) -> Any:
        text = text.strip("\n")
        return super().convert_pre(element, text, *rest, **options)  # type: ignore[misc]


def _find_language(pre: Tag) -> str | None:
    for element in (pre.find("code"), pre, *list(pre.parents)[:2]):
        if isinstance(element, Tag):
            classes = " ".join(element.get_attribute_list("class"))
            language = _LANGUAGE.search(classes)
            if language:
                return language[1]
    return None
