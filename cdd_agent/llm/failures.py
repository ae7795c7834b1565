"""Failed calls of a model: what went wrong, and what that means to a person, in the
same words for every adapter.

Knows errors by the names of their classes and by what they carry: no vendor's package
is imported here.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Self

from msgspec import Struct

from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Hear,
    ModelError,
    ModelEvent,
    ModelNotFound,
    PicturesRefused,
    QuotaUsedUp,
    RateLimited,
    RequestRejected,
)
from cdd_agent.llm.quoting import quoted
from cdd_agent.llm.retry_after import seconds_to_wait


class Failure(Struct, frozen=True):
    """The facts of a call that failed, whoever noticed them."""

    kinds: frozenset[str] = frozenset()
    """The names of the classes of the exceptions involved: names, so that the rules
    need no import.
    """
    status: int | None = None
    """The HTTP status that the server sent, or named in an error in the middle of a
    stream.
    """
    words: str = ""
    """The server's own words, or the system's."""
    all_words: str = ""
    """Whatever was said, codes included: rules look for wordings in it."""
    retry_after: float | None = None
    """Seconds that the server asks to wait."""

    @classmethod
    def of(cls, error: BaseException, outer: BaseException | None = None) -> Self:
        """The facts of an exception and of all that led to it, without what the caller
        was handling (`outer`).

        The class and the status that litellm puts on top are often wrong (a refused
        connection is its `InternalServerError`, 500), so the facts are looked for at
        the bottom.
        """
        chain = list(_causes(error, outer))
        kinds = frozenset(
            kind.__name__ for error in chain for kind in type(error).__mro__
        )
        status = _status(chain)
        responses = (getattr(error, "response", None) for error in reversed(chain))
        waits = (
            seconds_to_wait(response.headers)
            for response in responses
            if response is not None
        )
        return cls(
            kinds,
            status,
            _words(chain, kinds, status),
            "\n".join(map(str, chain)),
            next((wait for wait in waits if wait is not None), None),
        )


def translated(
    failure: Failure, model: str, api_base: str | None, key_hint: Callable[[], str]
) -> ModelError:
    """Our error for what went wrong. `key_hint` is asked only if the key is the
    trouble.
    """
    rule = next((rule for rule in _RULES if rule.fits(failure)), _RULES[-1])
    message = rule.says.format(
        model=model, status=f" ({failure.status})" if failure.status else ""
    )
    quote = quoted(failure.words) if rule.quotes else ""
    become: Callable[..., ModelError] = rule.becomes
    hint = rule.hint.format(server=quoted(api_base) if api_base else "the network")
    if rule.becomes is AuthenticationFailed:
        hint = key_hint()
    elif rule.becomes is RateLimited and failure.retry_after is not None:
        hint = f"It asks to wait for {failure.retry_after:g} s."
        become = partial(RateLimited, retry_after=failure.retry_after)
    return become(f"{message}: {quote}" if quote else f"{message}.", hint=hint)


class Listener:
    """Tells `hear`, and remembers what that raised: it is no failure of the call,
    whatever its kind.
    """

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self.raised: Exception | None = None

    def __call__(self, event: ModelEvent) -> None:
        try:
            self._hear(event)
        except Exception as error:
            self.raised = error
            raise


def _causes(
    error: BaseException | None, outer: BaseException | None
) -> Iterator[BaseException]:
    """The error, what caused it, and so on down to the first."""
    while error is not None and error is not outer:
        # a MidStreamFallbackError
        wrapped: BaseException | None = getattr(error, "original_exception", None)
        if wrapped is None:
            yield error
        error = wrapped or error.__cause__ or error.__context__


def _status(chain: list[BaseException]) -> int | None:
    for error in reversed(chain):
        if type(error).__name__ == "HTTPStatusError":
            # httpx's
            return int(error.response.status_code)  # type: ignore[attr-defined]
        body = getattr(error, "body", None)
        code = body.get("code") if isinstance(body, dict) else None
        if status := status_of(code):
            return status
    claims = (getattr(error, "status_code", None) for error in reversed(chain))
    return next(
        (c for c in claims if isinstance(c, int) and c not in _MADE_UP_STATUSES), None
    )


def status_of(*codes: object) -> int | None:
    """The HTTP status that the first telling one of an error's codes stands for: a
    number, or a name of one.
    """
    for code in codes:
        number = int(code) if isinstance(code, str) and code.isdigit() else code
        if isinstance(number, int) and 400 <= number < 600:
            return number
        if isinstance(code, str) and code in _STATUS_OF_NAME:
            return _STATUS_OF_NAME[code]
    return None


def _words(
    chain: list[BaseException], kinds: frozenset[str], status: int | None
) -> str:
    if kinds & _NO_ANSWER_IN_TIME and status is None:
        return ""
    if kinds & _NO_CONNECTION:
        return next((str(error) for error in reversed(chain) if str(error)), "")
    text = str(chain[0]).split("\nTraceback (most recent call last)")[0]
    if quoted := re.search(r'"message": *"((?:[^"\\]|\\.)*)"', text):
        text = quoted[1].replace('\\"', '"')
    return _LITELLM_PREFIXES.sub("", text)


_MADE_UP_STATUSES = frozenset({408, 500})
"""Those of litellm's own when no server said anything."""
_LITELLM_PREFIXES = re.compile(
    r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)(?: \w+){0,2}(?:: | - |$))+"
)
_NO_ANSWER_IN_TIME = frozenset({"TimeoutException", "TimeoutError"})
_NO_CONNECTION = frozenset(
    {"TransportError", "ClientConnectionError", "ConnectionError"}
)
_STATUS_OF_NAME = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "overloaded_error": 529,
}
"""Names of errors in the middle of a stream, where they have no number."""


