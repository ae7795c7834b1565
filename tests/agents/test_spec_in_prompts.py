"""Every word of spec.yaml is in the prompt of each agent."""

import json
import re
import unicodedata
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.agents.socrates_prompt import with_draft
from cdd_agent.agents.spec_draft import Draft
from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.structured import NoUsableAnswer
from cdd_agent.tickets.spec import FIELDS, OLD_DESCRIPTION_KEYS, TicketSpec, dump_yaml
from cdd_agent.tickets.spec_prompt import render_spec
from tests.agents.asking import asks
from tests.support.projects import SLUG, Sandbox, Step, says

SPEC = """\
title: Say words
type: bug
description: The files say the right words.
acceptance_criteria:
  - a.txt says good
implementation_scope: {text: [AREA-ITEM]}
technical_notes: NOTE-1
priority: PRIO-1
constraints: [MUST-NOT-TOUCH-DB]
user_story: "A reader: wants #1"
version: 1.10
due: 2024-13-45
owner: {name: ユーザー, team: {lead: Жанна, size: 012}}
acceptance-notes: |
  first

    second
"""
OWN_WORDS = """\
constraints MUST-NOT-TOUCH-DB user_story reader wants #1 version 1.10 due 2024-13-45
owner name ユーザー team lead Жанна size 012 first second acceptance-notes
AREA-ITEM NOTE-1 PRIO-1 bug
"""


def words(value: Any) -> set[str]:
    """Return the words of a value as a person reads them in YAML."""
    if isinstance(value, dict):
        return set().union(*(words(key) | words(item) for key, item in value.items()))
    if isinstance(value, list):
        return set().union(*map(words, value))
    return set(re.findall(r"\w+", str(value)))


texts = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=30
)
keys = texts.filter(
    lambda name: (
        bool(name.strip())
        and not {name, name.strip()} & {*FIELDS, *OLD_DESCRIPTION_KEYS, "ticket", "<<"}
    )
)
values = st.recursive(
    texts | st.integers().map(str) | st.sampled_from(["1.10", "no", "2024-01-02"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {
            "title": texts,
            "description": texts,
            "acceptance_criteria": st.lists(texts, max_size=3),
            "implementation_scope": st.dictionaries(
                keys, st.lists(texts, max_size=2), max_size=2
            ),
            "technical_notes": texts,
            "priority": texts,
        }
    ),
    st.dictionaries(keys, values, max_size=4),
)
@settings(deadline=None)
def test_each_word_of_a_spec_is_in_each_prompt(
    fields: dict[str, Any], own: dict[str, Any]
) -> None:
    spec = TicketSpec.from_yaml(dump_yaml(fields | own))
    socrates = with_draft("", Draft.over(spec))
    # JSON escapes some signs; what is between them is there.
    socrates += " ".join(words(_json_in(socrates)))
    written = words(own) | words(list(fields.values()))
    assert written <= words(socrates)
    assert written <= words(render_spec(spec))


def _json_in(prompt: str) -> Any:
    block = re.search(r"^(`{3,})json\n(.*?)\n\1$", prompt, re.MULTILINE | re.DOTALL)
    return json.loads(block[2]) if block else {}


async def prompts(sandbox: Sandbox) -> dict[str, str]:
    """Return all that each agent was sent."""
    sent = {}
    for line in (f"/socrates {SLUG}", f"/plan {SLUG}", f"/exec {SLUG}"):
        session = sandbox.session()
        first = len(sandbox.model.requests)
        await handle(session, line)
        with suppress(NoUsableAnswer):
            await handle(session, "> Go on.")
        session.leave()
        requests = sandbox.model.requests[first:]
        sent[line.split()[0]] = "\n".join(
            message.content for request in requests for message in request.messages
        )
    return sent


async def test_own_keys_reach_the_models_of_all_agents(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"), spec=SPEC)
    sandbox.replies(asks("Who?"), asks("Who?"), *[says("a.txt", "good")] * 9)
    sent = await prompts(sandbox)
    missing = {
        agent: [
            word
            for word in OWN_WORDS.split()
            if word not in unicodedata.normalize("NFC", text)
        ]
        for agent, text in sent.items()
    }
    assert missing == {"/socrates": [], "/plan": [], "/exec": []}


def test_a_huge_value_is_whole() -> None:
    text = "x" * 190_000
    spec = TicketSpec.from_yaml(f"title: a\nlog: {text}\n")
    assert text in render_spec(spec)
    assert text in with_draft("", Draft.over(spec))
