"""The errors for failed calls, with the same words for every adapter."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress

import httpx
from msgspec import Struct

from cdd_agent.llm.failures import (
    NAME_NOT_FOUND,
    NO_ANSWER_IN_TIME,
    NO_CONNECTION,
    Failure,
)
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    NotReachable,
    PicturesRefused,
    QuotaUsedUp,
    RateLimited,
    RequestRejected,
    WebPageAnswered,
)
from cdd_agent.llm.quoting import quoted
from cdd_agent.llm.retry_after import describe_wait
from cdd_agent.network.certificates import trust_hint
from cdd_agent.network.proxies import Proxy, proxy_for
from cdd_agent.network.unusable_variable import UnusableVariable
from cdd_agent.pattern import Pattern

_ANY_SERVER = "https://a-provider.invalid"
"""Used if only litellm knows the provider's address."""


def explain_failure(
    failure: Failure,
    model: str,
    address: str | None = None,
    key_hint: Callable[[], str] | None = None,
) -> ModelError:
    """Return the error for a failed call. `key_hint` is called if the key is wrong."""
    proxy = _find_proxy(address or _ANY_SERVER)
    if proxy is not None and (error := _proxy_error(failure, model, proxy)):
        return error
    rule = next(rule for rule in _RULES if rule.fits(failure))
    status = f" ({failure.status})" if failure.status else ""
    message = rule.message.format(model=model, status=status)
    message += _reason(failure) if rule.quotes else "."
    server = quoted(address) if address else "the network"
    hint = rule.hint.format(server=server, certificates=trust_hint())
    if rule.error is AuthenticationFailed and key_hint is not None:
        hint = key_hint()
    if not issubclass(rule.error, RateLimited):
        return rule.error(message, hint=hint)
    if rule.error is RateLimited and failure.retry_after is not None:
        hint = describe_wait(failure.retry_after)
    return rule.error(message, hint=hint, retry_after=failure.retry_after)


def _reason(failure: Failure) -> str:
    quote = quoted(failure.words)
    if failure.page is not None:
        quote = (
            "the server sent a web page instead of an API response:"
            f" {quoted(failure.page)}"
        )
    quote = quote.removesuffix(": ")
    return f": {quote}" if quote else "."


def _find_proxy(address: str) -> Proxy | None:
    with suppress(httpx.InvalidURL, UnusableVariable):
        return proxy_for(httpx.URL(address))
    return None


def _rejection_by_proxy(
    failure: Failure, model: str, proxy: Proxy
) -> NotReachable | None:
    reason = _reason(failure)
    is_refusal = "ProxyError" in failure.kinds
    if failure.status == 407 or (is_refusal and _WRONG_PASSWORD.search(reason)):
        return NotReachable(
            f"The proxy {proxy} rejected its user and password{reason}",
            hint=f"Set them in {proxy.variable}: http://user:password@host:port.",
        )
    if is_refusal and _FORBIDDEN.search(reason):
        return NotReachable(
            f"The proxy {proxy} blocked the call of {model}{reason}",
            hint="Ask its administrator. If the server can be reached without it, add"
            " the server to NO_PROXY.",
        )
    return None


def _proxy_error(failure: Failure, model: str, proxy: Proxy) -> ModelError | None:
    reason = _reason(failure)
    is_refusal = "ProxyError" in failure.kinds
    if rejection := _rejection_by_proxy(failure, model, proxy):
        return rejection
    if "SOCKSError" in failure.kinds:
        return NotReachable(
            f"The proxy {proxy} does not support SOCKS{reason}",
            hint=f"Correct {proxy.variable}. Perhaps it should begin with http://.",
        )
    has_no_tls = re.search(_NO_TLS, failure.all_words)
    if has_no_tls and proxy.url.lower().startswith("https:"):
        return NotReachable(
            f"The proxy {proxy} does not support TLS{reason}",
            hint=f"Correct {proxy.variable}. Perhaps it should begin with http://.",
        )
    if is_refusal:
        return ConnectionFailed(
            f"The proxy {proxy} could not reach the server of {model}{reason}",
            hint="Check the address of the server, or try again.",
        )
    if NAME_NOT_FOUND in failure.kinds:
        return NotReachable(
            f"The host of the proxy {proxy} does not exist{reason}",
            hint=f"Correct {proxy.variable}, or unset it.",
        )
    is_tls = "SSLError" in failure.kinds
    if failure.kinds.intersection(_CONNECT_ERRORS) and not is_tls:
        return ConnectionFailed(
            f"The proxy {proxy} could not be reached{reason}",
            hint=f"Check that it runs, or correct {proxy.variable}.",
        )
    return None


