"""Pages are read as text, within limits, and from public places only: nothing else gets
a connection.
"""

import asyncio
import contextlib
import gzip
import ssl
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from socket import AI_NUMERICHOST, AddressFamily, gaierror, getaddrinfo

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from cdd_agent.version import VERSION
from cdd_agent.web.addresses import Address, is_public, system_resolve
from cdd_agent.web.pages import Page, PageReader, PageUnreadable
from cdd_agent.web.readable import readable
from tests.support.examples import count_examples
from tests.support.tables import each_row
from tests.web.server import Answer, PageServer, redirect

READER = PageReader(allow_private=True, time_limit=120)


async def read(answer: Answer, reader: PageReader = READER) -> Page:
    async with PageServer({"/": answer}) as server:
        return await reader.read(server.url())


async def refusal(answer: Answer, reader: PageReader = READER) -> PageUnreadable:
    with pytest.raises(PageUnreadable) as caught:
        await read(answer, reader)
    assert caught.value.hint
    return caught.value


def converted(html: str, patience: float = 60) -> str | None:
    return readable(
        html.encode(),
        "text/html",
        None,
        cut=False,
        base="http://example.com/",
        patience=patience,
    )


@pytest.fixture(autouse=True)
async def nothing_is_left_open() -> AsyncIterator[None]:
    yield
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:  # httpx ends its generators after the answer was let go of
        _, others = await asyncio.wait(others, timeout=60)
    assert not others


