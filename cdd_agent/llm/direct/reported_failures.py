"""Failures that servers report: by status, instead of an answer, or within one."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    as_string,
    as_text,
    read_json,
)
from cdd_agent.llm.direct.protocol import NoReply, ServerFailed
from cdd_agent.llm.failures import Failure, status_of
from cdd_agent.llm.retry_after import wait_in_headers, wait_in_words
from cdd_agent.llm.web_page import title_of_page

_QUOTED_CHARACTERS = 400


def find_failure(document: dict[str, Any], status: int | None = None) -> Failure | None:
    """Return the failure that a JSON answer reports, if any. `status` is the HTTP
    status.
    """
    error = document.get("error")
    is_error = document.get("object") == "error" or document.get("type") == "error"
    if error is None and (is_error or status):
        error = document
    if not error:
        return None
    name = error if isinstance(error, str) else None
    # in some servers the error is a name or `true`, and the details are next to it
    facts = error if isinstance(error, dict) else document
    message = facts.get("message") or facts.get("detail")
    metadata = as_dict(facts.get("metadata"))
    # `raw` comes from the provider behind OpenRouter
    parts = [as_text(part) for part in (name, message, metadata.get("raw")) if part]
    words = " ".join(dict.fromkeys(parts)) or as_text(error)
    codes = [facts.get(name) for name in ("code", "status", "type")]
    all_words = [words, *map(str, codes), as_string(facts.get("param"))]
    return Failure(
        status=status or status_of(*codes),
        words=words,
        all_words="\n".join([*all_words, *_quotas(facts)]),
        retry_after=_wait(metadata, as_text(error)),
    )


def read_document(text: str) -> dict[str, Any]:
    """Return the JSON object of a piece of an answer. Raises `NoReply` for anything
    else, `ServerFailed` for a failure.
    """
    document = _unwrap(read_json(text))
    if not isinstance(document, dict):
        raise NoReply(text[:_QUOTED_CHARACTERS])
    if failure := find_failure(document):
        raise ServerFailed(failure)
    return document


def read_failure(
    text: str, status: int, headers: Mapping[str, str] | None = None
) -> Failure:
    """Return the failure of an answer, whatever its body is."""
    document = _unwrap(read_json(text))
    failure = None
    if isinstance(document, dict):
        failure = find_failure(document, status)
    if failure is None:
        failure = Failure(
            status=status,
            words=text,
            all_words=text,
            retry_after=wait_in_words(text),
            page=title_of_page(text),
        )
    wait = wait_in_headers(headers or {})
    return failure if wait is None else replace(failure, retry_after=wait)


def _unwrap(document: Any) -> Any:
    if isinstance(document, list) and len(document) == 1:
        return document[0]
    return document


def _wait(metadata: Mapping[str, Any], text: str) -> float | None:
    headers = {}
    for name, value in as_dict(metadata.get("headers")).items():
        headers[name] = str(value)
    wait = wait_in_headers(headers)
    return wait_in_words(text) if wait is None else wait


def _quotas(facts: Mapping[str, Any]) -> Iterator[str]:
    for detail in as_list(facts.get("details")):
        for violation in as_list(as_dict(detail).get("violations")):
            yield as_string(as_dict(violation).get("quotaId"))
