"""The model port: what the program needs of a language model, and how that can go
wrong.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.cost import Cost
from cdd_agent.errors import CddError, ExitCode
from cdd_agent.partly_shown import PartlyShown


class ToolDefinition(Struct, frozen=True):
    """A tool that the model may call; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(Struct, frozen=True):
    """The model wants a tool to be used. As an event of a reply it is whole: its pieces
    were put together.
    """

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it: it may be anything."""


class ProviderData(Struct, frozen=True):
    """Data that a provider sent with an assistant's message and wants back unchanged:
    thoughts, signatures, ids.

    Only the adapter that made it reads it; everybody else keeps it with its message, or
    drops it whole.
    """

    origin: str
    """The model and the endpoint that it is from: no other is sent it."""
    data: str
    """JSON, in a form of the adapter's own."""


class Picture(PartlyShown, frozen=True):
    """A picture that a person's message carries; `llm/pictures.py` makes it."""

    name: str
    """Of its file, for the model and for people."""
    media_type: str
    """As `image/png`."""
    width: int
    height: int
    data: bytes
    """The file's content."""

    hidden_fields = ("data",)


class Message(Struct, frozen=True):
    """One message of a conversation, in the roles of OpenAI's chat completions."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant: the calls that it made."""
    tool_call_id: str | None = None
    """Of a tool: the call that this is the answer to."""
    provider_data: ProviderData | None = None
    """Of an assistant: what belongs to it besides, for the model that made it."""
    pictures: tuple[Picture, ...] = ()
    """Of a user: what goes with the words."""
    is_typed: bool = False
    """True for words of the user. A command's output, for example, has the user's role,
    too.
    """

    def data_from(self, origin: str) -> str:
        """The data of the provider, where it is from there; else none."""
        data = self.provider_data
        return data.data if data is not None and data.origin == origin else ""


class Request(Struct, frozen=True):
    """All that a model gets for one answer."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()


class PromptShare(Struct, frozen=True):
    """A part of a prompt: its name, its tokens by an estimate, and why it is there."""

    name: str
    tokens: int
    why: str = ""


class TextDelta(Struct, frozen=True):
    """A piece of the reply, as it arrived."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """A piece of the model's thoughts, or of their summary: no part of the reply."""

    text: str


class WasThought(Struct, frozen=True):
    """All text of the reply so far was thought: the mark at its end came, and its
    server had left out the first.
    """


class StopReason(StrEnum):
    """Why the model stopped writing. Only after `STOP` is the reply whole."""

    STOP = "stop"
    LENGTH = "length"
    """The reply was cut by a length limit: it must not be used as if it were whole."""
    REFUSED = "refused"
    """The provider's content filter stopped it, or the model declined to go on."""
    UNKNOWN = "unknown"
    """For a reason that is not known to mean that the reply is whole."""


class Usage(Struct, frozen=True):
    """Tokens of one call, as the provider counted them."""

    prompt_tokens: int
    """All of the request, whatever of it was read from a cache or written to one."""
    completion_tokens: int
    """All that the model wrote, its thoughts included."""
    estimated: bool = False
    """The provider did not count them, or the reply did not come whole."""
    usd: float | None = None
    """Their cost, where the provider says so or the model's price is known."""
    cached_tokens: int = 0
    """Those of the prompt that were read from a cache."""
    cache_write_tokens: int = 0
    """Those of the prompt that were written to a cache at a price of their own."""
    thinking_tokens: int = 0
    """Those of the completion that were thoughts."""
    saved_usd: float | None = None
    """How much cheaper the cache made them, or dearer where it is less than 0; None
    where no price is known.
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
    """US dollars for a token."""

    prompt: float
    completion: float
    cache_read: float | None = None
    """Of the prompt's tokens that were read from a cache; None: as much as the others.
    """
    cache_write: float | None = None
    """Of those that were written to one."""
    above: "tuple[int, Price] | None" = None
    """For a prompt of more tokens than these, another price holds for the whole call.
    """

    def of(self, usage: Usage) -> float:
        if self.above is not None and usage.prompt_tokens > self.above[0]:
            return self.above[1].of(usage)
        read = self.prompt if self.cache_read is None else self.cache_read
        write = self.prompt if self.cache_write is None else self.cache_write
        plain = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
        cached = usage.cached_tokens * read + usage.cache_write_tokens * write
        return (
            max(plain, 0) * self.prompt
            + cached
            + usage.completion_tokens * self.completion
        )

    def saved(self, usage: Usage) -> float:
        """How much more the same tokens would have cost without a cache."""
        return self.of(replace(usage, cached_tokens=0, cache_write_tokens=0)) - self.of(
            usage
        )

    def at_most(self, usage: Usage) -> float:
        """The cost where nobody knows what a cache will do: all of the prompt may be
        written to it.
        """
        return max(
            self.of(usage),
            self.of(replace(usage, cache_write_tokens=usage.prompt_tokens)),
        )


FREE = Price(0.0, 0.0)


class Done(Struct, frozen=True):
    """How a reply ended."""

    stop_reason: StopReason = StopReason.STOP
    usage: Usage | None = None
    provider_data: ProviderData | None = None
    """Goes back to the provider with the assistant's message."""
    stop_word: str = ""
    """The provider's own word for an `UNKNOWN` reason."""


