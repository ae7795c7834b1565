"""The port to language models: requests, replies, errors."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cost import Cost
from cdd_agent.errors import CddError, ExitCode
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.values.partly_shown import PartlyShown


class ToolDefinition(Struct, frozen=True):
    """A tool that the model may call; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    id: str
    name: str
    arguments: str
    """The model's JSON. It may be invalid."""


class ProviderData(Struct, frozen=True):
    """Data that a provider sent with an assistant message and needs back unchanged:
    thoughts, signatures, ids. Only the adapter that made it reads it.
    """

    origin: str
    """The model and endpoint that sent the data. No other gets it."""
    data: str
    """JSON in the adapter's format."""


class Picture(PartlyShown, frozen=True):
    """A picture in a user message (`pictures.py`)."""

    name: str
    media_type: str
    """For example `image/png`."""
    width: int
    height: int
    data: bytes

    hidden_fields = ("data",)


class Message(Struct, frozen=True):
    """One message of a conversation, with the roles of OpenAI's chat completions."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    provider_data: ProviderData | None = None
    """Only in an assistant message."""
    pictures: tuple[Picture, ...] = ()
    """Only in a user message."""
    is_typed: bool = False
    """True if the user wrote the message. Other messages of the user role contain, for
    example, a command's output.
    """

    def data_from(self, origin: str) -> str:
        """Return the data if it is from `origin`, else an empty text."""
        data = self.provider_data
        return data.data if data is not None and data.origin == origin else ""


class Request(Struct, frozen=True):
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()


class PromptShare(Struct, frozen=True):
    """Estimated tokens of a part of a prompt, and why it is there."""

    name: str
    tokens: int
    why: str = ""


class TextDelta(Struct, frozen=True):
    text: str


class ThoughtDelta(Struct, frozen=True):
    text: str


class WasThought(Struct, frozen=True):
    """All text of the reply so far was thought. The server removed only the opening
    mark of the thoughts.
    """


class StopReason(StrEnum):
    """Why a reply ended. Only `STOP` means complete."""

    STOP = "stop"
    LENGTH = "length"
    """A length limit cut the reply."""
    REFUSED = "refused"
    """The provider's content filter or the model refused to continue."""
    UNKNOWN = "unknown"
    """The reply may be incomplete."""


class Usage(Struct, frozen=True):
    """The tokens of one call."""

    prompt_tokens: int
    """The whole request, cached or not."""
    completion_tokens: int
    """The whole reply, including thoughts."""
    estimated: bool = False
    """False if the provider counted the tokens of a complete reply."""
    usd: float | None = None
    """The cost, reported by the provider or computed from the price."""
    cached_tokens: int = 0
    """Prompt tokens read from a cache."""
    cache_write_tokens: int = 0
    """Prompt tokens written to a cache, at another price."""
    thinking_tokens: int = 0
    """Thinking tokens among the completion tokens."""
    saved_usd: float | None = None
    """Savings through the cache; negative if it cost more. None without a price."""

    @property
    def cost(self) -> Cost:
        return Cost(
            self.prompt_tokens + self.completion_tokens,
            self.usd,
            self.estimated,
            self.cached_tokens,
            self.saved_usd,
        )


class Price(Struct, frozen=True):
    """US dollars per token."""

    prompt: float
    completion: float
    cache_read: float | None = None
    """Per prompt token read from a cache; None: as `prompt`."""
    cache_write: float | None = None
    """Per prompt token written to a cache; None: as `prompt`."""
    above: "tuple[int, Price] | None" = None
    """A token count, and the price of calls with longer prompts."""

    def cost_of(self, usage: Usage) -> float:
        if self.above is not None and usage.prompt_tokens > self.above[0]:
            return self.above[1].cost_of(usage)
        read = self.prompt if self.cache_read is None else self.cache_read
        write = self.prompt if self.cache_write is None else self.cache_write
        plain = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
        cached = usage.cached_tokens * read + usage.cache_write_tokens * write
        return (
            max(plain, 0) * self.prompt
            + cached
            + usage.completion_tokens * self.completion
        )

    def saved_by_cache(self, usage: Usage) -> float:
        uncached = replace(usage, cached_tokens=0, cache_write_tokens=0)
        return self.cost_of(uncached) - self.cost_of(usage)

    def highest_cost_of(self, usage: Usage) -> float:
        """Return the higher cost of writing the whole prompt to a cache, or none of
        it.
        """
        written = replace(usage, cache_write_tokens=usage.prompt_tokens)
        return max(self.cost_of(usage), self.cost_of(written))


FREE = Price(0.0, 0.0)


class Done(Struct, frozen=True):
    stop_reason: StopReason = StopReason.STOP
    usage: Usage | None = None
    provider_data: ProviderData | None = None
    stop_word: str = ""
    """The provider's word for an `UNKNOWN` reason."""


