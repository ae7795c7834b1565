"""Which certificates are trusted."""

from pathlib import Path

import pytest
import trustme

from cdd_agent.network.certificates import certificate_sources, trusted_certificates
from cdd_agent.network.unusable_variable import UnusableVariable
from tests.support.tables import each_row

FILE, FOLDER = ("SSL_CERT_FILE", "SSL_CERT_DIR")
REQUESTS, CURL = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def no_certificates_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FILE, FOLDER, REQUESTS, CURL):
        monkeypatch.delenv(name, raising=False)


@each_row(
    ("variables", "used"),
    [
        ({}, ()),
        ({FILE: ""}, ()),
        ({FILE: "a", FOLDER: "b", REQUESTS: "c"}, (FILE, FOLDER)),
        ({FILE: " ", REQUESTS: "c", CURL: "d"}, (REQUESTS,)),
        ({CURL: "d"}, (CURL,)),
        ({FOLDER: "b", CURL: "d"}, (FOLDER,)),
    ],
)
def test_the_variables_of_openssl_go_first(
    variables: dict[str, str], used: tuple[str, ...]
) -> None:
    sources = certificate_sources(variables)
    assert tuple(source.variable for source in sources) == used


def test_only_the_named_authorities_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = trusted_certificates().cert_store_stats()["x509_ca"]
    file = tmp_path / "authority.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    monkeypatch.setenv(REQUESTS, str(file))
    assert trusted_certificates().cert_store_stats()["x509_ca"] == 1 < many


@each_row("variable", [FILE, FOLDER, REQUESTS, CURL])
def test_a_path_without_certificates_is_named_with_its_variable(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for path in (tmp_path / "stale", empty):
        monkeypatch.setenv(variable, str(path))
        with pytest.raises(UnusableVariable) as raised:
            trusted_certificates()
        assert f"{path} ({variable})" in raised.value.message
        assert variable in raised.value.hint


def test_a_file_that_has_changed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authority.pem"
    monkeypatch.setenv(FILE, str(file))
    first, second = trustme.CA().cert_pem, trustme.CA().cert_pem
    first.write_to_path(str(file))
    assert trusted_certificates() is trusted_certificates()
    second.write_to_path(str(file), append=True)
    assert trusted_certificates().cert_store_stats()["x509_ca"] == 2
