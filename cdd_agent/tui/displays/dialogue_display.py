from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ModelReplaced,
    PromptMade,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
    ThinkingDelta,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.tui.displays.display import Display, show_event
from cdd_agent.tui.transcript.actions import text_block
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.wording.dialogue_words import thought, tool_use


@show_event.register
def show_prompt(event: PromptMade, display: Display) -> None:
    display.window = event.window


@show_event.register
def show_start_of_reply(event: ReplyStarted, display: Display) -> None:
    home = display.home
    if event.saved:
        home.activity.busy("Using the saved reply")
        return
    # The active agent's model or its fallback.
    home.bar.model = event.model
    display.delay = 0.0
    home.activity.busy(f"Waiting for {event.model}")


@show_event.register
def show_thinking(event: ThinkingDelta, display: Display) -> None:
    home = display.home
    home.activity.busy("Thinking …")
    measure = thought(event.seconds, event.tokens, estimated=True)
    home.transcript.think(event.text, measure)


@show_event.register
def show_end_of_thinking(event: ThinkingFinished, display: Display) -> None:
    if event.seconds is not None:
        measure = thought(event.seconds, event.tokens, estimated=event.estimated)
        if display.home.transcript.end_thoughts(measure):
            return
    display.show_words(event)


@show_event.register
def show_piece_of_reply(event: ReplyDelta, display: Display) -> None:
    home = display.home
    home.activity.busy("Receiving the reply")
    home.transcript.write(event.text)


@show_event.register
def show_delay(event: ReplyDelayed, display: Display) -> None:
    home = display.home
    seconds = event.seconds
    if seconds > display.delay:
        # A new wait. The activity bar may cut its reason off.
        text = f"{event.reason} Retrying in {seconds:.0f} s."
        home.transcript.add(BlockKind.OUTPUT, text)
    display.delay = seconds - 1
    home.activity.busy(f"Retrying in {seconds:.0f} s: {event.reason}")


@show_event.register
def show_restart_of_reply(event: ReplyRestarted, display: Display) -> None:
    transcript = display.home.transcript
    transcript.settle()
    if event.was_thought:
        text = "End of the model's thoughts; its reply follows."
        transcript.add(BlockKind.NOTE, text)
    else:
        text = "The reply broke off and starts again."
        transcript.add(BlockKind.WARNING, text)


@show_event.register
def show_end_of_reply(event: ReplyFinished, display: Display) -> None:
    home = display.home
    home.transcript.settle()
    display.show_cost()
    if event.usage is None:
        return
    home.bar.context = display.share_of_window(event.usage.cost)
    if event.step is not None:
        home.steps.spend(event.step, event.usage.cost)


@show_event.register
def show_other_model(event: ModelReplaced, display: Display) -> None:
    display.home.bar.model = event.model
    display.show_words(event)


@show_event.register
def show_shortened_conversation(event: ConversationShortened, display: Display) -> None:
    display.show_words(event)
    if event.summary:
        display.home.transcript.add_foldable(text_block(event.summary, "summary"))


@show_event.register
def show_start_of_tool(event: ToolStarted, display: Display) -> None:
    home = display.home
    home.transcript.settle()
    home.activity.busy(tool_use(event))


@show_event.register
def show_end_of_tool(event: ToolFinished, display: Display) -> None:
    display.actions.show(event)
