"""Adapters of models that other packages add as entry points."""

from functools import cache
from typing import TypeVar

from msgspec import Struct, convert
from msgspec.structs import asdict

from cdd_agent.errors import BadInput, CddError
from cdd_agent.llm.failures import Listener
from cdd_agent.llm.model_adapter import ModelAdapter
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.port import (
    Done,
    Model,
    ModelError,
    ModelEvent,
    OnEvent,
    Price,
    Request,
)
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.extensions import Extensions, require_type

_Value = TypeVar("_Value")
_ADAPTERS = Extensions("cdd_agent.model_adapters", "model adapter")
left_out = _ADAPTERS.left_out
"""The adapters that were left out, with the reasons."""


class AddedAdapter:
    """An adapter of another package. After an error it claims no model."""

    def __init__(self, full_name: str, adapter: object) -> None:
        if not isinstance(adapter, ModelAdapter):
            raise TypeError("it is not a ModelAdapter")
        self._full_name = full_name
        self._adapter = adapter
        self.name = require_type(self._adapter.name, str)

    def claims(self, model: str) -> bool:
        if self._full_name in left_out:
            return False
        try:
            return require_type(self._adapter.claims(model), bool)
        # cdd works without the package, whatever it raises
        except Exception as error:  # noqa: BLE001
            _ADAPTERS.leave_out(self._full_name, error)
            return False

    def make(self, model: str, api_base: str | None, options: ModelOptions) -> Model:
        try:
            made = self._adapter.make(model, api_base, options)
            return _GuardedModel(self._full_name, model, made, options)
        except CddError:
            raise
        except Exception as error:
            _ADAPTERS.leave_out(self._full_name, error)
            raise BadInput(
                f"The model adapter {self._full_name} failed for {model}: {error}",
                hint="Update or uninstall its package, or use another model.",
                refusal=Refusal.EXTENSION_FAILED,
            ) from error


class _GuardedModel:
    """A model of another package. All its errors become `ModelError`."""

    def __init__(
        self, adapter: str, name: str, model: Model, options: ModelOptions
    ) -> None:
        self._adapter = adapter
        self._model = model
        self._reply = model.reply
        self.name = name
        self.calls_tools = require_type(model.calls_tools, bool)
        sees = model.sees if options.sees is None else options.sees
        self.sees = _require_optional(sees, bool)
        self.window = _require_optional(model.window, int)
        self.price = _require_optional(model.price, Price)

    def warm_up(self) -> None:
        try:
            self._model.warm_up()
        # a call fails with the same error
        except Exception as error:  # noqa: BLE001
            _ADAPTERS.leave_out(self._adapter, error)

    async def check(self, *, connect: bool) -> None:
        try:
            await self._model.check(connect=connect)
        except CddError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        listener = Listener(on_event)

        def receive(event: ModelEvent) -> None:
            if not isinstance(event, ModelEvent):
                raise TypeError(f"{event!r:.80} is not an event of a reply")
            _check_fields(event)
            listener(event)

        try:
            done = require_type(await self._reply(request, receive), Done)
            _check_fields(done)
            return done
        except CddError:
            raise
        except Exception as error:
            if error is listener.raised:
                raise
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ModelError:
        return ModelError(
            f"The model adapter {self._adapter} failed: {type(error).__name__}:"
            f" {error}",
            hint="Update or uninstall its package, or use another model.",
        )


def _check_fields(value: Struct) -> None:
    """Raise `ValidationError` if a field has a value of another type."""
    fields = asdict(value)
    for inner in fields.values():
        if isinstance(inner, Struct):
            _check_fields(inner)
    convert(fields, type(value))


def _require_optional(value: object, kind: type[_Value]) -> _Value | None:
    return None if value is None else require_type(value, kind)


@cache
def added_adapters() -> tuple[AddedAdapter, ...]:
    return _ADAPTERS.load(AddedAdapter)


def adapter_for(model: str) -> AddedAdapter | None:
    for adapter in added_adapters():
        if adapter.claims(model):
            return adapter
    return None
