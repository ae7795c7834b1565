"""Which tickets may be about the same thing."""

from pathlib import Path

from cdd_agent.tickets.related import related_tickets
from cdd_agent.tickets.store import TicketStore


def store(root: Path, **titles: str) -> TicketStore:
    for slug, title in titles.items():
        folder = root / "tickets" / slug.replace("_", "-")
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(title)
    return TicketStore(root)


def related(tickets: TicketStore, slug: str) -> list[tuple[str, str]]:
    return [
        (found.slug, found.title)
        for found in related_tickets(tickets.find(slug), tickets.list())
    ]


def test_those_that_share_words_are_found_the_likest_first(tmp_path: Path) -> None:
    tickets = store(
        tmp_path,
        feature_monthly_report="title: Monthly expense report",
        bug_rounding="title: The expense report rounds amounts",
        feature_login="title: Sign in",
        spike_charts="title: Charts for a report",
    )
    assert [slug for slug, _ in related(tickets, "feature-monthly-report")] == [
        "bug-rounding",
        "spike-charts",
    ]


def test_the_type_in_a_slug_makes_no_two_tickets_alike(tmp_path: Path) -> None:
    assert (
        related(
            store(tmp_path, feature_a1="title: x", feature_b2="title: y"), "feature-a1"
        )
        == []
    )


def test_a_spec_that_cannot_be_read_has_its_slug_to_go_by(tmp_path: Path) -> None:
    tickets = store(
        tmp_path,
        bug_report="title: [",
        feature_report="title: <the title of it>",
        spike_report="a: b",
    )
    assert related(tickets, "spike-report") == [
        ("bug-report", ""),
        ("feature-report", ""),
    ]


def test_at_most_five_are_named(tmp_path: Path) -> None:
    tickets = store(
        tmp_path, **{f"bug_report_{number}": "title: x" for number in range(9)}
    )
    assert len(related(tickets, "bug-report-0")) == 5