class _Rule(Struct, frozen=True):
    """Failures of some classes, HTTP statuses or wordings, and what they mean to a
    person.
    """

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
            or (
                self.wording
                and re.search(self.wording, failure.all_words, re.IGNORECASE)
            )
        )


_RULES = (
    _Rule(
        ModelNotFound,
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
        "Install it into the environment of cdd-shell.",
        kinds=frozenset({"ImportError"}),
    ),
    _Rule(
        ModelNotFound,
        "No provider fits the model {model}",
        "Write it as provider/model, for example openai/gpt-5 or"
        " anthropic/claude-sonnet-4-5.",
        wording="LLM Provider NOT provided",
        quotes=False,
    ),
    _Rule(
        BadAnswer,
        "The memory of its server does not suffice for {model}{status}",
        "Set a smaller `context_window`, or use a smaller model.",
        wording=(
            r"requires more system memory|(?:out of|insufficient|failed to allocate|not"
            r" enough) memory"
        ),
    ),
    _Rule(
        BadAnswer,
        "{model} made a call of a tool that its server could not read",
        "Ask again; if it stays, `tool_calls: off` in .cdd/config.yaml does without.",
        wording=r"tool_use_failed|failed_generation",
    ),
    _Rule(
        PicturesRefused,
        "{model} takes no pictures{status}",
        "Leave the picture out, or use another model; with `pictures: false` in"
        " .cdd/config.yaml the text goes on without it.",
        wording=(
            r"unknown variant .?image_url|image[_ ](?:url|input)s?\b[^.]{0,60}(?:not"
            r" support|unsupported|only support)"
            r"|(?:not support|unsupported|no endpoints found that"
            r" support)[^.]{0,60}\b(?:images?|vision|image_url)\b"
            r"|is not a (?:multimodal|vision) model|at most 0 image|\bmmproj\b|missing"
            r" data required for image input"
        ),
    ),
    _Rule(
        ContextTooLong,
        "The request is too long for {model}",
        "Use a model with a larger context, or a smaller step.",
        kinds=frozenset({"ContextWindowExceededError"}),
        wording=(
            r"context_length_exceeded|exceed_context_size|tokens_limit_reached|request"
            r" too large for"
            r"|maximum (?:context|prompt|model) length|max(?:imum)? context"
            r" length|exceeds? (?:the )?context limit"
            r"|(?:exceeds?|than) the (?:available )?context"
            r" (?:size|length|window)|context length of only"
            r"|prompt (?:is )?too long|input is too long|exceeded model token limit"
            r"|token count [^.]{0,40}exceeds the maximum"
        ),
    ),
    _Rule(
        RequestRejected,
        "The content filter of {model} refused the request",
        "Word the step differently, or use another model.",
        kinds=frozenset({"ContentPolicyViolationError"}),
        wording=(
            r"\bcontent_filter\b|content_policy_violation|content management"
            r" policy|data_inspection_failed"
            r"|content exists risk|responsible ?ai ?policy|rejected as a result of our"
            r" safety system"
            r"|\b(?:bio|cyber)_policy"
        ),
    ),
    _Rule(
        QuotaUsedUp,
        "There is no money or quota left for {model}{status}",
        "Look at your account with the provider, or use another model.",
        statuses=frozenset({402}),
        wording=(
            r"insufficient_quota|exceeded_current_quota|insufficient[ _](?:account"
            r" )?(?:balance|credits|funds)"
            r"|credit balance is too low|used all available credits|reached"
            r" (?:its|your) monthly spending limit"
            r"|\barrearage\b|out of credits|reached your specified api usage limits"
        ),
    ),
    _Rule(
        AuthenticationFailed,
        "There is no key for {model}",
        "",
        wording=(
            r"missing [^.]{0,40}(?:credentials|api key)|unable to locate credentials"
        ),
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
        "Try again later; if it speaks of a quota, look at your account with the"
        " provider.",
        kinds=frozenset({"RateLimitError"}),
        statuses=frozenset({429, 503, 529}),
    ),
    _Rule(
        BadAnswer,
        "The server of {model} sends the call elsewhere{status}",
        "Nothing was sent there. Set api_base to that address, if it is the right one.",
        statuses=frozenset(range(300, 400)),
    ),
    _Rule(
        RequestRejected,
        "{model} refused the request{status}",
        "Fix what it names, or use another model.",
        kinds=frozenset({"BadRequestError", "UnprocessableEntityError"}),
        statuses=frozenset(range(400, 500)),
    ),
    _Rule(
        BadAnswer,
        "The answer of {model} cannot be understood{status}",
        "Try again; if it stays, its server or a proxy damages the answers.",
        kinds=frozenset({"JSONDecodeError", "NoReply"}),
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
    ),
)
"""The meanings of failures. The first rule that fits decides; the last is for all that
none fits.
"""
