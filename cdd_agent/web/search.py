"""Searching the web: for the `research` action."""

from asyncio import timeout
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cdd_agent.errors import CddError
from cdd_agent.threads import in_thread
from cdd_agent.web.readable import one_line

_LONGEST_TITLE = 300
_LONGEST_SNIPPET = 1000
_LONGEST_URL = 2000


@dataclass(frozen=True)
class SearchResult:
    """A page that a search found, and what the search engine shows of it."""

    title: str
    url: str
    snippet: str = ""


@dataclass(frozen=True)
class QueryResult:
    """What was found for one query, the best first."""

    query: str
    search_results: tuple[SearchResult, ...] = ()


@dataclass(frozen=True)
class SERPReport:
    """The search engine result pages (SERP) of some queries, in the order in which they were asked."""

    results: tuple[QueryResult, ...] = ()

    def as_text(self) -> str:
        """The whole report for a model or a person to read."""
        return "\n\n".join(_section(result) for result in self.results)


def _section(found: QueryResult) -> str:
    entries = [
        "\n".join(filter(None, (f"{number}. {result.title}", f"   {result.url}", f"   {result.snippet}".rstrip())))
        for number, result in enumerate(found.search_results, start=1)
    ]
    return "\n".join([f"Search: {found.query}", *(entries or ["No results."])])


class WebSearchError(CddError):
    """A search could not be made. That nothing was found is none."""

    def __init__(self, original_exception: Exception, message: str = "", *, hint: str = "") -> None:
        super().__init__(message or f"The search failed: {original_exception}", hint=hint)
        self.original_exception = original_exception
        """What the search library raised."""


class IWebSearcher(Protocol):
    """A search engine. Adapters: ddgs (several public ones) and scripted (demo, tests)."""

    async def search(self, query: str) -> QueryResult:
        """Find pages. Raises `WebSearchError`, never a library's error."""
        ...


async def research(searcher: IWebSearcher, queries: Iterable[str]) -> SERPReport:
    """Ask one query after the other: search engines turn away whoever asks much at a time."""
    return SERPReport(tuple([await searcher.search(query) for query in queries]))


@dataclass
class ScriptedSearcher:
    """Plays what is found, query by query, and keeps the queries."""

    script: Iterable[Sequence[SearchResult] | WebSearchError] = ()
    queries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = deque(self.script)

    async def search(self, query: str) -> QueryResult:
        self.queries.append(query)
        if not self._left:
            raise AssertionError(f"no results left for query {len(self.queries)}: {query}")
        found = self._left.popleft()
        if isinstance(found, WebSearchError):
            raise found
        return QueryResult(query, tuple(found))


class DdgsClient(Protocol):
    """What is used of `ddgs.DDGS`."""

    def text(self, query: str, *, max_results: int) -> Sequence[Mapping[str, Any]]:
        """Dictionaries with `title`, `href` and `body`."""
        ...


def ddgs_client() -> DdgsClient:
    """Return a client of the optional library, with its own settings. Raises `WebSearchError`: not installed."""
    try:
        from ddgs import DDGS
    except ImportError as error:
        raise WebSearchError(
            error,
            "Searching the web needs a library that is not installed.",
            hint="Install `ddgs` where cdd is installed: pip install ddgs, or pipx inject cdd-agent ddgs.",
        ) from error
    return DDGS()


@dataclass(frozen=True)
class DdgsSearcher:
    """Searches through the `ddgs` library: it asks several public search engines and needs no key."""

    client: Callable[[], DdgsClient] = ddgs_client
    max_results: int = 8
    time_limit: float = 20.0
    """Seconds for one query."""

    async def search(self, query: str) -> QueryResult:
        try:
            async with timeout(self.time_limit):
                found = await in_thread(lambda: self._found(query), name="search")
        except WebSearchError:
            raise
        except TimeoutError as error:
            raise _failed(query, f"no answer within {self.time_limit:g} seconds", error) from error
        except Exception as error:  # the library lets through whatever its engines run into
            if _is_nothing_found(error):
                return QueryResult(query)
            raise _failed(query, str(error) or type(error).__name__, error) from error
        return QueryResult(query, tuple(found))

    def _found(self, query: str) -> list[SearchResult]:
        entries = self.client().text(query, max_results=self.max_results)
        results = [_result(entry) for entry in entries]
        return [result for result in results if 0 < len(result.url) <= _LONGEST_URL][: self.max_results]


def _result(entry: Mapping[str, Any]) -> SearchResult:
    title, url, snippet = (one_line(str(entry.get(key) or "")) for key in ("title", "href", "body"))
    return SearchResult(
        _shortened(title, _LONGEST_TITLE) or url[:_LONGEST_TITLE], url, _shortened(snippet, _LONGEST_SNIPPET)
    )


def _is_nothing_found(error: Exception) -> bool:
    """The library says so with an exception of the same type as for a failure."""
    return type(error).__name__ == "DDGSException" and str(error) == "No results found."


def _failed(query: str, reason: str, error: Exception) -> WebSearchError:
    return WebSearchError(
        error,
        f"The search for {_shortened(one_line(query), 100)!r} failed: {_shortened(one_line(reason), 300).rstrip('.')}.",
        hint="Check the network, or try again later: public search engines limit how often they are asked.",
    )


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
