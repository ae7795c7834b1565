"""Messages that Socrates sends in the user's name."""

BEGIN = (
    "I have opened this ticket. Look at the code that it is about, then begin with your"
    " first questions."
)
GO_DEEPER = (
    "The spec is complete. Look for what it does not say yet, or leaves to chance, and"
    " ask about that."
)
GO_ON = "Go on."
_FORMER_BEGIN = (
    "I have opened this ticket. Look around where it is about, then begin with your"
    " first questions."
)
"""`BEGIN` in notes from earlier versions."""
ADDED_LINES = frozenset({BEGIN, GO_DEEPER, GO_ON, _FORMER_BEGIN})