_WRONG_PASSWORD = Pattern(r"^: 407\b|authenticat|username", re.IGNORECASE)
_FORBIDDEN = Pattern(r"^: 4\d\d\b|ruleset|not allowed", re.IGNORECASE)
_NO_TLS = r"(?i)WRONG_VERSION_NUMBER|wrong version number|record layer failure"
_CONNECT_ERRORS = ("ConnectError", "ClientConnectorError")


class _Rule(Struct, frozen=True):
    error: type[ModelError]
    message: str
    hint: str
    kinds: Collection[str] = ()
    statuses: Collection[int] = ()
    wording: str | None = None
    only_pages: bool = False
    quotes: bool = True

    def fits(self, failure: Failure) -> bool:
        if self.only_pages and failure.page is None:
            return False
        if failure.kinds.intersection(self.kinds) or failure.status in self.statuses:
            return True
        return self.wording is not None and bool(
            re.search(self.wording, failure.all_words, re.IGNORECASE)
        )


def _any_of(*patterns: str) -> str:
    return "|".join(patterns)


_RULES = (
    _Rule(
        ModelNotFound,
        "The API base of {model} is not a URL",
        "Check {server}. It must begin with http:// or https://.",
        kinds=("InvalidURL", "UnsupportedProtocol"),
        wording=r"Invalid IPv6 URL",
    ),
    _Rule(
        ConnectionFailed,
        "{model} did not answer in time{status}",
        "Try again; the server may be busy.",
        kinds=NO_ANSWER_IN_TIME,
        statuses=(408, 504),
    ),
    _Rule(
        NotReachable,
        "The certificate of the server of {model} is not valid",
        "Check {server}, and the clock of this computer.",
        wording=_any_of(
            r"certificate (?:has expired|is not yet valid)",
            r"(?:hostname|ip address) mismatch",
        ),
    ),
    _Rule(
        NotReachable,
        "The certificate of the server of {model} is not trusted",
        "{certificates}",
        kinds=("SSLCertVerificationError",),
    ),
    _Rule(
        NotReachable,
        "The server of {model} does not support TLS",
        "Check {server}. Perhaps it should begin with http://.",
        wording=_NO_TLS,
    ),
    _Rule(
        NotReachable,
        "The host of {model} does not exist",
        "Check {server}, and the network.",
        kinds=(NAME_NOT_FOUND,),
    ),
    _Rule(
        ConnectionFailed,
        "The server of {model} could not be reached",
        "Check {server}, and that the server runs.",
        kinds=_CONNECT_ERRORS,
    ),
    _Rule(
        ConnectionFailed,
        "The connection to {model} was lost",
        "Try again.",
        kinds=NO_CONNECTION,
    ),
    _Rule(
        WebPageAnswered,
        "The request did not reach {model}{status}",
        "A firewall, a proxy or a login page may block it, or the API base is wrong.",
        statuses=(200, 401, 403, 451, 511),
        only_pages=True,
    ),
    _Rule(
        ModelNotFound,
        "{model} needs a Python package that is not installed",
        "Install it into the environment of cdd-shell.",
        kinds=("ImportError",),
    ),
    _Rule(
        ModelNotFound,
        "No provider has the model {model}",
        "Name it as provider/model, for example openai/gpt-5 or"
        " anthropic/claude-sonnet-5-5.",
        wording="LLM Provider NOT provided",
        quotes=False,
    ),
    _Rule(
        BadAnswer,
        "The server does not have enough memory for {model}{status}",
        "Set a smaller `context_window`, or use a smaller model.",
        wording=_any_of(
            r"requires more system memory",
            r"(?:out of|insufficient|failed to allocate|not enough) memory",
        ),
    ),
    _Rule(
        BadAnswer,
        "The server could not read a tool call of {model}",
        "Try again. If it happens again, set `tool_calls: off` in .cdd/config.yaml.",
        wording=r"tool_use_failed|failed_generation",
    ),
    _Rule(
        PicturesRefused,
        "{model} does not accept pictures{status}",
        "Leave the picture out or use another model. To send texts without their"
        " pictures, set `pictures: false` in .cdd/config.yaml.",
        wording=_any_of(
            r"unknown variant .?image_url",
            r"image[_ ](?:url|input)s?\b[^.]{0,60}(?:not |un|only )support",
            r"(?:not support|unsupported|no endpoints found that support)[^.]{0,60}"
            r"\b(?:images?|vision|image_url)\b",
            r"is not a (?:multimodal|vision) model",
            r"at most 0 image",
            r"\bmmproj\b",
            r"missing data required for image input",
        ),
    ),
    _Rule(
        ContextTooLong,
        "The request is too long for {model}",
        "Use a model with a larger context, or a smaller step.",
        kinds=("ContextWindowExceededError",),
        statuses=(413,),
        wording=_any_of(
            # codes of OpenAI, llama.cpp, GitHub
            r"context[_ ](?:length|window)[_ ]exceeded",
            r"exceed_context_size|tokens_limit_reached",
            # OpenAI, DeepSeek, OpenRouter, vLLM, xAI, Mistral
            r"max(?:imum)? (?:context|prompt|model) length",
            # Anthropic, MiniMax
            r"exceeds? (?:the )?context limit|context window exceeds limit",
            # OpenAI, llama.cpp, LM Studio, Ollama, SGLang, Together
            r"(?:exceed(?:s|ed)?|than) (?:max |the |the model's |the available )?"
            r"context (?:size|length|window)",
            r"context length of only|configured context size is",
            # Anthropic, Ollama, Bedrock, Z.AI
            r"prompt (?:is )?too long|input is too long",
            r"prompt exceeds max(?:imum)? length",
            # Moonshot, Google, GitHub
            r"exceeded model token limit",
            r"token count [^.]{0,40}exceeds the (?:maximum|limit)",
            # DashScope, Volcano Engine
            r"range of input length should be",
            r"input length \d+ exceeds the maximum length",
            # Groq, Cerebras
            r"reduce the length of the (?:messages|prompt)|request too large for",
            # Hugging Face, Cohere
            r"inputs?`? (?:tokens \+ |must have less than )|too many tokens: ",
        ),
    ),
    _Rule(
        RequestRejected,
        "The content filter of {model} refused the request",
        "Rephrase the step, or use another model.",
        kinds=("ContentPolicyViolationError",),
        wording=_any_of(
            r"\bcontent_filter\b",
            r"content_policy_violation",
            r"content management policy",
            r"data_inspection_failed",
            r"content exists risk",
            r"responsible ?ai ?policy",
            r"rejected as a result of our safety system",
            r"\b(?:bio|cyber)_policy",
        ),
    ),
    _Rule(
        QuotaUsedUp,
        "Your account has no credit or quota left for {model}{status}",
        "Check your account with the provider, or use another model.",
        statuses=(402,),
        wording=_any_of(
            r"insufficient_quota",
            r"exceeded_current_quota",
            r"insufficient[ _](?:account )?(?:balance|credits|funds)",
            r"credit balance is too low",
            r"used all available credits",
            r"reached (?:its|your) monthly spending limit",
            r"\barrearage\b",
            r"out of credits",
            r"reached your specified api usage limits",
            # Google's and OpenRouter's free models
            r"requestsperday",
            r"free-models-per-day",
        ),
    ),
    _Rule(
        AuthenticationFailed,
        "No API key for {model}",
        "",
        wording=_any_of(
            r"missing [^.]{0,40}(?:credentials|api key)",
            r"unable to locate credentials",
        ),
        quotes=False,
    ),
    _Rule(
        AuthenticationFailed,
        "The provider rejected the API key for {model}{status}",
        "",
        kinds=("AuthenticationError", "PermissionDeniedError"),
        statuses=(401, 403),
    ),
    _Rule(
        ModelNotFound,
        "The server does not know {model}{status}",
        "Check the model's name and the API base, which often ends in /v1.",
        kinds=("NotFoundError",),
        statuses=(404,),
    ),
    _Rule(
        RateLimited,
        "{model} is rate limited or busy{status}",
        "Try again later. If the message names a quota, check your account with the"
        " provider.",
        kinds=("RateLimitError",),
        statuses=(429, 503, 529),
    ),
    _Rule(
        ModelNotFound,
        "The server of {model} redirects the call{status}",
        "cdd does not follow redirects. If the new address is right, set `api_base`.",
        statuses=range(300, 400),
    ),
    _Rule(
        RequestRejected,
        "{model} refused the request{status}",
        "Correct what the server reports, or use another model.",
        kinds=("BadRequestError", "UnprocessableEntityError"),
        statuses=(*range(400, 500), 501, 505),
    ),
    _Rule(
        BadAnswer,
        "The response of {model} cannot be read{status}",
        "Try again. If it happens again, the server or a proxy damages responses.",
        kinds=("JSONDecodeError", "NoReply"),
    ),
    _Rule(
        BadAnswer,
        "The server of {model} failed{status}",
        "Try again later.",
        statuses=range(500, 600),
    ),
    _Rule(
        BadAnswer,
        "{model} gave no usable answer",
        "Try again, or use another model.",
        wording="",
    ),
)
"""The first rule that fits decides. The last one fits all failures."""
