"""Failures as servers report them: in a refusal, in place of an answer, or in the
middle of one.
"""

from typing import Any

from cdd_agent.llm.direct.json_values import as_dict, as_string, as_text, read_json
from cdd_agent.llm.direct.protocol import NoReply, ServerFailed
from cdd_agent.llm.failures import Failure, status_of

_QUOTED_CHARACTERS = 400


def failure_in(document: dict[str, Any], status: int | None = None) -> Failure | None:
    """The failure that an answer reports, in any of the forms in which servers do.
    `status`: the answer's own.
    """
    error = document.get("error")
    if error is None and (
        document.get("object") == "error" or document.get("type") == "error" or status
    ):
        error = document
    if not error:
        return None
    facts = error if isinstance(error, dict) else {}
    codes = [facts.get(name) for name in ("code", "status", "type")]
    said = (
        error if isinstance(error, str) else facts.get("message") or facts.get("detail")
    )
    # what the provider behind OpenRouter said
    raw = as_dict(facts.get("metadata")).get("raw")
    words = " ".join(
        dict.fromkeys(as_text(part) for part in (said, raw) if part)
    ) or as_text(error)
    all_words = "\n".join([words, *map(str, codes), as_string(facts.get("param"))])
    return Failure(status=status or status_of(*codes), words=words, all_words=all_words)


def read_document(text: str) -> dict[str, Any]:
    """The JSON object of a piece of an answer. Raises `NoReply` for anything else,
    `ServerFailed` for a failure.
    """
    document = _first_of(read_json(text))
    if not isinstance(document, dict):
        raise NoReply(text[:_QUOTED_CHARACTERS])
    if failure := failure_in(document):
        raise ServerFailed(failure)
    return document


def _first_of(document: Any) -> Any:
    """Google reports errors as a list with one object."""
    return (
        document[0] if isinstance(document, list) and len(document) == 1 else document
    )


def failure_of(text: str, status: int) -> Failure:
    """The failure that the body of a refusal tells of, JSON or not."""
    document = _first_of(read_json(text))
    told = failure_in(document, status) if isinstance(document, dict) else None
    return told or Failure(status=status, words=text, all_words=text)
