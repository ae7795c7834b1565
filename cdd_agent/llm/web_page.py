"""Web pages instead of an API's answer: from a firewall, a login, a proxy."""

import html
import re

from cdd_agent.pattern import Pattern

_PAGE = Pattern(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_TITLE = Pattern(r"<(title|h1)\b[^>]*>(.{1,500}?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_MARKUP = Pattern(
    r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE
)


def is_web_page(text: str) -> bool:
    return _PAGE.search(text) is not None


def title_of_page(text: str) -> str | None:
    """Return the title of a web page, or else its text; None for other texts."""
    page = _PAGE.search(text)
    if page is None:
        return None
    title = _TITLE.search(text)
    return page_text(title[2] if title else text[page.start() :])


def page_text(markup: str) -> str:
    return " ".join(html.unescape(_MARKUP.sub(" ", markup)).split())
