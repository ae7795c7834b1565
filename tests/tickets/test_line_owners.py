"""Every line of a plan that is not blank has one owner, and counts."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_reader import Owner, parse_plan, read_plan
from tests.support.examples import count_examples

LINES = st.sampled_from(
    """
# Implementation Plan: Sign in
**Ticket:** `feature-x`
**Complexity:** hard
Some words below the title.
## Overview
Why it is done.
## Implementation Steps
### Step 1: One
### Step 1b: One more
### Step 2: Two <!-- id: k3f9 -->
### Step 3 (optional): Three
### Task 4: Four
### ~~Step 5: Five~~
#### Step 1.1: Inside
**Step 6: Six**
###Step 7: Seven
### 8. Eight
### Step Nine: Nine
## Phase 2: Polish
Step 10: Ten
- [ ] **Step 2: Two**
**Description:** Do it.
**Estimated Time:** 1 hour
**Dependencies:** Step 1
**Dependencies:** the first one
**Serves:** 1
**Serves:** the team
**Verify:** `make a`
**Verify:** `make a` and `make b`
**Verify:** make sure it works
**Verify:** the page opens
**Verify:** none
**Verification:**
#### Verify
- `make c`
- [ ] `make d`
- `make e` is green
- the page opens
1. `make f`
Verify: `make g`
> **Verify:** `make h`
**Test command:** `make i`
**Lint:** `make j`
**Source:** `src/z.py`
**Owner:** Kim
**Files Affected:**
**Files to create:** `src/new.py`
- `src/a.py` (new)
- Modify: `src/b.py:1-2`
- [c](src/c.py#L3)
- src/d/
- the settings
  - a note
| File | Change |
|---|---|
| `src/e.py` | new |
**Removes tests:** `tests/test_a.py`
**Removes tests:** the old ones
**May fail:** `tests/test_b.py` until step 2
## Risks & Considerations
- It may rain.
## Verification
## Glossary
A term.
A sentence of the description.
  indented words
```bash
make k
```
```python
x = 1
---
<!-- a comment -->
<div>
""".strip("\n").split("\n")
)
BREAKS = st.sampled_from(["\n", "\n", "\n\n"])
TEXTS = st.lists(st.tuples(LINES, BREAKS).map("".join), max_size=14).map("".join)

# Lines that may say nothing more than the rest of the plan.
_MARKS = re.compile(r"\s*(?:[-*_=]{3,}|[|:\s-]+|`{3,}.*|~{3,}.*|<[^>]*>)\s*")
_EMPTY = re.compile(
    r"\W*(?:step|task)?\W*[0-9.]*\w?\W*|#+\s*(?:overview|implementation steps|risks.*"
    r"|verification|verify|notes)|\**(?:verification|files affected):\**|.*\bnone\b.*",
    re.IGNORECASE,
)


def read(text: str) -> tuple[ImplementationPlan, object]:
    plan = read_plan(text)
    return plan, [(found.kind, found.line, found.text) for found in plan.findings]


@settings(deadline=None, max_examples=count_examples(60))
@given(TEXTS)
@example("# Plan: X\n\n### Step 1: A\n\n**Verify:**\n- `make a`\n- `make b`\n")
@example("Sure!\n\n```markdown\n# Plan: X\n\n### Step 1: A\n```\n\nDone.\n")
def test_each_line_has_an_owner_and_counts(text: str) -> None:
    try:
        parsed = parse_plan(text)
    except BadInput:
        return
    lines = text.split("\n")
    written = {number for number, line in enumerate(lines) if line.strip()}
    assert parsed.owners.keys() == written
    before = read(text)
    for number in written:
        line = lines[number]
        is_comment = line.startswith("#") and "```bash" in lines
        is_silent = _MARKS.fullmatch(line) or _EMPTY.fullmatch(line) or is_comment
        rest = "\n".join(lines[:number] + lines[number + 1 :])
        spans = re.findall("`[^`]+`", line)
        is_repeated = bool(spans) and all(span in rest for span in spans)
        if is_silent or is_repeated or lines.count(line) > 1:
            continue
        blanked = "\n".join([*lines[:number], "", *lines[number + 1 :]])
        assert read(blanked) != before, f"line {number + 1} does not count: {line}"


def test_owners_say_what_a_line_belongs_to() -> None:
    text = (
        "# Plan: X\n**Ticket:** `x`\nWords.\n### Step 1: A\n**Verify:** `make`\n"
        "More.\n### 2. B\n"
    )
    assert list(parse_plan(text).owners.values()) != []
    owners = parse_plan(text).owners
    assert [owners[number] for number in range(7)] == [
        Owner.PROSE,
        Owner.FIELD,
        Owner.PROSE,
        Owner.STEP,
        Owner.FIELD,
        Owner.PROSE,
        Owner.FINDING,
    ]