class TestText:
    async def test_html_becomes_markdown(self) -> None:
        html = b"""<!DOCTYPE html><html><head><title>The
            title</title><style>p {}</style></head><body><nav><a href="/">Menu</a></nav>
            <h1>Use <code>snake_case</code><a href="#use">\xc2\xb6</a></h1>
            <p>See <a href="more.html">more</a>, or <a href="javascript:x()">click</a>.
            <ul><li>one<li>two</ul>
            <table><tr><th>a<th>b<tr><td>1<td>2</table>
            <pre><code class="language-python">def f():\n\n    pass\n</code></pre>
            <script>steal()</script><noscript>No script.</noscript>\
<template>T</template><svg><text>S</text></svg>
            <img src="data:image/png;base64,AAAA" alt="A drawing">\
<!-- a note --></body></html>"""
        async with PageServer({"/": Answer(html)}) as server:
            page, base = await READER.read(server.url()), server.url()
        expected = (
            "Title: The title\n\n"
            "# Use `snake_case`\n\n"
            f"See [more]({base}more.html), or click.\n\n"
            "- one\n"
            "- two\n\n"
            "| a | b |\n"
            "| --- | --- |\n"
            "| 1 | 2 |\n\n"
            "```python\n"
            "def f():\n\n"
            "    pass\n"
            "```\n\n"
            "A drawing"
        )
        assert page == Page(expected)

    @each_row(
        "media_type",
        [
            "text/plain",
            "text/markdown",
            "application/json",
            "application/ld+json",
            "text/xml",
            "application/rss+xml",
        ],
    )
    async def test_other_text_is_left_as_it_is(self, media_type: str) -> None:
        text = '{"a": "<b>ü</b>"}\n\tend'
        page = await read(Answer(text.encode(), f"{media_type}; charset=utf-8"))
        assert page == Page(text)

    @each_row(
        ("body", "content_type", "text"),
        [
            ("ü".encode("latin-1"), "text/plain; charset=iso-8859-1", "ü"),
            (b"\x93q\x94", "text/plain; charset=latin-1", "“q”"),
            ("ü".encode(), "text/plain", "ü"),
            (b"\xfcber", "text/plain; charset=utf-8", "\ufffdber"),
            ("ü".encode(), "text/plain; charset=klingon", "ü"),
            (b"abc", 'text/plain; charset="zlib"', "abc"),
            (b"abc-", "text/plain; charset=punycode", "abc-"),
            (b"abc", f"text/plain; charset*{'1' * 5000}=x", "abc"),
            ("ü".encode("latin-1"), "text/plain; x=y;CHARSET = 'latin1'", "ü"),
            (b"a\\d", "text/plain; charset=unicode_escape", "a\\d"),
            ("日本".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本"),
            ("ü".encode("utf-16"), "text/plain", "ü"),
            ("ü".encode("utf-8-sig"), "text/plain; charset=latin-1", "ü"),
            (b'<meta charset="windows-1251">\xdf', "text/html", "Я"),
            (b'<?xml version="1.0" encoding="windows-1251"?>\xdf', "text/xml", None),
            (b"", "text/plain", ""),
        ],
    )
    async def test_bytes_are_decoded_by_what_they_are_said_to_be(
        self, body: bytes, content_type: str, text: str | None
    ) -> None:
        page = await read(Answer(body, content_type))
        assert page.text == text if text is not None else page.text.endswith("Я")

    @each_row("content_type", ["text/plain", "text/html"])
    async def test_nothing_in_the_text_steers_a_terminal(
        self, content_type: str
    ) -> None:
        body = (
            "a\x1b[31mb\x00\x07\x9b2J\x7f\r\n"
            "c\rd\te \u202eevil &#27;[2J &#xD800; &#x9b;"
        )
        page = await read(Answer(body.replace("\x00", "").encode(), content_type))
        assert not [
            c
            for c in page.text
            if (ord(c) < 32 and c not in "\n\t")
            or 0x7F <= ord(c) < 0xA0
            or c == "\u202e"
        ]
        assert page.text.encode()
        assert "evil" in page.text

    async def test_a_page_that_does_not_say_what_it_is_is_looked_at(self) -> None:
        assert (await read(Answer(b" <!doctype HTML><h1>Hi</h1>", None))).text == "# Hi"
        assert (await read(Answer(b"just <h1>text", None))).text == "just <h1>text"
        assert (
            await read(Answer(b"name = 1", "application/octet-stream"))
        ).text == "name = 1"

    @each_row(
        ("body", "content_type"),
        [
            (b"%PDF", "application/pdf"),
            (b"\x89PNG", "image/png"),
            (b"PK", "application/zip"),
            (b"\x7fELF\0\0\0", "application/octet-stream"),
            (b"\x7fELF\0\0\0", "text/plain"),
            (b"x", "multipart/form-data"),
            (b"x", "\x1b[31m/\x9b"),
        ],
    )
    async def test_what_is_not_text_is_refused(
        self, body: bytes, content_type: str
    ) -> None:
        error = await refusal(Answer(body, content_type))
        assert error.message.endswith("not text.")
        assert error.message.isprintable()
        assert error.exit_code == 1

    @each_row(
        ("body", "text"),
        [
            ("<header>h</header><main><h1>M</h1></main><footer>f</footer>", "# M"),
            ("<div>h</div><div role=main><p>M</div><p>f", "M"),
            ("<p>h<article>A</article>", "A"),
            ("<main>M <article>A</article></main>", "M\n\nA"),
            # without text of its own, or one of several: not the page's main part
            ("<main><nav>menu</nav></main><p>whole", "whole"),
            ("<article>A</article><article>B</article>", "A\n\nB"),
            ("<p>whole", "whole"),
            ("", ""),
        ],
    )
    def test_the_main_part_of_a_page_is_read(self, body: str, text: str) -> None:
        assert converted(f"<!doctype html><body>{body}") == text

    def test_links_of_the_main_part_follow_the_base_of_the_page(self) -> None:
        page = "<head><base href=/docs/></head><main><a href=a>A</a></main>"
        assert converted(page) == "[A](http://example.com/docs/a)"

    async def test_links_are_relative_to_where_the_page_is_in_the_end(self) -> None:
        answers = {
            "/a": redirect("/deep/b"),
            "/deep/b": Answer(b'<a href="c">next</a>'),
        }
        async with PageServer(answers) as server:
            page = await READER.read(server.url("/a"))
            assert page == Page(f"[next]({server.url('/deep/c')})")


class TestHostileMarkup:
    """Whatever is in a page, there is text in time."""

    async def test_too_deep_for_a_converter_it_is_bare_text(self) -> None:
        body = (
            b"<script>no</script>"
            + b"<div>" * 50_000
            + b"<b>deep</b> &amp; <i>down</i>"
            + b"</div>" * 50_000
        )
        assert (await read(Answer(body))).text == "deep & down"

    @pytest.mark.long
    @each_row(
        "html",
        [
            "<a " * 300_000,
            "<!--" * 200_000,
            "<![CDATA[" * 100_000,
            "<a b='" * 150_000,
            "<p>text" * 150_000,
            "<b></b>" * 120_000,
            "<br>" * 60_000 + "</i>" * 120_000,
            "<p>a" + " " * 900_000 + "b",
            "<p>a" + "&#32;" * 180_000 + "b",
            "<pre>a" + "<i> </i>" * 100_000 + "b",
            "<pre>a" + ("<i>" + " " * 99 + "</i>") * 9_000 + "b",
            "<blockquote>" * 150 + "a\n" * 400_000,
            "<table><tr>" + '<td colspan="1000">a' * 40_000,
            "<ol>" + "<li>a" * 90_000,
            '<ol start="' + "1" * 5000 + '"><li>a</ol>',
            "a &#" + "1" * 100_000 + ";",
            "<" * 900_000,
            "<ol start='²'><li>a",
        ],
        ids=lambda html: html[:16],
    )
    def test_markup_made_to_take_for_ever_does_not(self, html: str) -> None:
        started = time.monotonic()
        assert converted(html, patience=0.3) is not None
        assert time.monotonic() - started < 60

    def test_a_page_that_is_converted_too_slowly_is_bare_text(self) -> None:
        text = converted("<p>The start<p>" + "<!--" * 200_000, patience=0.3)
        assert text is not None
        assert text.startswith("The start\n")

    @pytest.mark.parametrize(
        "html",
        [
            "<?xml version='1.0'?><html><p>x",
            "x",
            "https://example.com/",
            "/etc/passwd",
            "",
            " ",
            "<",
            "&",
            "<>",
        ],
    )
    async def test_no_library_says_anything_on_the_screen(
        self, html: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        await read(Answer(html.encode()))
        assert capfd.readouterr() == ("", "")

    @settings(max_examples=count_examples(60))
    @given(st.text("<>/!-[]&;#x= 'abpre\"tdli\n\\", max_size=200))
    def test_any_markup_gives_text(self, html: str) -> None:
        assert converted(html) is not None


class TestLimits:
    async def test_a_long_body_is_cut_and_not_read_further(self) -> None:
        async def more() -> AsyncIterator[bytes]:
            while True:
                yield b"0123456789" * 1000

        page = await read(
            Answer(b"start ", "text/plain", endless=more),
            structs.replace(READER, size_limit=50_000),
        )
        assert page.cut
        assert len(page.text) == 50_000
        assert page.text.startswith("start 0123")

    async def test_a_body_of_just_the_limit_is_whole(self) -> None:
        reader = structs.replace(READER, size_limit=1000, text_limit=1000)
        for length, cut in ((1000, False), (1001, True)):
            for headers, body in (
                ({}, b"a" * length),
                ({"Content-Encoding": "gzip"}, gzip.compress(b"a" * length)),
            ):
                page = await read(Answer(body, "text/plain", headers=headers), reader)
                assert (page.cut, page.text) == (cut, "a" * 1000)

    async def test_text_is_cut_at_its_own_limit(self) -> None:
        page = await read(
            Answer("ü".encode() * 20, "text/plain"),
            structs.replace(READER, text_limit=7),
        )
        assert (page.text, page.cut) == ("ü" * 7, True)

    async def test_a_cut_character_leaves_no_trace(self) -> None:
        page = await read(
            Answer("aü".encode(), "text/plain"), structs.replace(READER, size_limit=2)
        )
        assert (page.text, page.cut) == ("a", True)

    async def test_a_server_that_drips_is_left_in_time(self) -> None:
        async def drips() -> AsyncIterator[bytes]:
            while True:
                yield b"."
                await asyncio.sleep(0.01)

        for answer in (
            Answer(endless=drips),
            Answer(raw=b"HTTP/1.1 200 OK\r\nX: ", endless=drips),
        ):
            started = time.monotonic()
            error = await refusal(answer, structs.replace(READER, time_limit=0.5))
            assert "within 0.5 seconds" in error.message
            assert time.monotonic() - started < 60

    async def test_the_time_limit_is_for_all_redirects_together(self) -> None:
        async def slow() -> AsyncIterator[bytes]:
            await asyncio.sleep(0.4)
            yield b"Content-Length: 0\r\n\r\n"

        answers = {
            f"/{n}": Answer(
                raw=f"HTTP/1.1 302 Found\r\nLocation: /{n + 1}\r\n".encode(),
                endless=slow,
            )
            for n in range(5)
        }
        async with PageServer(answers) as server:
            with pytest.raises(PageUnreadable, match="within 1 seconds"):
                await structs.replace(READER, time_limit=1).read(server.url("/0"))
            assert len(server.requests) < 5

    async def test_a_look_up_that_hangs_is_left_in_time(self) -> None:
        async def hangs(host: str) -> tuple[Address, ...]:
            await asyncio.Event().wait()
            return ()

        with pytest.raises(PageUnreadable, match=r"within 0\.2 seconds"):
            await structs.replace(READER, time_limit=0.2, resolve=hangs).read(
                "http://example.com/"
            )

    async def test_who_stops_waiting_is_not_held_up(self) -> None:
        async def silence() -> AsyncIterator[bytes]:
            await asyncio.Event().wait()
            yield b""

        async with PageServer({"/": Answer(endless=silence)}) as server:
            reading = asyncio.ensure_future(READER.read(server.url()))
            while not server.requests:
                await asyncio.sleep(0.01)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading


class TestCompression:
    async def test_gzip_is_unpacked(self) -> None:
        gzipped = gzip.compress(b"one ") + gzip.compress(b"two")
        page = await read(
            Answer(gzipped, "text/plain", headers={"Content-Encoding": "gzip"})
        )
        assert page.text == "one two"

    async def test_a_bomb_is_cut(self) -> None:
        bomb = gzip.compress(b"a" * 100_000_000, 9)
        tracemalloc.start()
        try:
            page = await read(
                Answer(bomb, "text/plain", headers={"Content-Encoding": "gzip"})
            )
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert page.cut
        assert peak < 40_000_000

    @each_row(
        ("body", "encoding"),
        [
            (gzip.compress(b"whole" * 100)[:-9], "gzip"),
            (b"not gzip at all", "gzip"),
            (gzip.compress(b"a") + b"garbage", "gzip"),
            (gzip.compress(gzip.compress(b"a")), "gzip, gzip"),
            (b"a", "br"),
            (b"a", "zstd"),
            (b"a", "\x1b[31m"),
        ],
        # a gzip holds the time
        ids=[
            "no end",
            "not gzip",
            "garbage after it",
            "twice",
            "brotli",
            "zstd",
            "nonsense",
        ],
    )
    async def test_what_is_wrongly_compressed_is_refused(
        self, body: bytes, encoding: str
    ) -> None:
        error = await refusal(
            Answer(body, "text/plain", headers={"Content-Encoding": encoding})
        )
        assert "compress" in error.message
        assert error.message.isprintable()


class TestServers:
    async def test_it_says_who_is_reading(self) -> None:
        async with PageServer({"/": Answer()}) as server:
            await READER.read(server.url())
            assert server.requests[0].headers["user-agent"] == f"cdd-agent/{VERSION}"

    async def test_no_proxy_can_look_up_names_in_its_place(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        assert (await read(Answer(b"here", "text/plain"))).text == "here"

    async def test_certificates_that_are_not_there_are_told(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
        assert "SSL_CERT_FILE" in (await refusal(Answer())).hint

    async def test_a_cookie_is_kept_for_the_redirects_of_one_read(self) -> None:
        first = replace(
            redirect("/there"), headers={"Location": "/there", "Set-Cookie": "seen=1"}
        )
        async with PageServer({"/": first, "/there": Answer()}) as server:
            await READER.read(server.url())
            await READER.read(server.url("/there"))
            assert [request.headers.get("cookie") for request in server.requests] == [
                None,
                "seen=1",
                None,
            ]

    @each_row(
        "status",
        ["404 Not Found", "403 Forbidden", "500 Oops", "301 Moved", "304 Not Modified"],
    )
    async def test_an_answer_that_is_no_page_is_told(self, status: str) -> None:
        assert (
            f"answers {status}."
            in (await refusal(Answer(b"<h1>Sorry</h1>", status=status))).message
        )

    @each_row(
        "raw",
        [
            b"",
            b"hello\r\n\r\n",
            b"HTTP/1.1 999999 x\r\n\r\n",
            b"\x16\x03\x01\x00\x00",
            (
                b"HTTP/1.1 200 OK\r\n"
                b"Content-Length: 100\r\n"
                b"Content-Type: text/plain\r\n"
                b"\r\n"
                b"short"
            ),
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 100_000 + b"\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
            b"HTTP/1.1 302 \x9b\xff\r\nLocation: http://[\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: http://a:b:c/\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\r\n\r\n",
        ],
        ids=lambda raw: raw[:40],
    )
    async def test_what_is_not_http_is_told(self, raw: bytes) -> None:
        error = await refusal(Answer(raw=raw))
        assert error.message.isprintable()

    async def test_a_redirect_loop_ends(self) -> None:
        async with PageServer({"/": redirect("/")}) as server:
            with pytest.raises(PageUnreadable, match="redirects more than 5 times"):
                await READER.read(server.url())
            assert len(server.requests) == 6

    async def test_five_redirects_are_followed(self) -> None:
        answers = {f"/{n}": redirect(f"/{n + 1}") for n in range(5)}
        async with PageServer(
            {**answers, "/5": Answer(b"here", "text/plain")}
        ) as server:
            assert (await READER.read(server.url("/0"))).text == "here"

    async def test_the_body_of_a_redirect_is_not_read(self) -> None:
        async def more() -> AsyncIterator[bytes]:
            while True:
                yield bytes(100_000)

        there = Answer(b"here", "text/plain")
        async with PageServer(
            {"/": replace(redirect("/there"), endless=more), "/there": there}
        ) as server:
            assert (await READER.read(server.url())).text == "here"

    @each_row(
        "to",
        [
            "file:///etc/passwd",
            "ftp://127.0.0.1/x",
            "http://user:secret@127.0.0.1/",
            "javascript:1",
            "data:,x",
        ],
    )
    async def test_a_redirect_leads_only_to_pages(self, to: str) -> None:
        async with PageServer({"/": redirect(to)}) as server:
            with pytest.raises(PageUnreadable) as caught:
                await READER.read(server.url())
            assert server.connections == 1
        assert "secret" not in caught.value.message

    async def test_a_port_where_nobody_listens_is_told(self) -> None:
        async with PageServer({}) as server:
            url = server.url()
        with pytest.raises(PageUnreadable, match="cannot be reached"):
            await READER.read(url)

    async def test_a_server_without_tls_is_told(self) -> None:
        def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"220 mail.example\r\n")
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            with pytest.raises(PageUnreadable, match=r"cannot be reached: .*SSL"):
                await READER.read(
                    f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
                )

    async def test_an_unknown_authority_leads_to_the_variable(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)

        def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                b"Connection: close\r\n\r\nhere"
            )
            writer.close()

        async with await asyncio.start_server(
            talk, "127.0.0.1", 0, ssl=context
        ) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            with pytest.raises(PageUnreadable) as caught:
                await READER.read(url)
            assert "SSL_CERT_FILE" in caught.value.hint
            file = tmp_path / "authority.pem"
            authority.cert_pem.write_to_path(str(file))
            monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(file))
            assert (await READER.read(url)).text == "here"

    async def test_the_next_address_is_tried_when_one_does_not_answer(self) -> None:
        async with PageServer({"/": Answer(b"here", "text/plain")}) as server:
            reader = structs.replace(
                READER, resolve=table({"two.example": ["::1", "127.0.0.1"]})
            )
            assert (await reader.read(server.url(host="two.example"))).text == "here"

    async def test_the_server_sees_the_name_that_was_asked_for(self) -> None:
        async with PageServer({"/": Answer()}) as server:
            reader = structs.replace(
                READER, resolve=table({"docs.example": ["127.0.0.1"]})
            )
            await reader.read(server.url(host="docs.example"))
            assert server.requests[0].headers["host"] == f"docs.example:{server.port}"

    async def test_tls_is_asked_for_the_name_and_not_for_the_address(self) -> None:
        asked: list[str | None] = []
        # has no certificate: the handshake fails after the name
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = lambda _socket, name, _context: asked.append(name)
        server = await asyncio.start_server(
            lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader = structs.replace(
                READER, resolve=table({"docs.example.": ["127.0.0.1"]})
            )
            with pytest.raises(PageUnreadable):
                await reader.read(f"https://docs.example.:{port}/")
        assert asked == ["docs.example"]


def table(
    addresses: dict[str, list[str]],
) -> Callable[[str], Awaitable[tuple[Address, ...]]]:
    """A resolver that knows these names and no other."""

    async def resolve(host: str) -> tuple[Address, ...]:
        if host not in addresses:
            raise gaierror(f"{host} is not known")
        return tuple(map(ip_address, addresses[host]))

    return resolve


PRIVATE = [
    "127.0.0.1",
    "127.8.9.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "224.0.1.1",
    "240.0.0.1",
    "192.0.0.8",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.5",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%lo",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001::1",
    "100::1",
    "4000::1",
]


class TestPrivatePlaces:
    """An address is judged before anything is sent to it, at each hop; and nobody can
    swap it after that.
    """

    @each_row("address", PRIVATE)
    def test_an_address_that_is_not_public(self, address: str) -> None:
        assert not is_public(ip_address(address))

    @each_row(
        "address",
        [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ],
    )
    def test_an_address_that_is_public(self, address: str) -> None:
        assert is_public(ip_address(address))

    @each_row(
        "host",
        [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[0:0:0:0:0:0:0:1]",
        ],
    )
    async def test_no_spelling_of_loopback_gets_a_connection(self, host: str) -> None:
        async with PageServer({"/": Answer()}) as server:
            with pytest.raises(PageUnreadable) as caught:
                await PageReader().read(server.url(host=host))
            assert server.connections == 0
        assert caught.value.hint

    @pytest.mark.skipif(
        sys.platform != "linux",
        reason="spellings that are the system's own to understand",
    )
    async def test_loopback_is_named_in_what_is_said(self) -> None:
        for host in ("localhost", "2130706433", "0x7f.1"):
            with pytest.raises(
                PageUnreadable, match=r"127\.0\.0\.1 is not a public address|::1 is not"
            ):
                await PageReader().read(f"http://{host}/")

    async def test_one_private_address_of_several_is_enough(self) -> None:
        reader = PageReader(resolve=table({"mixed.example": ["1.1.1.1", "10.0.0.1"]}))
        with pytest.raises(
            PageUnreadable, match=r"10\.0\.0\.1 is not a public address"
        ):
            await reader.read("http://mixed.example/")

    async def test_each_hop_is_judged(self) -> None:
        async with (
            PageServer({}) as inner,
            PageServer({"/": redirect(inner.url(host="inner.example"))}) as outer,
        ):
            reader = PageReader(
                resolve=table(
                    {"outer.example": ["127.0.0.1"], "inner.example": ["127.0.0.2"]}
                ),
                judge=lambda address: str(address) == "127.0.0.1",
            )
            with pytest.raises(
                PageUnreadable,
                match=r"inner\.example.* 127\.0\.0\.2 is not a public address",
            ):
                await reader.read(outer.url(host="outer.example"))
            assert (outer.connections, inner.connections) == (1, 0)

    async def test_a_name_that_changes_its_mind_is_asked_once_for_a_request(
        self,
    ) -> None:
        answers = [["127.0.0.1"], ["127.0.0.2"]]
        asked: list[str] = []

        async def rebinding(host: str) -> tuple[Address, ...]:
            asked.append(host)
            return tuple(map(ip_address, answers[len(asked) - 1]))

        async with PageServer(
            {"/": Answer(b"first", "text/plain"), "/again": redirect("/")}
        ) as server:
            reader = PageReader(
                resolve=rebinding, judge=lambda address: str(address) == "127.0.0.1"
            )
            assert (
                await reader.read(server.url(host="rebind.example"))
            ).text == "first"
            assert asked == ["rebind.example"]
            asked.clear()
            with pytest.raises(
                PageUnreadable, match=r"127\.0\.0\.2 is not a public address"
            ):
                await reader.read(server.url("/again", host="rebind.example"))
            assert server.paths == ["/", "/again"]

    async def test_a_name_without_an_address_is_told(self) -> None:
        for resolve in (table({}), table({"gone.example": []})):
            with pytest.raises(
                PageUnreadable, match=r"No address was found for 'gone\.example'"
            ):
                await PageReader(resolve=resolve).read("http://gone.example/")

    @each_row("host", ["a" * 64 + ".example", "a..example"])
    async def test_a_name_that_no_system_looks_up_is_told(self, host: str) -> None:
        with pytest.raises(PageUnreadable, match="No address was found"):
            await PageReader().read(f"http://{host}/")

    async def test_the_system_resolves_literals_of_both_kinds(self) -> None:
        assert await system_resolve("127.0.0.1") == (ip_address("127.0.0.1"),)
        assert await system_resolve("::1") == (ip_address("::1"),)

    @each_row(
        "url",
        [
            "",
            " ",
            "x",
            "//example.com",
            "http://",
            "http:",
            "http:/x",
            "https:///x",
            "file:///etc/passwd",
            "ftp://example.com/",
            "mailto:a@b",
            "http://user:secret@example.com/",
            "http://user@example.com/",
            "http://example.com:99999/",
            "http://example.com:0/",
            "http://example.com:x/",
            "http://[::1",
            "http://ex\nample.com/",
            "http://\ud800/",
            "http://example.com/\ud800",
            "http://\x00/",
            "http://１２７.0.0.1/",
            "http://example.com/" + "a" * 100_000,
        ],
        ids=lambda url: repr(url[:40]),
    )
    async def test_what_is_no_address_of_a_page_is_refused(self, url: str) -> None:
        with pytest.raises(PageUnreadable) as caught:
            await PageReader(resolve=table({})).read(url)
        assert "secret" not in caught.value.message
        assert len(caught.value.message) < 400
        assert caught.value.message.isprintable()
        assert caught.value.hint


HOSTS = st.sampled_from(
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "0",
        "[::ffff:127.0.0.1]",
        "a@127.0.0.1",
        "x.example",
    ]
)
PLACES = st.builds(
    "{}{}:{{port}}{}".format,
    st.sampled_from(["http://", "HTTP://", "https://", "//", ""]),
    HOSTS,
    st.text(),
)
ANY_URL = (
    st.text()
    | PLACES
    | st.builds("http://{}".format, st.text())
    | st.builds("{}://127.0.0.1".format, st.text())
)


async def loopback_or_nothing(host: str) -> tuple[Address, ...]:
    """Every name leads to this computer; a literal to where it leads, unless that is
    outside.
    """
    try:
        entries = getaddrinfo(
            host, None, family=AddressFamily.AF_UNSPEC, flags=AI_NUMERICHOST
        )
    except (gaierror, UnicodeError):
        return (ip_address("127.0.0.1"),)
    found = tuple(ip_address(entry[4][0]) for entry in entries)
    if any(map(is_public, found)):
        raise gaierror("nothing outside in a test")
    return found


@settings(max_examples=count_examples(80))
@given(url=ANY_URL)
def test_no_url_reaches_a_private_place(url: str) -> None:
    async def story() -> None:
        async with PageServer({"/": Answer()}) as canary:
            reader = PageReader(resolve=loopback_or_nothing)
            with pytest.raises(PageUnreadable):
                await reader.read(url.replace("{port}", str(canary.port)))
            assert canary.connections == 0

    asyncio.run(story())


@settings(max_examples=count_examples(40))
@given(
    path=st.text(),
    location=st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0")),
    body=st.binary(),
)
def test_any_path_any_redirect_and_any_body_end_in_a_page_or_in_words(
    path: str, location: str, body: bytes
) -> None:
    async def nowhere_else(host: str) -> tuple[Address, ...]:
        if host != "here.example":
            raise gaierror(host)
        return (ip_address("127.0.0.1"),)

    async def story() -> None:
        answers = {"/": Answer(body, None), "/r": redirect(location)}
        async with PageServer(answers) as server:
            reader = structs.replace(READER, resolve=nowhere_else)
            for url in (f"/{path}", "/", "/r"):
                with contextlib.suppress(PageUnreadable):
                    assert isinstance(
                        await reader.read(server.url(url, host="here.example")), Page
                    )

    asyncio.run(story())
