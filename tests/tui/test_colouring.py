"""The inks of source code."""

from cdd_agent.tui.transcript.colouring import coloured


def test_the_last_line_of_a_diff_is_coloured_like_the_others() -> None:
    inks = [
        [ink for _, _, ink in marks]
        for marks in coloured("diff", ["@@ -1 +1,2 @@", "-old", "+new", "+newer"])
    ]
    assert inks == [["name"], ["deleted"], ["inserted"], ["inserted"]]


def test_an_unknown_language_has_no_colours() -> None:
    assert coloured("no-such-language", ["a", "b"]) == [[], []]
