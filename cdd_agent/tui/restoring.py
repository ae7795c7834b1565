"""Shows an earlier session in the transcript. Its events have no effects."""

from collections.abc import Sequence

from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ReplyDelta,
)
from cdd_agent.events.notices import Answer, Notice
from cdd_agent.events.outside_events import OutsideDiff
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.step_events import StepDiff
from cdd_agent.events.stream import Event, SessionRestored
from cdd_agent.events.ticket_events import PlanChecked, PlanProposed
from cdd_agent.tui.transcript.actions import (
    ActionBlocks,
    reply_block,
    show_diff,
    show_line,
    text_block,
)
from cdd_agent.tui.transcript.blocks import BLOCKS, BlockKind
from cdd_agent.tui.transcript.folds import Foldable, Opening
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording.describe import describe
from cdd_agent.wording.faces import Face
from cdd_agent.wording.proposal_words import change_lines, proposal_heading

_RECENT = 10
_CONVERSATION = (PersonSaid, Answer, Notice, PlanProposed, PlanChecked)


def restore(transcript: Transcript, session: SessionRestored) -> None:
    """Append a session. The older part of a conversation becomes one folded block."""
    transcript.settle()
    name = "chat" if session.key.startswith("chat-") else session.key
    transcript.add(BlockKind.HEADING, f"Earlier in {name}")
    if session.left_out:
        transcript.add(BlockKind.NOTE, "… earlier entries omitted")
    older = session.events[:-_RECENT]
    if any(not isinstance(event, _CONVERSATION) for event in older):
        older = ()
    if older:
        transcript.add_foldable(_older_block(older))
    blocks = ActionBlocks(transcript)
    for event in session.events[len(older) :]:
        _restore(transcript, blocks, event)
    transcript.settle()


def _older_block(events: Sequence[Event]) -> Foldable:
    texts = []
    for event in events:
        if isinstance(event, PersonSaid):
            texts.append(f"❯ {event.text}")
        else:
            texts += [text for text, _ in describe(event, Face.SHELL)]
    first = "1 earlier entry" if len(events) == 1 else f"{len(events)} earlier entries"
    return text_block("\n".join([first, *texts]), "conversation")


def _proposal_block(event: PlanProposed) -> Foldable:
    parts = [proposal_heading(event), *change_lines(event), event.text]
    return text_block("\n".join(parts), "plan")


def _restore(transcript: Transcript, blocks: ActionBlocks, event: Event) -> None:
    match event:
        case PersonSaid(text=text):
            show_line(transcript, text)
        case Answer(text=text):
            transcript.add(BlockKind.MARKDOWN, text)
        case ReplyDelta(text=text):
            transcript.add_foldable(reply_block(text, transcript))
        case PlanProposed():
            transcript.add_foldable(_proposal_block(event))
        case ConversationShortened(summary=summary) if summary:
            transcript.add_foldable(text_block(summary, "summary"))
        case StepDiff():
            blocks.show_restored(event)
        case OutsideDiff(diff=diff):
            show_diff(transcript, diff, Opening.HEADER)
        case _ if not blocks.show(event):
            for line, tone in describe(event, Face.SHELL):
                transcript.add(BLOCKS[tone], line)
