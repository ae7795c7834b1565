"""Searching the web: for the `research` action."""

from asyncio import timeout
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.threads import in_thread
from cdd_agent.typed_values import Checked, Written, check_argument
from cdd_agent.web.readable import one_line

_LONGEST_TITLE = 300
_LONGEST_SNIPPET = 1000
_LONGEST_URL = 2000


class SearchResult(Checked, frozen=True):
    """A page that a search engine found, as the engine describes it."""

    title: str
    url: Written
    snippet: str = ""


class QueryResult(Checked, frozen=True):
    """The pages that were found for one query, the best first."""

    query: Written
    search_results: tuple[SearchResult, ...] = ()


class SERPReport(Checked, frozen=True):
    """The search engine result pages (SERP) of some queries, in the order of the
    queries.
    """

    results: tuple[QueryResult, ...] = ()

    def as_text(self) -> str:
        """Return the whole report for a model or a user to read."""
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
    """A search could not be made. A search without results is no error."""

    def __init__(
        self, original_exception: Exception, message: str = "", *, hint: str = ""
    ) -> None:
        self.original_exception: Exception = check_argument(
            "original_exception", Exception, original_exception
        )
        """The error of the search library."""
        super().__init__(
            message or f"The search failed: {original_exception}", hint=hint
        )


class IWebSearcher(Protocol):
    """A search engine. Adapters: ddgs (several public ones) and scripted (demo,
    tests).
    """

    async def search(self, query: str) -> QueryResult:
        """Find pages. Raises `WebSearchError`, never a library's error."""
        ...


async def research(searcher: IWebSearcher, queries: Iterable[str]) -> SERPReport:
    """Ask one query after the other: search engines turn away whoever asks much at a
    time.
    """
    return SERPReport(tuple([await searcher.search(query) for query in queries]))


class ScriptedSearcher:
    """Plays what is found, query by query, and keeps the queries."""

    def __init__(
        self, script: Iterable[Sequence[SearchResult] | WebSearchError] = ()
    ) -> None:
        self.queries: list[str] = []
        self._left = deque(script)

    async def search(self, query: str) -> QueryResult:
        self.queries.append(query)
        if not self._left:
            raise AssertionError(
                f"no results left for query {len(self.queries)}: {query}"
            )
        found = self._left.popleft()
        if isinstance(found, WebSearchError):
            raise found
        return QueryResult(query, tuple(found))


class DdgsClient(Protocol):
    """The part of `ddgs.DDGS` that is used."""

    def text(self, query: str, *, max_results: int) -> Sequence[Mapping[str, Any]]:
        """Dictionaries with `title`, `href` and `body`."""
        ...


def ddgs_client() -> DdgsClient:
    """Return a client of the optional library, with its own settings. Raises
    `WebSearchError`: not installed.
    """
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
    """Searches through the `ddgs` library: it asks several public search engines and
    needs no key.
    """

    client: Callable[[], DdgsClient] = ddgs_client
    max_results: int = 8
    time_limit: float = 20.0
    """Seconds for one query."""

    async def search(self, query: str) -> QueryResult:
        try:
            async with timeout(self.time_limit):
                found = await in_thread(
                    lambda: list(
                        self.client().text(query, max_results=self.max_results)
                    ),
                    name="search",
                )
                results = _results(found)
        except WebSearchError:
            raise
        except TimeoutError as error:
            raise _failed(
                query, f"no answer within {self.time_limit:g} seconds", error
            ) from error
        except Exception as error:
            # the library lets through whatever its engines run into
            if (
                type(error).__name__ == "DDGSException"
                and str(error) == "No results found."
            ):
                return QueryResult(query)
            raise _failed(query, str(error) or type(error).__name__, error) from error
        return QueryResult(query, tuple(results[: self.max_results]))


def _results(entries: Iterable[Mapping[str, Any]]) -> list[SearchResult]:
    """Return the results that have a usable address."""
    results = []
    for entry in entries:
        title, url, snippet = (
            one_line(str(entry.get(key) or "")) for key in ("title", "href", "body")
        )
        if 0 < len(url) <= _LONGEST_URL:
            title = _shortened(title, _LONGEST_TITLE) or url[:_LONGEST_TITLE]
            snippet = _shortened(snippet, _LONGEST_SNIPPET)
            results.append(SearchResult(title, url, snippet))
    return results


def _failed(query: str, reason: str, error: Exception) -> WebSearchError:
    return WebSearchError(
        error,
        f"The search for {_shortened(one_line(query), 100)!r} failed:"
        f" {_shortened(one_line(reason), 300).rstrip('.')}.",
        hint=(
            "Check the network, or try again later: public search engines limit how"
            " often they are asked."
        ),
    )


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
