"""Failures as servers report them: in a refusal, in place of an answer, or in the middle of one."""

from typing import Any

from cdd_agent.llm.direct.json_values import as_dict, as_string, as_text, read_json
from cdd_agent.llm.failures import Failure, status_of


def failure_in(document: dict[str, Any], status: int | None = None) -> Failure | None:
    """The failure that an answer reports, in any of the forms in which servers do. `status`: the answer's own."""
    error = document.get("error")
    if error is None and (document.get("object") == "error" or document.get("type") == "error" or status):
        error = document
    if not error:
        return None
    facts = error if isinstance(error, dict) else {}
    codes = [facts.get(name) for name in ("code", "status", "type")]
    said = error if isinstance(error, str) else facts.get("message") or facts.get("detail")
    raw = as_dict(facts.get("metadata")).get("raw")  # what the provider behind OpenRouter said
    words = " ".join(dict.fromkeys(as_text(part) for part in (said, raw) if part)) or as_text(error)
    all_words = "\n".join([words, *map(str, codes), as_string(facts.get("param"))])
    return Failure(status=status or status_of(*codes), words=words, all_words=all_words)


def failure_of(text: str, status: int) -> Failure:
    """The failure that the body of a refusal tells of, JSON or not."""
    document = read_json(text)
    document = document[0] if isinstance(document, list) and document else document
    told = failure_in(document, status) if isinstance(document, dict) else None
    return told or Failure(status=status, words=text, all_words=text)
