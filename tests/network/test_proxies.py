"""Which proxy a request goes through."""

import httpx
import pytest

from cdd_agent.network.proxies import proxy_for
from cdd_agent.network.unusable_variable import UnusableVariable
from tests.support.tables import each_row

PROXY = "http://proxy.example:3128"
HOST = "https://api.example.com/v1"


@each_row(
    ("no_proxy", "without", "through"),
    [
        ("", (), (HOST,)),
        ("api.example.com", (HOST,), ("https://other.example.com",)),
        ("example.com", (HOST, "https://example.com"), ("https://notexample.com",)),
        (".example.com", (HOST, "https://example.com"), ("https://notexample.com",)),
        ("*.example.com", (HOST,), ("https://notexample.com",)),
        ("EXAMPLE.com.", (HOST, "https://API.EXAMPLE.COM./v1"), ()),
        ("example.com.org,ample.com", (), (HOST,)),
        ("*", (HOST, "https://[2001:db8::1]", "https://10.1.2.3"), ()),
        ("localhost,*", (HOST,), ()),
        ("a.example, example.com ,b.example", (HOST,), ()),
        ("a.example\texample.com  b.example", (HOST,), ()),
        (",, ,example.com,", (HOST,), ()),
        # a domain is no pattern
        ("api.*.com,a*", (), (HOST,)),
        ("example.com:443", (HOST,), ("https://api.example.com:8443",)),
        ("example.com:8443", ("https://example.com:8443",), (HOST,)),
        ("10.1.2.3", ("https://10.1.2.3", "http://10.1.2.3:80"), ("http://10.1.2.30",)),
        ("10.1.2.3:8000", ("http://10.1.2.3:8000",), ("http://10.1.2.3:8001",)),
        ("10.0.0.0/8", ("http://10.255.0.1",), ("http://11.0.0.1",)),
        # host bits, as curl reads them
        ("10.1.2.3/8", ("http://10.255.0.1",), ("http://11.0.0.1",)),
        ("192.168.0.0/33,192.168/16", (), ("http://192.168.0.1",)),
        # an address is no domain
        ("2.3", (), ("http://10.1.2.3",)),
        ("2001:db8::1", ("https://[2001:db8::1]",), ("https://[2001:db8::2]",)),
        ("2001:DB8:0::1", ("https://[2001:db8::1]:8443",), ()),
        ("[2001:db8::1]", ("https://[2001:db8::1]:8443",), ()),
        (
            "[2001:db8::1]:8443",
            ("https://[2001:db8::1]:8443",),
            ("https://[2001:db8::1]",),
        ),
        (
            "fe80::/10",
            ("https://[fe80::5]", "https://[febf::1]"),
            ("https://[fec0::]",),
        ),
        ("[fe80::]/10", ("https://[fe80::5]",), (HOST,)),
        ("localhost,127.0.0.0/8,::1/128", (), (HOST, "https://[2001:db8::1]")),
        (
            "bücher.example",
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            (),
        ),
        ("xn--bcher-kva.example", ("https://bücher.example",), ()),
        # nothing of this has a meaning
        ("http://,:,[,]:1,/8,::/x,*.,.,[::1,a..b,\udcff,1.2.3.4/-1", (), (HOST,)),
        ("https://api.example.com", (), (HOST,)),
    ],
)
def test_no_proxy_is_read_as_curl_reads_it(
    no_proxy: str, without: tuple[str, ...], through: tuple[str, ...]
) -> None:
    for variable in ("no_proxy", "NO_PROXY"):
        environment = {"ALL_PROXY": PROXY, variable: no_proxy}
        for url in without:
            assert proxy_for(httpx.URL(url), environment) is None, url
        for url in through:
            assert proxy_for(httpx.URL(url), environment) is not None, url


def test_the_lower_case_list_goes_first_unless_it_is_empty() -> None:
    url = httpx.URL(HOST)
    both = {"ALL_PROXY": PROXY, "no_proxy": "a.example", "NO_PROXY": "*"}
    assert proxy_for(url, both) is not None
    assert proxy_for(url, {**both, "no_proxy": ""}) is None


