"""Searching: values, the port, and its two adapters. The real library is asked through
a proxy that is not there.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from cdd_agent.errors import ExitCode
from cdd_agent.web.search import (
    DdgsSearcher,
    IWebSearcher,
    QueryResult,
    ScriptedSearcher,
    SearchResult,
    SERPReport,
    WebSearchError,
    research,
)
from tests.support.tables import each_row

DOCS = SearchResult("Textual", "https://textual.example/", "Terminal apps.")
FORUM = SearchResult("A question", "https://forum.example/1")


class TestValues:
    @each_row(
        ("value", "name"),
        [
            (DOCS, "url"),
            (QueryResult("q", (DOCS,)), "search_results"),
            (SERPReport(), "results"),
        ],
    )
    def test_values_do_not_change(self, value: object, name: str) -> None:
        with pytest.raises(AttributeError):
            setattr(value, name, ())
        assert hash(value) == hash(value)

    def test_a_report_reads_as_text(self) -> None:
        report = SERPReport(
            (QueryResult("textual", (DOCS, FORUM)), QueryResult("nothing"))
        )
        told = report.as_text()
        assert [told.index(part) for part in (DOCS.url, FORUM.url)] == sorted(
            told.index(part) for part in (DOCS.url, FORUM.url)
        )
        assert told.count("Search: ") == 2

    def test_an_empty_report_is_empty(self) -> None:
        assert SERPReport().as_text() == ""

    def test_an_error_keeps_what_the_library_raised(self) -> None:
        original = ValueError("x")
        error = WebSearchError(original, "failed", hint="wait")
        assert (error.message, error.hint, error.original_exception) == (
            "failed",
            "wait",
            original,
        )
        assert error.exit_code is ExitCode.FAILED


class TestResearch:
    async def test_each_query_has_its_result_in_order(self) -> None:
        searcher = ScriptedSearcher([[DOCS], [], [FORUM, DOCS]])
        report = await research(searcher, ["a", "b", "a"])
        assert report.results == (
            QueryResult("a", (DOCS,)),
            QueryResult("b"),
            QueryResult("a", (FORUM, DOCS)),
        )
        assert searcher.queries == ["a", "b", "a"]

    async def test_a_failure_ends_it(self) -> None:
        failure = WebSearchError(OSError("no network"))
        searcher = ScriptedSearcher([[DOCS], failure, [FORUM]])
        with pytest.raises(WebSearchError) as caught:
            await research(searcher, ["a", "b", "c"])
        assert caught.value is failure
        assert searcher.queries == ["a", "b"]

    async def test_no_query_is_an_empty_report(self) -> None:
        assert await research(ScriptedSearcher(), []) == SERPReport()

    async def test_a_script_that_is_over_is_a_mistake_of_the_test(self) -> None:
        searcher: IWebSearcher = ScriptedSearcher()
        with pytest.raises(AssertionError, match="no results left for query 1: what"):
            await searcher.search("what")


@dataclass
class Client:
    """Stands in for `ddgs.DDGS`: gives these entries, or raises."""

    entries: Sequence[Mapping[str, Any]] = ()
    error: Exception | None = None
    asked: list[tuple[str, int]] = field(default_factory=list)

    def text(self, query: str, *, max_results: int) -> Sequence[Mapping[str, Any]]:
        self.asked.append((query, max_results))
        if self.error is not None:
            raise self.error
        return self.entries


async def found(*entries: Mapping[str, Any], most: int = 8) -> tuple[SearchResult, ...]:
    return (
        await DdgsSearcher(lambda: Client(entries), max_results=most).search("q")
    ).search_results


class TestDdgs:
    async def test_its_entries_become_results(self) -> None:
        client = Client(
            [
                {
                    "title": "Textual",
                    "href": "https://textual.example/",
                    "body": "Terminal apps.",
                }
            ]
        )
        result = await DdgsSearcher(lambda: client, max_results=3).search(
            "textual widgets"
        )
        assert result == QueryResult("textual widgets", (DOCS,))
        assert client.asked == [("textual widgets", 3)]

    async def test_results_are_clean_and_of_sane_length(self) -> None:
        (result,) = await found(
            {
                "title": "A\x1b[31m\n  title " + "t" * 1000,
                "href": "https://a.example/\x07",
                "body": "b\x00 \t" * 9000,
            }
        )
        assert result.title.startswith("A[31m title tt")
        assert (len(result.title), len(result.snippet)) == (300, 1000)
        assert result.url == "https://a.example/"
        assert (result.title + result.snippet).isprintable()

    async def test_an_entry_without_a_usable_url_is_left_out(self) -> None:
        assert (
            await found(
                {"title": "x", "href": ""},
                {"title": "x"},
                {"href": "https://" + "a" * 5000},
            )
            == ()
        )

    async def test_what_is_missing_is_empty(self) -> None:
        assert await found({"href": "https://a.example/", "body": None}) == (
            SearchResult("https://a.example/", "https://a.example/"),
        )

    async def test_there_are_no_more_results_than_asked_for(self) -> None:
        assert (
            len(
                await found(
                    *({"href": f"https://a.example/{n}"} for n in range(9)), most=4
                )
            )
            == 4
        )

    async def test_nothing_found_is_no_error(self) -> None:
        from ddgs.exceptions import DDGSException

        searcher = DdgsSearcher(
            lambda: Client(error=DDGSException("No results found."))
        )
        assert await searcher.search("q") == QueryResult("q")

    @each_row("name", ["DDGSException", "RatelimitException", "TimeoutException"])
    async def test_an_error_of_the_library_is_a_search_error(self, name: str) -> None:
        from ddgs import exceptions

        original: Exception = getattr(exceptions, name)("202 \x1b[31mRatelimit")
        with pytest.raises(WebSearchError, match="Ratelimit") as caught:
            await DdgsSearcher(lambda: Client(error=original)).search("q")
        assert caught.value.original_exception is original
        assert caught.value.message.isprintable()

    @each_row("error", [KeyError("href"), OSError("x"), RuntimeError()])
    async def test_whatever_else_it_raises_too(self, error: Exception) -> None:
        with pytest.raises(WebSearchError) as caught:
            await DdgsSearcher(lambda: Client(error=error)).search("q")
        assert caught.value.original_exception is error

    async def test_a_search_that_hangs_is_left_in_time(self) -> None:
        over = threading.Event()

        class Hanging(Client):
            def text(
                self, query: str, *, max_results: int
            ) -> Sequence[Mapping[str, Any]]:
                over.wait(30)
                return []

        try:
            with pytest.raises(WebSearchError, match=r"0\.2 seconds"):
                await DdgsSearcher(Hanging, time_limit=0.2).search("q")
        finally:
            over.set()

    async def test_the_event_loop_goes_on_meanwhile(self) -> None:
        asked = threading.Event()

        class Slow(Client):
            def text(
                self, query: str, *, max_results: int
            ) -> Sequence[Mapping[str, Any]]:
                assert asked.wait(30)
                return []

        searching = asyncio.ensure_future(DdgsSearcher(Slow).search("q"))
        await asyncio.sleep(0)
        asked.set()
        assert await searching == QueryResult("q")

    async def test_without_the_library_it_says_how_to_get_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "ddgs", None)
        with pytest.raises(WebSearchError) as caught:
            await DdgsSearcher().search("q")
        assert "pip install" in caught.value.hint
        assert isinstance(caught.value.original_exception, ImportError)

    async def test_the_real_library_without_a_network_is_a_search_error(self) -> None:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException

        with socket.socket() as unused:  # bound, but nobody listens
            unused.bind(("127.0.0.1", 0))
            proxy = f"http://127.0.0.1:{unused.getsockname()[1]}"
            with pytest.raises(WebSearchError, match="'textual'") as caught:
                await DdgsSearcher(lambda: DDGS(proxy=proxy, timeout=5)).search(
                    "textual"
                )
        assert isinstance(caught.value.original_exception, DDGSException)
        assert caught.value.hint
