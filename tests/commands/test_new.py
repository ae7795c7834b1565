"""`/new`: tickets and pages of documentation from templates."""

import shlex
from pathlib import Path

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.initialise import NoPlace
from cdd_agent.commands.registry import handle
from cdd_agent.commands.ticket_commands import new
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.session.open_project import open_project
from tests.support.listening import collect
from tests.support.projects import Sandbox
from tests.support.tables import each_row

SLUG = "bug-no-words"
DEPLOY = "How to deploy"
OURS = "title: Ours\nteam: checkout\n"


async def say(sandbox: Sandbox, line: str) -> str:
    (notice,) = await collect(handle(sandbox.session(), line))
    assert isinstance(notice, Notice)
    assert notice.tone is Tone.GOOD
    return notice.text


async def test_a_new_ticket_names_the_next_command(sandbox: Sandbox) -> None:
    told = await say(sandbox, "/new bug 'No words'")
    assert f"`/socrates {SLUG}`" in told
    assert f"`/plan {SLUG}`" in told


@each_row("line", ["bug 'No words'", "documentation guide deploy"])
def test_nothing_is_created_in_the_home_folder(line: str) -> None:
    kind, *words = shlex.split(line)
    with pytest.raises(NoPlace):
        list(new(open_project(Path.home(), {}), kind, *words))
    assert not (Path.home() / "tickets").exists()
    assert not (Path.home() / "docs").exists()


async def test_a_page_of_each_kind_is_in_its_folder_with_its_title(
    sandbox: Sandbox,
) -> None:
    page = await say(sandbox, f'/new documentation guide "{DEPLOY}"')
    assert "docs/guides/how-to-deploy.md" in page
    page = await say(sandbox, "/new Documentation Feature user-auth")
    assert "docs/features/user-auth.md" in page
    assert sandbox.text("docs/guides/how-to-deploy.md").startswith(f"# {DEPLOY}\n")
    assert sandbox.text("docs/features/user-auth.md").startswith("# User auth\n")


async def test_an_existing_page_is_not_changed(sandbox: Sandbox) -> None:
    await say(sandbox, "/new documentation guide deploy")
    (sandbox.root / "docs/guides/deploy.md").write_text("mine")
    with pytest.raises(BadInput, match=r"docs/guides/deploy\.md"):
        await say(sandbox, "/new documentation guide Deploy.md")
    assert sandbox.text("docs/guides/deploy.md") == "mine"


async def test_the_project_s_own_page_template_wins(sandbox: Sandbox) -> None:
    own = sandbox.root / ".cdd/templates/documentation-guide.md"
    own.parent.mkdir(parents=True)
    own.write_text("# Own: {{title}}\n")
    await say(sandbox, "/new documentation guide Größe")
    assert sandbox.text("docs/guides/grosse.md") == "# Own: Größe\n"


async def test_a_docs_folder_outside_the_project_is_refused(
    sandbox: Sandbox, tmp_path_factory: object
) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (sandbox.root / "docs").symlink_to(elsewhere)
    with pytest.raises(BadInput, match="outside"):
        await say(sandbox, "/new documentation guide deploy")
    assert list(elsewhere.iterdir()) == []


@each_row(
    ("name", "page"),
    [
        ("../../etc/passwd", "etc-passwd.md"),
        ("a/b", "a-b.md"),
        ("  Ünïcode!  ", "unicode.md"),
        ("使い方", "使い方.md"),
        ("CON guide", None),
    ],
)
async def test_an_odd_name_of_a_page_becomes_a_plain_one(
    sandbox: Sandbox, name: str, page: str | None
) -> None:
    await say(sandbox, f"/new documentation guide '{name}'")
    made = [path.name for path in (sandbox.root / "docs/guides").iterdir()]
    assert made == [page or "con-guide.md"]


@each_row("kind", ["bug", "documentation guide"])
@each_row(
    ("name", "reason"),
    [
        ("''", "no letters"),
        ("..", "no letters"),
        ("🚀", "no letters"),
        ("x" * 101, "too long"),
        ("x" * 9999, "too long"),
    ],
)
async def test_an_unusable_name_is_an_error_and_creates_nothing(
    sandbox: Sandbox, kind: str, name: str, reason: str
) -> None:
    with pytest.raises(BadInput, match=reason) as caught:
        await say(sandbox, f"/new {kind} {name}")
    assert len(caught.value.message) < 200
    assert list(sandbox.root.iterdir()) == []