@each_row(
    "url",
    [
        "http://localhost:1/v1",
        "http://127.8.0.1",
        "http://[::1]:8080",
        "http://0.0.0.0",
    ],
)
def test_nothing_stands_between_this_computer_and_itself(url: str) -> None:
    environment = {"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}
    assert proxy_for(httpx.URL(url), environment) is None


SOCKS = "socks5://socks.example:1080"


@each_row(
    ("variables", "url", "variable"),
    [
        ({}, HOST, None),
        ({"HTTPS_PROXY": PROXY}, HOST, "HTTPS_PROXY"),
        ({"https_proxy": PROXY, "HTTPS_PROXY": SOCKS}, HOST, "https_proxy"),
        ({"https_proxy": "", "HTTPS_PROXY": PROXY}, HOST, "HTTPS_PROXY"),
        ({"https_proxy": " \n", "ALL_PROXY": PROXY}, HOST, "ALL_PROXY"),
        ({"HTTPS_PROXY": PROXY, "ALL_PROXY": SOCKS}, HOST, "HTTPS_PROXY"),
        ({"HTTP_PROXY": PROXY}, HOST, None),
        ({"HTTP_PROXY": PROXY, "ALL_PROXY": SOCKS}, HOST, "ALL_PROXY"),
        ({"HTTP_PROXY": PROXY, "ALL_PROXY": SOCKS}, "http://a.example", "HTTP_PROXY"),
        # a desktop sets a form that is not used here
        (
            {"HTTPS_PROXY": PROXY, "ALL_PROXY": "socks4://old.example"},
            HOST,
            "HTTPS_PROXY",
        ),
        ({"http_proxy": PROXY}, "http://a.example", "http_proxy"),
        # a CGI program, where the client of a web server sets it
        ({"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, "http://a.example", None),
        (
            {"http_proxy": PROXY, "REQUEST_METHOD": "GET"},
            "http://a.example",
            "http_proxy",
        ),
        ({"HTTPS_PROXY": PROXY, "REQUEST_METHOD": "GET"}, HOST, "HTTPS_PROXY"),
    ],
)
def test_the_variable_depends_on_the_scheme_of_the_url(
    variables: dict[str, str], url: str, variable: str | None
) -> None:
    proxy = proxy_for(httpx.URL(url), variables)
    assert (proxy.variable if proxy else None) == variable


def test_settings_of_the_system_count_without_any_variable() -> None:
    def find(**variables: str) -> str | None:
        url = httpx.URL(HOST)
        proxy = proxy_for(url, variables, lambda: {"https": "other.example:80"})
        return str(proxy) if proxy else None

    assert find() == "http://other.example:80 (system settings)"
    assert find(HTTP_PROXY=PROXY) is None
    assert find(HTTPS_PROXY=PROXY) == f"{PROXY} (HTTPS_PROXY)"
    assert find(NO_PROXY="*") is None


@each_row(
    ("value", "url", "shown"),
    [
        (PROXY, PROXY, PROXY),
        ("proxy.example:3128", PROXY, PROXY),
        (" proxy.example:3128\n", PROXY, PROXY),
        ("http://me:p%40ss@proxy.example:3128", None, PROXY),
        ("me:p@ss@proxy.example:3128", None, PROXY),
        (SOCKS, SOCKS, SOCKS),
        (SOCKS.replace("socks5", "socks5h"), None, None),
        ("socks://socks.example:1080/", SOCKS + "/", SOCKS + "/"),
        ("HTTPS://proxy.example", None, None),
    ],
)
def test_a_proxy_is_shown_without_its_password(
    value: str, url: str | None, shown: str | None
) -> None:
    proxy = proxy_for(httpx.URL(HOST), {"HTTPS_PROXY": value})
    assert proxy is not None
    assert url is None or proxy.url == url
    assert shown is None or str(proxy) == f"{shown} (HTTPS_PROXY)"
    assert "p@ss" not in f"{proxy}{proxy!r}"
    assert "p%40ss" not in f"{proxy}{proxy!r}"


@each_row(
    "value",
    [
        "gopher://127.0.0.1",
        "socks4://127.0.0.1:1080",
        "http://",
        "://proxy.example",
        "http://a..b:1",
        "http://proxy.example:port",
        "http://me:secret1@proxy.example:port",
        "http://me:a/secret1@proxy.example:3128",
        "http://me:1/secret1@proxy.example:3128",
        "http://me:1?secret1//@proxy.example:3128",
        "http://me:/secret1/@proxy.example:port",
        "me:a//secret1@proxy.example:3128",
        "http://me:a\nsecret1@proxy.example:3128",
        "http://[::1",
        "not a proxy",
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(value: str) -> None:
    with pytest.raises(UnusableVariable) as raised:
        proxy_for(httpx.URL(HOST), {"all_proxy": value})
    assert "all_proxy" in raised.value.message
    assert "secret1" not in raised.value.message
    # a host that needs no proxy works all the same
    assert proxy_for(httpx.URL(HOST), {"all_proxy": value, "no_proxy": "*"}) is None
