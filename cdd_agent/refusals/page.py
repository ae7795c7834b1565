"""The explanations of refusals, in Markdown."""

from collections.abc import Sequence

from cdd_agent.refusals.kinds import Refusal, RefusalGroup

_REPLY = "The model's reply "
"""The beginning of messages about replies, which the page leaves out."""


def explain(refusal: Refusal) -> str:
    text = refusal.text
    parts = (f"*{text.message}*", text.reason, f"**What to do:** {text.remedy}")
    return "\n\n".join(filter(None, parts))


def explain_all() -> str:
    """Return an index of the ids, and all explanations under their ids, in groups."""
    groups = {group: _members(group) for group in RefusalGroup}
    index = []
    sections = []
    for group, members in groups.items():
        links = ", ".join(f"[{refusal.id}](#{refusal.id})" for refusal in members)
        index.append(f"- **{group}:** {links}")
        sections.append(f"## {group}")
        sections += [_section(refusal) for refusal in members]
    return "\n\n".join(["\n".join(index), *sections]) + "\n"


def _members(group: RefusalGroup) -> Sequence[Refusal]:
    return [refusal for refusal in Refusal if refusal.text.group is group]


def _section(refusal: Refusal) -> str:
    """Return the id, then the message with its reason, then what to do."""
    text = refusal.text
    message = text.message.replace(_REPLY, "… ")
    if not message.endswith((".", "…")):
        message += "."
    sentence = f"*{message}* {text.reason}".rstrip()
    return f"### {refusal.id}\n\n{sentence}\n\n{text.remedy}"
