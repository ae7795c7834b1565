"""The port to language models: requests, replies, and errors."""

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
    """A complete call of a tool."""

    id: str
    name: str
    arguments: str
    """The JSON that the model wrote. It may be invalid."""


class ProviderData(Struct, frozen=True):
    """Data that a provider sent with an assistant's message and needs back unchanged:
    thoughts, signatures, ids. Only the adapter that made the data reads it.
    """

    origin: str
    """The model and the endpoint that sent the data. It is sent to no other."""
    data: str
    """JSON in the adapter's form."""


class Picture(PartlyShown, frozen=True):
    """A picture in a message of the user (`pictures.py`)."""

    name: str
    media_type: str
    """Such as `image/png`."""
    width: int
    height: int
    data: bytes
    """The content of the file."""

    hidden_fields = ("data",)


class Message(Struct, frozen=True):
    """One message of a conversation, in the roles of OpenAI's chat completions."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    provider_data: ProviderData | None = None
    """Only in an assistant's message."""
    pictures: tuple[Picture, ...] = ()
    """Only in a user's message."""
    is_typed: bool = False
    """True if the user wrote the message. Others with the user's role have, for
    example, the output of a command.
    """

    def data_from(self, origin: str) -> str:
        """Return the provider's data if it is from an origin, else an empty string."""
        data = self.provider_data
        return data.data if data is not None and data.origin == origin else ""


class Request(Struct, frozen=True):
    """The input of one call."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()


class PromptShare(Struct, frozen=True):
    """The estimated tokens of a part of a prompt, and the reason for the part."""

    name: str
    tokens: int
    why: str = ""


class TextDelta(Struct, frozen=True):
    """A piece of the reply's text."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """A piece of the model's thoughts, or of their summary."""

    text: str


class WasThought(Struct, frozen=True):
    """All text of the reply so far was thought. The server removed the mark at the
    beginning of the thoughts, but not the one at their end.
    """


class StopReason(StrEnum):
    """The reason for the end of a reply. Only a reply with `STOP` is complete."""

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
    """The whole reply with the thoughts."""
    estimated: bool = False
    """False if the provider counted the tokens of a complete reply."""
    usd: float | None = None
    """The cost, if the provider reports it or the price of the model is known."""
    cached_tokens: int = 0
    """The part of the prompt that was read from a cache."""
    cache_write_tokens: int = 0
    """The part of the prompt that was written to a cache, at another price."""
    thinking_tokens: int = 0
    """The part of the completion that was thought."""
    saved_usd: float | None = None
    """The difference that the cache made; negative if the call cost more. None without
    a price.
    """

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
    """The price of a token in US dollars."""

    prompt: float
    completion: float
    cache_read: float | None = None
    """A token of the prompt that was read from a cache; None: the same as `prompt`."""
    cache_write: float | None = None
    """A token of the prompt that was written to a cache; None: the same as `prompt`."""
    above: "tuple[int, Price] | None" = None
    """A number of tokens, and the price of calls with a longer prompt."""

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
        """Return the cost if the whole prompt is written to a cache, or not at all."""
        written = replace(usage, cache_write_tokens=usage.prompt_tokens)
        return max(self.cost_of(usage), self.cost_of(written))


FREE = Price(0.0, 0.0)


class Done(Struct, frozen=True):
    """The end of a reply."""

    stop_reason: StopReason = StopReason.STOP
    usage: Usage | None = None
    provider_data: ProviderData | None = None
    stop_word: str = ""
    """The provider's word for an `UNKNOWN` reason."""


class Waiting(Struct, frozen=True):
    """The call is made again after a wait."""

    seconds: float
    reason: str
    """A sentence."""


class StartedAgain(Struct, frozen=True):
    """The call is made again. All earlier events of the reply are void."""


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
"""Receives the events of a reply as they arrive. It returns at once."""


class Model(Protocol):
    """A language model. Adapters: litellm (every provider), direct (over httpx) and
    scripted (demo, tests, a recorded run).

    An adapter makes exactly one call. Retries, budgets and so on are models around a
    model (`wrapper.py`).
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
        """True if the model takes pictures; None: unknown. `as_seen_by` removes them
        from requests if this is False.
        """
        ...

    @property
    def window(self) -> int | None:
        """The largest number of tokens in a request; None: unknown."""
        ...

    @property
    def price(self) -> Price | None:
        """None: unknown."""
        ...

    def warm_up(self) -> None:
        """Begin the slow work before the first call, and return at once."""
        ...

    async def check(self, *, connect: bool) -> None:
        """Raise `ModelError` if there is no key; with `connect`, also if no server
        answers. The check is free of charge and is not repeated.
        """
        ...

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        """Ask for a reply. Pass its text, thoughts and tool calls to `on_event` as they
        arrive, and the waits.

        Raises `ModelError`, never a vendor's error. Cancelling ends the call and its
        connection. So does an exception of `on_event` (`BudgetExhausted`, for example),
        which is raised unchanged.
        """
        ...


class ModelError(CddError):
    """The model gave no usable answer."""

    refusal = Refusal.MODEL_FAILED

    is_transient: ClassVar[bool] = False
    """True if the same call may succeed a little later."""


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
    """The model takes no pictures."""

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
    """The provider's quota or the user's credit is used up (402, 429). A retry soon is
    of no use.
    """

    refusal = Refusal.RATE_LIMITED

    is_transient: ClassVar[bool] = False


class ConnectionFailed(ModelError):
    """The endpoint could not be reached, or the connection broke or timed out."""

    refusal = Refusal.MODEL_UNREACHABLE

    is_transient: ClassVar[bool] = True


class NotReachable(ConnectionFailed):
    """No connection is possible until the user changes a setting or a variable: a
    proxy, a certificate, or the name of the server.
    """

    is_transient: ClassVar[bool] = False


class BadAnswer(ModelError):
    """The endpoint sent an error (500), or something that is not a reply."""

    refusal = Refusal.MODEL_FAILED

    is_transient: ClassVar[bool] = True


class NotAReply(BadAnswer):
    """The endpoint sent neither a reply nor an error."""


class WebPageAnswered(BadAnswer):
    """A web page came from a firewall, a login or a wrong address. The request may
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
        """The call is paid for."""
