"""What the errors of litellm, and of the libraries under it, mean to a person.

Knows them by the names of their classes and by what they carry: litellm is not imported here.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ModelError,
    ModelNotFound,
    RateLimited,
    RequestRejected,
)

LONGEST_QUOTE = 300
"""Characters of a server's own words in our message."""


def translated(failure: "Failure", model: str, api_base: str | None, key_hint: Callable[[], str]) -> ModelError:
    """Our error for a vendor's. `key_hint` is asked only if the key is the trouble."""
    rule = next(rule for rule in _RULES if rule.fits(failure))
    message = rule.says.format(model=model, status=f" ({failure.status})" if failure.status else "")
    hint = rule.hint.format(server=_presentable(api_base) if api_base else "the network")
    if rule.becomes is AuthenticationFailed:
        hint = key_hint()
    elif rule.becomes is RateLimited and failure.retry_after:
        hint = f"It asks to wait for {failure.retry_after} s."
    quote = _presentable(failure.words) if rule.quotes else ""
    return rule.becomes(f"{message}: {quote}" if quote else f"{message}.", hint=hint)


class Failure:
    """A vendor's error with all that led to it, but not what the caller was handling before (`outer`).

    The class and the status that litellm puts on top are often wrong (a refused connection is its
    `InternalServerError`, 500), so the facts are looked for at the bottom.
    """

    def __init__(self, error: BaseException, outer: BaseException | None = None) -> None:
        self.chain = list(_causes(error, outer))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The names of all classes involved: names, so that the rules need no import."""
        return frozenset(cls.__name__ for error in self.chain for cls in type(error).__mro__)

    @cached_property
    def all_words(self) -> str:
        return "\n".join(map(str, self.chain))

    @cached_property
    def status(self) -> int | None:
        """The HTTP status that the server sent, or named in an error in the middle of a stream."""
        for error in reversed(self.chain):
            if type(error).__name__ == "HTTPStatusError":
                return int(error.response.status_code)  # type: ignore[attr-defined]  # httpx's
            body = getattr(error, "body", None)
            code = body.get("code") if isinstance(body, dict) else None
            if isinstance(code, int) and 400 <= code < 600:
                return code
        claims = (getattr(error, "status_code", None) for error in reversed(self.chain))
        return next((c for c in claims if isinstance(c, int) and c not in _MADE_UP_STATUSES), None)

    @cached_property
    def retry_after(self) -> str:
        """The seconds that the server asks to wait, if it does."""
        responses = (getattr(error, "response", None) for error in reversed(self.chain))
        waits = (response.headers.get("retry-after", "") for response in responses if response is not None)
        return next((wait for wait in waits if wait.isdigit()), "")

    @cached_property
    def words(self) -> str:
        """What the server, or the system, said itself."""
        if self.kinds & _NO_ANSWER_IN_TIME and self.status is None:
            return ""
        if self.kinds & _NO_CONNECTION:
            return next((str(error) for error in reversed(self.chain) if str(error)), "")
        text = str(self.chain[0]).split("\nTraceback (most recent call last)")[0]
        if quoted := re.search(r'"message": *"((?:[^"\\]|\\.)*)"', text):
            text = quoted[1].replace('\\"', '"')
        return _LITELLM_PREFIXES.sub("", text)


def _causes(error: BaseException | None, outer: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on down to the first."""
    while error is not None and error is not outer:
        wrapped: BaseException | None = getattr(error, "original_exception", None)  # a MidStreamFallbackError
        if wrapped is None:
            yield error
        error = wrapped or error.__cause__ or error.__context__


_MADE_UP_STATUSES = frozenset({408, 500})
"""What litellm says when no server said anything."""
_LITELLM_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+){0,2}(?:: | - |$))+")
_NO_ANSWER_IN_TIME = frozenset({"TimeoutException", "TimeoutError"})
_NO_CONNECTION = frozenset({"TransportError", "ClientConnectionError", "ConnectionError"})


@dataclass(frozen=True)
class _Rule:
    """Failures of some classes, HTTP statuses or wordings, and what they mean to a person."""

    becomes: type[ModelError]
    says: str
    hint: str
    kinds: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    wording: str | None = None
    quotes: bool = True
    """Whether the vendor's own words add something."""

    def fits(self, failure: Failure) -> bool:
        return bool(
            self.kinds & failure.kinds
            or failure.status in self.statuses
            or (self.wording and re.search(self.wording, failure.all_words, re.IGNORECASE))
        )


