"""What a key makes of the text in the prompt, and what Enter sends: cell by cell."""

from itertools import product

from cdd_agent.tui.answering import (
    KeyKind,
    Sent,
    Timing,
    Typed,
    next_typed,
    sent_as,
)

N, D, S, A = Typed.NOTHING, Typed.DRAFT, Typed.SEEN, Typed.ANSWER
UNSEEN, SEEN, RESTED = Timing.UNSEEN, Timing.SEEN, Timing.RESTED

AFTER_TEXT = {
    # the prompt shows no text: the key may be the first one
    (N, True): {UNSEEN: D, SEEN: S, RESTED: A},
    # keys of a fast typist are not shown yet, but a rest proves that none is coming
    (D, True): {UNSEEN: D, SEEN: D, RESTED: A},
    (S, True): {UNSEEN: S, SEEN: S, RESTED: A},
    (A, True): {UNSEEN: A, SEEN: A, RESTED: A},
    # behind a text that was pasted, edited, or taken from the history
    (N, False): {UNSEEN: D, SEEN: D, RESTED: D},
    # behind the text that was begun
    (D, False): {UNSEEN: D, SEEN: D, RESTED: D},
    (S, False): {UNSEEN: S, SEEN: S, RESTED: S},
    (A, False): {UNSEEN: A, SEEN: A, RESTED: A},
}
"""The state after a letter, by the state before it and whether the prompt is empty."""
SENT = {
    (N, True): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.DRAFT_AFTER_REST},
    (D, True): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.DRAFT_AFTER_REST},
    (S, True): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.DRAFT_AFTER_REST},
    # Enter at once behind the letter, which is not shown yet
    (A, True): {UNSEEN: Sent.ANSWER, SEEN: Sent.ANSWER, RESTED: Sent.DRAFT_AFTER_REST},
    (N, False): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.DRAFT_AFTER_REST},
    (D, False): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.DRAFT_AFTER_REST},
    (S, False): {UNSEEN: Sent.DRAFT, SEEN: Sent.DRAFT, RESTED: Sent.ANSWER},
    (A, False): {UNSEEN: Sent.ANSWER, SEEN: Sent.ANSWER, RESTED: Sent.ANSWER},
}
"""What Enter sends, by the state before it and whether the prompt is empty."""


def test_each_letter_leads_to_the_next_state() -> None:
    for typed, is_empty, timing in product(Typed, (True, False), Timing):
        expected = AFTER_TEXT[typed, is_empty][timing]
        following = next_typed(typed, KeyKind.TEXT, timing, is_empty=is_empty)
        assert following is expected, (typed, is_empty, timing)


def test_any_other_key_ends_the_text_that_was_begun() -> None:
    for typed, kind, timing, is_empty in product(
        Typed, (KeyKind.ENTER, KeyKind.OTHER), Timing, (True, False)
    ):
        assert next_typed(typed, kind, timing, is_empty=is_empty) is N


def test_each_enter_sends_a_draft_or_an_answer() -> None:
    for typed, is_empty, timing in product(Typed, (True, False), Timing):
        expected = SENT[typed, is_empty][timing]
        sent = sent_as(typed, timing, is_empty=is_empty)
        assert sent is expected, (typed, is_empty, timing)