@each_row(
    ("line", "folder", "title"),
    [
        ("/new bug 'No words'", "bug-no-words", "No words"),
        ("/new bug no-words", "bug-no-words", "No words"),
        ("/new bug bug-no-words", "bug-no-words", "No words"),
        ("/new bug ユーザーログイン", "bug-ユーザーログイン", "ユーザーログイン"),
        ("/new bug ユーザー --slug login", "bug-login", "ユーザー"),
        ("/new bug --slug=login 'Вход: #1'", "bug-login", "Вход: #1"),
        ("/new bug --slug bug-Login 'No'", "bug-login", "No"),
        ("/new bug --slug '🚀' 'No'", None, ""),
        ("/new bug --slug", None, ""),
        ("/new bug --slug ''", None, ""),
        ("/new bug --other x", None, ""),
        ("/new documentation guide x --slug y", None, ""),
    ],
)
async def test_the_typed_name_is_the_title_and_the_folder_can_be_another(
    sandbox: Sandbox, line: str, folder: str | None, title: str
) -> None:
    if folder is None:
        with pytest.raises(BadInput):
            await say(sandbox, line)
        assert list(sandbox.root.iterdir()) == []
        return
    assert folder in await say(sandbox, line)
    (ticket,) = sandbox.project.tickets.list()
    assert (ticket.slug, ticket.read_spec().title) == (folder, title)


def test_the_command_line_takes_a_slug(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["new", "feature", "Вход", "--slug", "login"]
    assert main([*arguments, "-C", str(sandbox.root)]) == 0
    (ticket,) = sandbox.project.tickets.list()
    assert (ticket.slug, ticket.read_spec().title) == ("feature-login", "Вход")


@each_row("name", ["con", "NUL", "com1", "lpt9.md", "Aux"])
async def test_a_page_has_no_name_that_windows_forbids(
    sandbox: Sandbox, name: str
) -> None:
    with pytest.raises(BadInput, match="reserved name on Windows"):
        await say(sandbox, f"/new documentation guide {name}")
    # with the type before it, it is a name like any other
    assert "bug-" in await say(sandbox, f"/new bug {name}")


@each_row(
    ("text", "message"),
    [
        (
            b"title: x\ntitle: y\n",
            ".cdd/templates/bug.yaml:2:1: the key title appears twice",
        ),
        (b"title: [\n", ".cdd/templates/bug.yaml:2:1: not YAML"),
        (
            b"title: x\n\ntype: feature\n",
            ".cdd/templates/bug.yaml:3: the template of a bug has the type feature",
        ),
        (
            b"ticket:\n  type: spike\n",
            ".cdd/templates/bug.yaml:1: the template of a bug has the type spike",
        ),
        (
            b"title: x\ntype: story\n",
            ".cdd/templates/bug.yaml:2: unknown type 'story'",
        ),
        (b"", ".cdd/templates/bug.yaml: the file is empty"),
        (b"\xff", ".cdd/templates/bug.yaml is not UTF-8 text"),
    ],
)
async def test_a_broken_template_is_refused_with_its_place(
    sandbox: Sandbox, text: bytes, message: str
) -> None:
    template(sandbox).write_bytes(text)
    with pytest.raises(BadInput) as caught:
        await say(sandbox, "/new bug a")
    assert caught.value.message.startswith(message)
    assert not (sandbox.root / "tickets").exists()


async def test_a_dangling_template_link_is_an_error(
    sandbox: Sandbox,
) -> None:
    template(sandbox).symlink_to("nowhere")
    with pytest.raises(BadInput, match=r"\.cdd/templates/bug\.yaml .*link"):
        await say(sandbox, "/new bug a")


async def test_a_template_without_a_type_has_the_type_of_its_name(
    sandbox: Sandbox,
) -> None:
    template(sandbox).write_text(OURS)
    await say(sandbox, "/new bug a")
    assert sandbox.text("tickets/bug-a/spec.yaml") == OURS.replace("Ours", "A")
    assert sandbox.project.tickets.find("bug-a").read_spec().type == "bug"


async def test_an_unknown_kind_of_page_is_an_error_with_the_known_kinds(
    sandbox: Sandbox,
) -> None:
    with pytest.raises(BadInput, match="'recipe'") as caught:
        await say(sandbox, "/new documentation recipe x")
    assert "guide, feature" in caught.value.hint


def template(sandbox: Sandbox) -> Path:
    path = sandbox.root / ".cdd/templates/bug.yaml"
    path.parent.mkdir(parents=True)
    return path


async def test_the_next_command_after_a_new_ticket_is_shown(sandbox: Sandbox) -> None:
    told = await say(sandbox, "/new feature 'Reading time'")
    assert "tickets/feature-reading-time/spec.yaml" in told
    assert "`/socrates feature-" in told
    assert "`/plan feature-" in told