_RULES = (
    _Rule(
        ConnectionFailed,
        "The API base of {model} is not a URL",
        "Check {server}: it begins with http:// or https://.",
        kinds=frozenset({"InvalidURL", "UnsupportedProtocol"}),
        wording=r"Invalid IPv6 URL",
    ),
    _Rule(
        ConnectionFailed,
        "{model} did not answer in time{status}",
        "Try again; the server may be busy.",
        kinds=_NO_ANSWER_IN_TIME,
        statuses=frozenset({408, 504}),
    ),
    _Rule(
        ConnectionFailed,
        "The server of {model} could not be reached",
        "Check {server}, and that the server runs.",
        kinds=frozenset({"ConnectError", "ClientConnectorError"}),
    ),
    _Rule(
        ConnectionFailed,
        "The connection to {model} broke",
        "Try again.",
        kinds=_NO_CONNECTION,
    ),
    _Rule(
        ModelNotFound,
        "{model} needs a Python package that is not installed",
        "Install it into the environment of cdd-agent.",
        kinds=frozenset({"ImportError"}),
    ),
    _Rule(
        ModelNotFound,
        "No provider fits the model {model}",
        "Write it as provider/model, for example openai/gpt-5 or anthropic/claude-sonnet-4-5.",
        wording="LLM Provider NOT provided",
        quotes=False,
    ),
    _Rule(
        RequestRejected,
        "The request is too long for {model}",
        "Use a model with a larger context, or a smaller step.",
        kinds=frozenset({"ContextWindowExceededError"}),
        wording=r"context_length_exceeded|maximum context length",
    ),
    _Rule(
        RequestRejected,
        "The content filter of {model} refused the request",
        "Word the step differently, or use another model.",
        kinds=frozenset({"ContentPolicyViolationError"}),
    ),
    _Rule(
        AuthenticationFailed,
        "There is no key for {model}",
        "",
        wording=r"missing [^.]{0,40}(?:credentials|api key)|unable to locate credentials",
        quotes=False,
    ),
    _Rule(
        AuthenticationFailed,
        "The provider refused the key for {model}{status}",
        "",
        kinds=frozenset({"AuthenticationError", "PermissionDeniedError"}),
        statuses=frozenset({401, 403}),
    ),
    _Rule(
        ModelNotFound,
        "The server does not know {model}{status}",
        "Check the model's name, and the API base: it often ends in /v1.",
        kinds=frozenset({"NotFoundError"}),
        statuses=frozenset({404}),
    ),
    _Rule(
        RateLimited,
        "{model} asks to come back later{status}",
        "Try again later; if it speaks of a quota, look at your account with the provider.",
        kinds=frozenset({"RateLimitError"}),
        statuses=frozenset({429, 503, 529}),
    ),
    _Rule(
        RequestRejected,
        "{model} refused the request{status}",
        "Mend what it names, or use another model.",
        kinds=frozenset({"BadRequestError", "UnprocessableEntityError"}),
        statuses=frozenset(range(400, 500)),
    ),
    _Rule(
        BadAnswer,
        "The answer of {model} cannot be understood{status}",
        "Try again; if it stays, check the API base.",
        kinds=frozenset({"JSONDecodeError"}),
    ),
    _Rule(
        BadAnswer,
        "The server of {model} failed{status}",
        "Try again later.",
        statuses=frozenset(range(500, 600)),
    ),
    _Rule(
        BadAnswer,
        "{model} gave no usable answer",
        "Try again, or use another model.",
        kinds=frozenset({"Exception"}),
    ),
)
"""What a vendor's error means. The first rule that fits decides; the last fits all."""


_MARKUP = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_SECRET = re.compile(
    r"\bsk-[^\s'\",;)}\]]+"  # OpenAI, Anthropic, OpenRouter, also half masked by the server
    r"|(?<=Bearer )\S+"
    r"|(?<=//)[^/@\s]+(?=@)"  # user:password@host
    r"|\b(?=[\w+=-]*\d)[\w+=-]{24,}",  # any long token with a digit in it
    re.IGNORECASE,
)
_REDACTED = "[redacted]"


def _presentable(text: str) -> str:
    """One short line without keys, markup or control characters."""
    if re.search(r"<!doctype|<html", text, re.IGNORECASE):
        text = _MARKUP.sub(" ", text)
    for secret in _secrets_of_environment():
        text = text.replace(secret, _REDACTED)
    text = _SECRET.sub(_REDACTED, text)
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"


def _secrets_of_environment() -> list[str]:
    """All keys in the environment, the longest first. Too short ones would redact plain words."""
    values = {value for name, value in os.environ.items() if name.upper().endswith("_API_KEY") and len(value) >= 6}
    return sorted(values, key=len, reverse=True)