class Waiting(Struct, frozen=True):
    """The call will be made again after a while; nothing of the reply is lost, as
    nothing of it counts yet.
    """

    seconds: float
    reason: str
    """Why, as a sentence."""


class StartedAgain(Struct, frozen=True):
    """The call is made again: what came of the reply so far does not count."""


class Replaced(Struct, frozen=True):
    """Another model is asked from here on: what comes, and the `Done`, are its."""

    model: str
    instead_of: str
    reason: str
    """Why, as a sentence."""


ModelEvent = (
    TextDelta | ThoughtDelta | WasThought | ToolCall | Waiting | StartedAgain | Replaced
)
OnEvent = Callable[[ModelEvent], None]
"""Receives the events of a reply as they arrive. It returns at once."""


class Model(Protocol):
    """A language model. Adapters: litellm (every provider), direct (over httpx) and
    scripted (demo, tests, a recorded run).

    What else a run needs of one is a model around a model (`wrapper.py`): an adapter
    makes exactly one call.
    """

    @property
    def name(self) -> str:
        """The model string a person configured, for display."""
        ...

    @property
    def calls_tools(self) -> bool:
        """It is known to use the tools that a request offers."""
        ...

    @property
    def sees(self) -> bool | None:
        """It takes pictures; None where that is not known. One that does not is sent
        none (`as_seen_by`).
        """
        ...

    @property
    def window(self) -> int | None:
        """How many tokens of a request it takes in; None where that is not known."""
        ...

    @property
    def price(self) -> Price | None:
        """The price of its tokens; None where that is not known."""
        ...

    def warm_up(self) -> None:
        """Begin, without waiting, whatever is slow before the first answer."""
        ...

    async def check(self, *, connect: bool) -> None:
        """Raise `ModelError` if no call can succeed because there is no key; with
        `connect`, also if no server answers. It makes no call that is paid for, and
        does not repeat itself. What it cannot find out is no error.
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

    is_transient: ClassVar[bool] = False
    """The same call may well succeed a little later."""


class AuthenticationFailed(ModelError):
    """The key is missing, wrong, or not allowed to use this model (401, 403)."""

    exit_code: ClassVar[ExitCode] = ExitCode.BAD_INPUT


class ModelNotFound(ModelError):
    """The provider or server does not know this model (404), no provider fits its name,
    or its address is none.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.BAD_INPUT


class RequestRejected(ModelError):
    """The provider refused the request as it was (other 4xx: too long, a bad
    parameter).
    """


class ContextTooLong(RequestRejected):
    """The request is more than the model can take in."""


class PicturesRefused(RequestRejected):
    """The model takes no pictures."""


class RateLimited(ModelError):
    """The provider asks to come back later (429, 503, 529)."""

    exit_code: ClassVar[ExitCode] = ExitCode.COME_BACK_LATER
    is_transient: ClassVar[bool] = True

    def __init__(
        self, message: str, *, hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        """Seconds, if the provider said how long."""


class QuotaUsedUp(RateLimited):
    """There is no money or quota left with the provider: to ask again soon is of no use
    (402, 429).
    """

    is_transient: ClassVar[bool] = False


class ConnectionFailed(ModelError):
    """The endpoint could not be reached, or the connection broke or timed out."""

    is_transient: ClassVar[bool] = True


class NotReachable(ConnectionFailed):
    """No connection is possible until the user changes a setting or a variable: a
    proxy, a certificate, or the name of the server.
    """

    is_transient: ClassVar[bool] = False


class BadAnswer(ModelError):
    """The endpoint answered, but not with a reply (500, not JSON, a broken stream)."""

    is_transient: ClassVar[bool] = True


class NotAReply(BadAnswer):
    """The endpoint sent nothing of a reply, and no error either."""


class WebPageAnswered(BadAnswer):
    """A web page came from a firewall, a login or a wrong address. The request may
    not have reached the endpoint.
    """

    is_transient: ClassVar[bool] = False


class EmptyReply(BadAnswer):
    """The model said that it is done and had said nothing."""

    def __init__(
        self, message: str, *, hint: str = "", usage: Usage | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.usage = usage
        """The cost of the call, all the same."""
