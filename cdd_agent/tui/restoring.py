"""An earlier session in the transcript: the blocks that there were, folded; nothing of
it happens again.
"""

from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ReplyDelta,
)
from cdd_agent.events.notices import Answer
from cdd_agent.events.outside_events import OutsideDiff
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.step_events import StepDiff
from cdd_agent.events.stream import Event, SessionRestored
from cdd_agent.tui.transcript.actions import (
    ActionBlocks,
    reply_block,
    show_diff,
    show_line,
    text_block,
)
from cdd_agent.tui.transcript.blocks import BLOCKS, BlockKind
from cdd_agent.tui.transcript.folds import Opening
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording.describe import describe
from cdd_agent.wording.faces import Face


def restore(transcript: Transcript, session: SessionRestored) -> None:
    """Show the session below the existing blocks."""
    transcript.settle()
    name = "chat" if session.key.startswith("chat-") else session.key
    transcript.add(BlockKind.HEADING, f"Earlier in {name}")
    if session.left_out:
        transcript.add(BlockKind.NOTE, "… earlier entries omitted")
    actions = ActionBlocks(transcript)
    for event in session.events:
        _restore(transcript, actions, event)
    transcript.settle()


def _restore(transcript: Transcript, actions: ActionBlocks, event: Event) -> None:
    match event:
        case PersonSaid(text=text):
            show_line(transcript, text)
        case Answer(text=text):
            transcript.add(BlockKind.MARKDOWN, text)
        case ReplyDelta(text=text):
            transcript.add_foldable(reply_block(text, transcript))
        case ConversationShortened(summary=summary) if summary:
            transcript.add_foldable(text_block(summary, "summary"))
        case StepDiff():
            actions.show_restored(event)
        case OutsideDiff(diff=diff):
            show_diff(transcript, diff, Opening.HEADER)
        case _ if not actions.show(event):
            for line, tone in describe(event, Face.SHELL):
                transcript.add(BLOCKS[tone], line)