class Waiting(Struct, frozen=True):
    """The call is repeated after a wait."""

    seconds: float
    reason: str
    """A sentence."""


class StartedAgain(Struct, frozen=True):
    """The call is repeated. All earlier events of the reply are void."""


class Replaced(Struct, frozen=True):
    """The next events and the `Done` come from another model."""

    model: str
    instead_of: str
    reason: str
    """A sentence."""


ModelEvent = (
    TextDelta | ThoughtDelta | WasThought | ToolCall | Waiting | StartedAgain | Replaced
)
OnEvent = Callable[[ModelEvent], None]
"""Receives the events of a reply as they arrive. Returns at once."""


class Model(Protocol):
    """A language model. Adapters: litellm (every provider), direct (over httpx) and
    scripted (demo, tests, a recorded run).

    An adapter makes exactly one call. Retries, budgets and so on are wrappers
    (`wrapper.py`).
    """

    @property
    def name(self) -> str:
        """The model string that the user configured."""
        ...

    @property
    def calls_tools(self) -> bool:
        """True if the model certainly uses the tools of a request."""
        ...

    @property
    def sees(self) -> bool | None:
        """True if the model accepts pictures; None: unknown. If False, `as_seen_by`
        removes them from requests.
        """
        ...

    @property
    def window(self) -> int | None:
        """Maximum tokens of a request; None: unknown."""
        ...

    @property
    def price(self) -> Price | None:
        """None: unknown."""
        ...

    def warm_up(self) -> None:
        """Begin slow preparations, and return at once."""
        ...

    async def check(self, *, connect: bool) -> None:
        """Raise `ModelError` if there is no key; with `connect`, also if no server
        answers. The check is free of charge and not repeated.
        """
        ...

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        """Ask for a reply. Pass text, thoughts, tool calls and waits to `on_event` as
        they arrive.

        Raises `ModelError`, never a vendor's error. Cancelling ends the call and its
        connection. So does an exception of `on_event` (such as `BudgetExhausted`),
        which is raised unchanged.
        """
        ...


class ModelError(CddError):
    """The model gave no usable answer."""

    refusal = Refusal.MODEL_FAILED

    is_transient: ClassVar[bool] = False
    """True if the same call may soon succeed."""


class AuthenticationFailed(ModelError):
    """The key is missing, wrong, or not allowed to use this model (401, 403)."""

    refusal = Refusal.MODEL_KEY

    exit_code: ClassVar[ExitCode] = ExitCode.BAD_INPUT


class ModelNotFound(ModelError):
    """The server does not know this model (404), no provider fits its name, or its
    address is not a URL.
    """

    refusal = Refusal.MODEL_NOT_FOUND

    exit_code: ClassVar[ExitCode] = ExitCode.BAD_INPUT


class RequestRejected(ModelError):
    """The provider refused the content of the request (other 4xx)."""

    refusal = Refusal.MODEL_REQUEST


class ContextTooLong(RequestRejected):
    """The request does not fit into the model's window."""

    refusal = Refusal.WINDOW_TOO_SMALL


class PicturesRefused(RequestRejected):
    """The model accepts no pictures."""

    refusal = Refusal.PICTURES_REFUSED


class RateLimited(ModelError):
    """The provider asks to come back later (429, 503, 529)."""

    refusal = Refusal.RATE_LIMITED

    exit_code: ClassVar[ExitCode] = ExitCode.COME_BACK_LATER
    is_transient: ClassVar[bool] = True

    def __init__(
        self, message: str, *, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        """Seconds that the provider asks to wait."""


class QuotaUsedUp(RateLimited):
    """The provider's quota or the user's credit is used up (402, 429). Retrying soon is
    useless.
    """

    refusal = Refusal.RATE_LIMITED

    is_transient: ClassVar[bool] = False


class ConnectionFailed(ModelError):
    """The endpoint was unreachable, or the connection broke or timed out."""

    refusal = Refusal.MODEL_UNREACHABLE

    is_transient: ClassVar[bool] = True


class NotReachable(ConnectionFailed):
    """No connection is possible until the user changes a proxy, a certificate, or the
    name of the server.
    """

    is_transient: ClassVar[bool] = False


class BadAnswer(ModelError):
    """The endpoint sent an error (500), or something that is not a reply."""

    refusal = Refusal.MODEL_FAILED

    is_transient: ClassVar[bool] = True


class NotAReply(BadAnswer):
    """The endpoint sent neither a reply nor an error."""


class WebPageAnswered(BadAnswer):
    """A firewall, a login or a wrong address answered with a web page. The request may
    not have reached the endpoint.
    """

    is_transient: ClassVar[bool] = False


class EmptyReply(BadAnswer):
    """The reply is complete and has no content."""

    def __init__(
        self, message: str, *, hint: str = "", usage: Usage | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage
        """The call costs money all the same."""
