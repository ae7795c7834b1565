"""All links between the pages lead somewhere, with their anchors."""

import tomllib
from collections.abc import Iterator

from tests.docs.pages import ROOT, Page, all_pages, page_at, read_page, slug
from tests.support.tables import each_row


def broken_links(page: Page) -> Iterator[str]:
    for number, target in page.links:
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page.path).parent / name if name else ROOT / page.path
        place = f"{page.path}:{number}: {target}"
        if not path.exists():
            yield f"{place}: there is no such file"
        elif anchor and path.suffix == ".md" and anchor not in page_at(path).anchors:
            yield f"{place}: the page has no such heading"


def test_each_link_leads_to_a_page_and_a_heading() -> None:
    assert [link for page in all_pages() for link in broken_links(page)] == []


def test_a_page_of_the_site_links_to_no_file_outside() -> None:
    """The site has only the folder `docs`."""
    wrong = []
    for page in all_pages():
        if not page.path.startswith("docs/"):
            continue
        for number, target in page.links:
            path = ((ROOT / page.path).parent / target.partition("#")[0]).resolve()
            if "://" not in target and ROOT / "docs" not in (path, *path.parents):
                wrong.append(f"{page.path}:{number}: {target}")
    assert wrong == []


def test_the_page_of_the_package_links_to_no_file() -> None:
    """A package index shows this page alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    page = page_at(ROOT / project["readme"])
    assert [target for _, target in page.links if "://" not in target] == []


def test_each_page_is_linked_from_another() -> None:
    linked = set()
    for page in all_pages():
        for _, target in page.links:
            path = (ROOT / page.path).parent / target.partition("#")[0]
            if "://" not in target and path.resolve() != ROOT / page.path:
                linked.add(path.resolve())
    pages = {ROOT / page.path for page in all_pages() if page.path.startswith("docs/")}
    index = ROOT / "docs" / "README.md"
    assert {str(path.relative_to(ROOT)) for path in pages - linked - {index}} == set()


@each_row(
    ("heading", "anchor"),
    [
        ("Naming a ticket", "naming-a-ticket"),
        ("`cdd verify`, again", "cdd-verify-again"),
        ("[Link](a.md) and text", "link-and-text"),
        ("plan.md", "planmd"),
    ],
)
def test_anchors_are_those_of_a_code_host(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_broken_link_and_a_broken_anchor_are_found() -> None:
    page = read_page(ROOT / "CONTRIBUTING.md")
    wrong = Page(page.path, ((1, "[a](no.md) [b](#no) `[c](no.md)`"),), ())
    assert len(list(broken_links(wrong))) == 2
