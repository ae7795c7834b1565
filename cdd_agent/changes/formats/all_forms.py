"""The forms of edits, except whole files in code blocks."""

from functools import lru_cache

from cdd_agent.changes.formats.added import load_added
from cdd_agent.changes.formats.diffs import Diffs
from cdd_agent.changes.formats.form import Form
from cdd_agent.changes.formats.listed import Actions
from cdd_agent.changes.formats.patches import Patches
from cdd_agent.changes.formats.search_replace import SearchReplace
from cdd_agent.changes.formats.tagged import TaggedFiles


@lru_cache(1)
def all_forms() -> tuple[Form, ...]:
    """The first form that accepts a code block reads it.

    Other packages add forms as entry points of `cdd_agent.reply_forms`.
    """
    built_in = (SearchReplace(), Patches(), Diffs(), Actions(), TaggedFiles())
    return (*built_in, *load_added())
