"""The trusted certificate authorities: Mozilla's, or those in an environment
variable.
"""

import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import httpx
from msgspec import Struct

from cdd_agent.network.unusable_variable import UnusableVariable

_OPENSSL = ("SSL_CERT_FILE", "SSL_CERT_DIR")
# of requests and curl, for users who have set only these
_FALLBACKS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class CertificateSource(Struct, frozen=True):
    """A file or folder of certificates, with the variable that names it."""

    variable: str
    path: str

    def __str__(self) -> str:
        return f"{self.path} ({self.variable})"


def certificate_sources(
    environment: Mapping[str, str] = os.environ,
) -> tuple[CertificateSource, ...]:
    """Return the replacements of Mozilla's authorities, if any.

    `SSL_CERT_FILE` and `SSL_CERT_DIR` count together, as with OpenSSL. Without both of
    them, `REQUESTS_CA_BUNDLE` counts, then `CURL_CA_BUNDLE`.
    """
    sources: list[CertificateSource] = []
    for name in (*_OPENSSL, *_FALLBACKS):
        path = environment.get(name, "").strip()
        if path and not (name in _FALLBACKS and sources):
            sources.append(CertificateSource(name, path))
    return tuple(sources)


def trusted_certificates() -> ssl.SSLContext:
    """Return the context for connections, cached until a file changes, because reading
    is slow. Raises `UnusableVariable`.
    """
    sources = certificate_sources()
    versions = []
    for source in sources:
        with suppress(OSError, ValueError):
            status = Path(source.path).stat()
            versions.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return _load(sources, tuple(versions))


def trust_hint() -> str:
    """Return what to do about a certificate that is not trusted."""
    sources = certificate_sources()
    if sources:
        return (
            f"Only {' and '.join(map(str, sources))} is trusted. Add the certificate"
            " of the authority that signs the server's."
        )
    return (
        "If an authority of your company signs it, set SSL_CERT_FILE to a file with"
        " that authority's certificate (PEM)."
    )


@cache
def _load(
    sources: tuple[CertificateSource, ...], versions: tuple[object, ...]
) -> ssl.SSLContext:
    """`versions` is part of the cache's key only."""
    del versions
    if not sources:
        return httpx.create_ssl_context(trust_env=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # as with curl, a file may have the server's certificate without its authority
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    for source in sources:
        try:
            _add(context, source.path)
        except ssl.SSLError as error:
            raise _unusable(source, "it has no certificates in PEM format") from error
        except (OSError, ValueError) as error:
            raise _unusable(
                source, getattr(error, "strerror", "") or str(error)
            ) from error
    return context


def _add(context: ssl.SSLContext, path: str) -> None:
    """Add a file, or one or more folders in OpenSSL's list format."""
    folders = [name for name in path.split(os.pathsep) if Path(name).is_dir()]
    if folders:
        context.load_verify_locations(capath=os.pathsep.join(folders))
    else:
        context.load_verify_locations(cafile=path)


def _unusable(source: CertificateSource, reason: str) -> UnusableVariable:
    return UnusableVariable(
        f"The certificates of {source} cannot be read: {reason}.",
        hint=f"Fix {source.variable}, or unset it.",
    )
