"""Notebooks in a step: the prompt shows their cells and no pictures, and a reply can
change what it shows.
"""

import json
from pathlib import Path
from typing import Any

from cdd_agent.changes.model import ReplyFault
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tools.base import parse_answer
from tests.engine.test_engine import of
from tests.engine.tool_steps import calls, replace
from tests.support.projects import Sandbox, Step, check, run_all, says

PICTURE = "iVBORw0KGgo" * 300
NOTEBOOK: dict[str, Any] = {
    "cells": [
        {
            "attachments": {"a.png": {"image/png": PICTURE}},
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# Prices\n", "![](attachment:a.png)"],
        },
        {
            "cell_type": "code",
            "execution_count": 3,
            "metadata": {},
            "outputs": [
                {
                    "data": {"image/png": PICTURE, "text/plain": ["<Figure>"]},
                    "metadata": {},
                    "output_type": "display_data",
                }
            ],
            "source": ["price = 3\n", "plot(price)"],
        },
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
TEXT = json.dumps(NOTEBOOK, indent=1) + "\n"
BLOCK = (
    'n.ipynb\n```\n<<<<<<< SEARCH\n    "price = 3\\n",\n=======\n'
    '    "price = 4\\n",\n    "price *= 2\\n",\n>>>>>>> REPLACE\n```\n'
)


def write(sandbox: Sandbox, text: str = TEXT) -> Path:
    sandbox.write(Step("n.ipynb", check("n.ipynb", "price")))
    place = sandbox.root / "n.ipynb"
    place.write_text(text)
    return place


async def test_the_prompt_shows_a_notebook_without_pictures(sandbox: Sandbox) -> None:
    write(sandbox)
    sandbox.replies(BLOCK)
    await run_all(sandbox)
    prompt = sandbox.prompt()
    assert "iVBOR" not in prompt
    assert "Figure" not in prompt
    assert '   "outputs": [\n' in prompt
    assert '    "# Prices\\n",\n    "![](attachment:a.png)"\n' in prompt


async def test_a_block_changes_a_cell_and_keeps_the_outputs(sandbox: Sandbox) -> None:
    place = write(sandbox)
    sandbox.replies(BLOCK)
    await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    new = '"price = 4\\n",\n    "price *= 2\\n",'
    assert place.read_text() == TEXT.replace('"price = 3\\n",', new)


async def test_a_large_notebook_is_shown_if_its_cells_are_small(
    sandbox: Sandbox,
) -> None:
    lines = [f"value_{number} = {number}\n" for number in range(1_500)]
    long = {"cell_type": "code", "metadata": {}, "outputs": [], "source": lines}
    content = NOTEBOOK | {"cells": [*NOTEBOOK["cells"], long]}
    text = json.dumps(content, indent=1)
    write(sandbox, text.replace(PICTURE, "iVBORw0KGgo" * 200_000))
    sandbox.replies(BLOCK)
    await run_all(sandbox)
    assert "iVBOR" not in sandbox.prompt()
    assert all(json.dumps(line) in sandbox.prompt() for line in lines)
    assert sandbox.statuses() == ["completed"]


async def test_a_notebook_is_not_replaced_without_its_outputs(
    sandbox: Sandbox,
) -> None:
    place = write(sandbox)
    sandbox.replies(says("n.ipynb", '{"cells": [], "nbformat": 4, "metadata": {}}'))
    events = await run_all(sandbox)
    (failed,) = of(AttemptFailed, events)
    assert ReplyFault.UNSEEN.words in failed.error
    assert place.read_text() == TEXT


async def test_a_notebook_without_outputs_may_be_replaced(sandbox: Sandbox) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": ["price = 3"]}
    content = NOTEBOOK | {"cells": [cell]}
    place = write(sandbox, json.dumps(content, indent=1) + "\n")
    new = json.dumps(content, indent=1).replace("= 3", "= 4")
    sandbox.replies(says("n.ipynb", new))
    await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert place.read_text() == f"{new}\n"


async def test_lines_that_are_not_shown_are_not_changed(sandbox: Sandbox) -> None:
    place = write(sandbox)
    sandbox.replies(BLOCK.replace("price = 3\\n", "<Figure>").replace("    ", " " * 8))
    events = await run_all(sandbox)
    assert of(AttemptFailed, events)
    assert place.read_text() == TEXT


async def test_a_notebook_on_one_line_is_named(sandbox: Sandbox) -> None:
    write(sandbox, json.dumps(NOTEBOOK))
    sandbox.replies("no")
    await run_all(sandbox)
    assert "iVBOR" not in sandbox.prompt()
    assert "n.ipynb exists and cannot be shown" in sandbox.prompt()


async def test_lines_of_a_notebook_that_were_read_can_be_changed(
    sandbox: Sandbox,
) -> None:
    sources = [
        [f"{name}_{number} = {number}\n" for number in range(1_000)]
        for name in ("first", "second")
    ]
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": source}
        for source in sources
    ]
    plot = NOTEBOOK["cells"][1]
    content = NOTEBOOK | {"cells": [cells[0], plot, cells[1], plot]}
    text = json.dumps(content, indent=1)
    place = write(sandbox, text)
    line = '    "second_990 = 990\\n",'
    number = text.split("\n").index(line) + 1
    lines = {"path": "n.ipynb", "start_line": number, "end_line": number + 40}
    new = line.replace("= 990", "= 0")
    sandbox.flags = {"context_window": 12_000, "tool_calls": "on"}
    sandbox.replies(
        calls(("read_file", lines)),
        calls(replace("n.ipynb", f"{line}\n", f"{new}\n")),
        ScriptedReply("Done."),
    )
    await run_all(sandbox)
    assert line not in sandbox.prompt(0)
    answer = parse_answer(sandbox.model.requests[1].messages[-1].content)
    assert answer["output"].startswith(f"{line}\n")
    assert place.read_text() == text.replace(line, new)
