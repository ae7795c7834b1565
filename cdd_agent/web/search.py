"""Search the web, for the `research` action."""

from asyncio import timeout
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.values.typed_values import Checked, Written, check_argument
from cdd_agent.web.plain_text import one_line

_LONGEST_TITLE = 300
_LONGEST_SNIPPET = 1000
_LONGEST_URL = 2000


class SearchResult(Checked, frozen=True):
    """A page, as the search engine describes it."""

    title: str
    url: Written
    snippet: str = ""


class QueryResult(Checked, frozen=True):
    """The results of one query, best first."""

    query: Written
    search_results: tuple[SearchResult, ...] = ()


class SERPReport(Checked, frozen=True):
    """The results in the order of the queries."""

    results: tuple[QueryResult, ...] = ()

    def as_text(self) -> str:
        sections = []
        for page in self.results:
            lines = [f"Search: {page.query}"]
            if not page.search_results:
                lines.append("No results.")
            for number, result in enumerate(page.search_results, start=1):
                lines += [f"{number}. {result.title}", f"   {result.url}"]
                if result.snippet:
                    lines.append(f"   {result.snippet}")
            sections.append("\n".join(lines))
        return "\n\n".join(sections)


class WebSearchError(CddError):
    """A search failed. A search without results is no error."""

    refusal = Refusal.WEB_PAGE

    def __init__(
        self, original_exception: Exception, message: str = "", *, hint: str = ""
    ) -> None:
        self.original_exception: Exception = check_argument(
            "original_exception", Exception, original_exception
        )
        super().__init__(
            message or f"The search failed: {original_exception}", hint=hint
        )


class IWebSearcher(Protocol):
    """A search engine: ddgs, or scripted for the demo and tests."""

    async def search(self, query: str) -> QueryResult:
        """Raises `WebSearchError`, never a library's error."""
        ...


async def research(searcher: IWebSearcher, queries: Iterable[str]) -> SERPReport:
    """Search one query after another: search engines refuse many at once."""
    return SERPReport(tuple([await searcher.search(query) for query in queries]))


class ScriptedSearcher:
    """Returns scripted results, and records the queries."""

    def __init__(
        self, script: Iterable[Sequence[SearchResult] | WebSearchError] = ()
    ) -> None:
        self.queries: list[str] = []
        self._results = deque(script)

    async def search(self, query: str) -> QueryResult:
        self.queries.append(query)
        if not self._results:
            raise AssertionError(
                f"no results left for query {len(self.queries)}: {query}"
            )
        results = self._results.popleft()
        if isinstance(results, WebSearchError):
            raise results
        return QueryResult(query, tuple(results))


class DdgsClient(Protocol):
    """The used part of `ddgs.DDGS`."""

    def text(self, query: str, *, max_results: int) -> Sequence[Mapping[str, Any]]:
        """Return dictionaries with `title`, `href` and `body`."""
        ...


def ddgs_client() -> DdgsClient:
    """Raises `WebSearchError` without the optional library."""
    try:
        # late: an optional library
        from ddgs import DDGS  # noqa: PLC0415
    except ImportError as error:
        raise WebSearchError(
            error,
            "Searching the web needs a library that is not installed.",
            hint=(
                "Install `ddgs` where cdd is installed: pip install ddgs, or pipx"
                " inject cdd-shell ddgs."
            ),
        ) from error
    return DDGS()


class DdgsSearcher(Struct, frozen=True):
    """Asks several search engines, without a key."""

    client: Callable[[], DdgsClient] = ddgs_client
    max_results: int = 8
    time_limit: float = 20.0
    """Seconds for one query."""

    async def search(self, query: str) -> QueryResult:
        try:
            async with timeout(self.time_limit):
                entries = await in_thread(lambda: self._ask(query), name="search")
                results = _read_results(entries)
        except WebSearchError:
            raise
        except TimeoutError as error:
            raise _failed(
                query, f"no answer within {self.time_limit:g} seconds", error
            ) from error
        except Exception as error:
            # the library raises all errors of its engines
            name, reason = type(error).__name__, str(error)
            if name == "DDGSException" and reason == "No results found.":
                return QueryResult(query)
            raise _failed(query, reason or name, error) from error
        return QueryResult(query, tuple(results[: self.max_results]))

    def _ask(self, query: str) -> list[Mapping[str, Any]]:
        return list(self.client().text(query, max_results=self.max_results))


def _read_results(entries: Iterable[Mapping[str, Any]]) -> list[SearchResult]:
    results = []
    for entry in entries:
        title, url, snippet = (
            one_line(str(entry.get(key) or "")) for key in ("title", "href", "body")
        )
        if not 0 < len(url) <= _LONGEST_URL:
            continue
        title = _shorten(title, _LONGEST_TITLE) or url[:_LONGEST_TITLE]
        snippet = _shorten(snippet, _LONGEST_SNIPPET)
        results.append(SearchResult(title, url, snippet))
    return results


def _failed(query: str, reason: str, error: Exception) -> WebSearchError:
    return WebSearchError(
        error,
        f"The search for {_shorten(one_line(query), 100)!r} failed:"
        f" {_shorten(one_line(reason), 300).rstrip('.')}.",
        hint=(
            "Check the network, or try again later: public search engines limit how"
            " often they are asked."
        ),
    )


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
