"""Names behind an at sign: what a line mentions, and how completion writes a name."""

import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cdd_agent.agents.mention_completion import complete_mention, files_to_mention
from cdd_agent.files.mention_reader import (
    Mention,
    find_mentions,
    find_open_mention,
    mentioned_name,
    write_mention,
)
from tests.support.tables import each_row

FILES = [
    "a.py",
    "b.py",
    "README",
    "src/app.py",
    "src/(auth)/page.tsx",
    "app/[id]/page.tsx",
    "my notes.md",
    "a b/c d.txt",
    "page(1).tsx",
    "logo@2x.png",
    "file#name.txt",
    "what?.txt",
    "it's.md",
    "Återstående.md",
    "报告.md",
    "说明（1）.md",
    "media/x.css",
    "cache/x",
    "context/x",
    "types/x",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in FILES:
        write_file(tmp_path, name)
    return tmp_path


def write_file(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("text\n")


def shown(mention: Mention) -> str:
    """The path with its lines, or `?` and the name that was looked for."""
    lines = ""
    if mention.lines:
        lines = f":{mention.lines.first}-{mention.lines.last}"
    return f"{mention.path}{lines}" if mention.path else f"?{mention.name}{lines}"


def read(root: Path, text: str) -> list[str]:
    return [shown(mention) for mention in find_mentions(root, text)]


@each_row(
    ("line", "expected"),
    [
        # Brackets in a name, and around it.
        ("@src/(auth)/page.tsx", ["src/(auth)/page.tsx"]),
        ("look at @src/(auth)/page.tsx.", ["src/(auth)/page.tsx"]),
        ("(@src/(auth)/page.tsx)", ["src/(auth)/page.tsx"]),
        ("@app/[id]/page.tsx, @page(1).tsx", ["app/[id]/page.tsx", "page(1).tsx"]),
        ("(@a.py) [@b.py] {@README}", ["a.py", "b.py", "README"]),
        ("(see @a.py).", ["a.py"]),
        ("[@a.py](link)", ["a.py"]),
        ("<b>@a.py</b>", ["a.py"]),
        ("@src/(auth)", ["src/(auth)"]),
        ("@a.py(the old one), @README(all", ["a.py", "README"]),
        ("@a.py (3) and @b.py(3).", ["a.py", "b.py"]),
        ("@a.py(3).bak @src/(nothing)", ["?a.py(3).bak", "?src/(nothing)"]),
        ("@src/)", ["src"]),
        # Quotes.
        ('@"my notes.md" is', ["my notes.md"]),
        ("@'my notes.md' is", ["my notes.md"]),
        ("@`my notes.md` is", ["my notes.md"]),
        ("@“my notes.md” is", ["my notes.md"]),
        ("@„my notes.md“ ist", ["my notes.md"]),
        ("@‘my notes.md’ is", ["my notes.md"]),
        ("@«my notes.md» est", ["my notes.md"]),
        ("@「my notes.md」は", ["my notes.md"]),
        ('@"my notes.md', ["my notes.md"]),
        ("\"@a.py\" '@b.py' `@README`", ["a.py", "b.py", "README"]),
        ("“@a.py” ‘@b.py’ «@README»", ["a.py", "b.py", "README"]),
        ('@"a.py" and "b"', ["a.py"]),
        ("@a.py's content, @a.py’s size", ["a.py"]),
        ("@it's.md", ["it's.md"]),
        # Blanks without quotes.
        ("@my notes.md please", ["my notes.md"]),
        ("@my\\ notes.md please", ["my notes.md"]),
        ("@a b/c d.txt, ok", ["a b/c d.txt"]),
        # Marks after and before it, also of full width.
        ("@a.py, @b.py; @README: x", ["a.py", "b.py", "README"]),
        ("@README;", ["README"]),
        ("@src explain it;", ["src"]),
        ("@a.py,@b.py;@README", ["a.py", "b.py", "README"]),
        ("is it @a.py?! or @b.py...", ["a.py", "b.py"]),
        ("**@a.py** |@b.py| @README—yes", ["a.py", "b.py", "README"]),
        ("看@a.py和@b.py，然后（@README）。", ["a.py", "b.py", "README"]),
        ("@a.py를 봐", ["a.py"]),
        ("「@a.py」：@b.py！", ["a.py", "b.py"]),
        ("＠a.py、＠b.py", ["a.py", "b.py"]),
        ("@报告.md看看 @说明（1）.md", ["报告.md", "说明（1）.md"]),
        # Lines.
        ("@a.py:3-5", ["a.py:3-5"]),
        ("@a.py:3 and", ["a.py:3-3"]),
        ("@a.py:3.", ["a.py:3-3"]),
        ("(@a.py:3)", ["a.py:3-3"]),
        ("@a.py:3:7: error", ["a.py:3-3"]),
        ("@a.py:L3-L5", ["a.py:3-5"]),
        ("@a.py#L3", ["a.py:3-3"]),
        ("@a.py#L3-L5", ["a.py:3-5"]),
        ("@a.py#L3-5", ["a.py:3-5"]),
        ("@a.py#3-5", ["a.py:3-5"]),
        ("@a.py#L3C1-L5C2", ["a.py:3-5"]),
        ("@a.py:3–5", ["a.py:3-5"]),
        ("@a.py：3", ["a.py:3-3"]),
        ('@"my notes.md":3-5', ["my notes.md:3-5"]),
        ('@"my notes.md:3-5"', ["my notes.md:3-5"]),
        ("@“my notes.md”#L3 and", ["my notes.md:3-3"]),
        ("@a.py @a.py:1 @a.py:1-1", ["a.py", "a.py:1-1"]),
        ("@nothing.py:3-5", ["?nothing.py:3-5"]),
        # Names that contain the marks of other names.
        ("@logo@2x.png, @file#name.txt", ["logo@2x.png", "file#name.txt"]),
        ("@what?.txt?", ["what?.txt"]),
        ("@Återstående.md!", ["Återstående.md"]),
        # Folders.
        ("@src @src/ @src/. @./src", ["src"]),
        ("@.", ["."]),
        # Names outside the project are reported.
        ("@../x @~/x.py @/etc/passwd", ["?../x", "?~/x.py", "?/etc/passwd"]),
        ("@./a.py", ["a.py"]),
        ("@.env or @.prettierrc.", ["?.env", "?.prettierrc"]),
        ("@App.svelte, @n.ipynb: @app.route", ["?App.svelte", "?n.ipynb"]),
        ("@https://docs.example.com/api", ["?https://docs.example.com/api"]),
        ("import x from '@types/node'", ["?types/node"]),
        # No shorter name takes the place of a longer one.
        ("@src/(auth)/nothing.tsx", ["?src/(auth)/nothing.tsx"]),
        ("@src/(nothing)/page.tsx", ["?src/(nothing)/page.tsx"]),
        ("(@app/[nothing]/x)", ["?app/[nothing]/x"]),
        ("@src(auth)/page.tsx", ["?src(auth)/page.tsx"]),
        ("@page(2).tsx", ["?page(2).tsx"]),
        ("@src/*.py @src/**", ["?src/*.py", "?src/*"]),
        ("@a.py.bak @a.pyc", ["?a.py.bak", "?a.pyc"]),
        ("@a.py::test @a.py:3,5", ["?a.py::test", "?a.py:3,5"]),
        ("@没有.py，看看", ["?没有.py"]),
        ('@"no such file"', ["?no such file"]),
    ],
)
def test_a_mention_means_the_longest_name_that_exists(
    root: Path, line: str, expected: list[str]
) -> None:
    assert read(root, line) == expected


@each_row(
    "text",
    [
        "mail me@a.py, or <me@a.py>, or größe@a.py",
        "git@github.com:a.py https://x.org/@a.py pkg@1.2.3",
        "@ a @ b @@ @@ -1,3 +1,4 @@",
        "HEAD@{1} @{u} @~1 @^",
        "thanks @someone! @property",
        "@pytest.fixture",
        '@app.get("/users")',
        "@dataclass(frozen=True)",
        '@""',
        # The project has folders with these names.
        "@media (max-width: 30px) {\n  a { b: c }\n}",
        "  @media print;",
        "@-webkit-keyframes x {",
        "@cache\ndef f(x):\n    pass",
        "@cache\n@property\nasync def f(x):\n    pass",
        "@pytest.mark.parametrize\ndef test(x):",
        "  @jax.jit\n  @nn.to\n  def f(x):",
        "@cache\npublic final String name() {",
        "@cache\nexport class Page {",
        '{"@context": "x", "@types/node": "^1"}',
        "+@cache",
    ],
)
def test_other_text_is_no_mention(root: Path, text: str) -> None:
    assert read(root, text) == []


@each_row("text", ["@media and @cache", "@cache\nlet me know", "@src\n@cache\ncompare"])
def test_a_bare_folder_is_a_mention_in_a_sentence(root: Path, text: str) -> None:
    assert len(read(root, text)) == text.count("@")


@each_row("forms", [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
def test_a_name_is_found_in_each_normal_form(
    tmp_path: Path, forms: tuple[str, str]
) -> None:
    on_disk, typed = (form_of(form)("größe (ü).txt") for form in forms)
    write_file(tmp_path, on_disk)
    assert read(tmp_path, f"see @{typed}, please") == [on_disk]
    assert read(tmp_path, f'see @"{typed}":2') == [f"{on_disk}:2-2"]


def form_of(form: str) -> Callable[[str], str]:
    return lambda text: unicodedata.normalize(form, text)  # type: ignore[arg-type]


@each_row(
    ("word", "name"),
    [
        ("@src/app.py", "src/app.py"),
        ("@a.py:3", "a.py"),
        ("@nothing.py", "nothing.py"),
        ("src/app.py", "src/app.py"),
        ("@someone", "@someone"),
    ],
)
def test_a_command_takes_a_mention_for_a_path(root: Path, word: str, name: str) -> None:
    assert mentioned_name(root, word) == name


@each_row(
    ("text", "start", "name"),
    [
        ("see @", 4, ""),
        ("see @src/(au", 4, "src/(au"),
        ("(@src/a", 1, "src/a"),
        ('see @"my no', 4, "my no"),
        ("see @“my no", 4, "my no"),
        ("看@报", 1, "报"),
        ("@a.py and @b", 10, "b"),
        ("@a.py\n@b", 6, "b"),
    ],
)
def test_the_open_mention_is_the_last_one(text: str, start: int, name: str) -> None:
    mention = find_open_mention(text)
    assert mention is not None
    assert (mention.start, mention.name) == (start, name)


@each_row("text", ["", "see", "me@src", "@a.py ", '@"my notes.md"', "@a\n"])
def test_no_mention_is_open_without_its_sign_or_after_its_end(text: str) -> None:
    assert find_open_mention(text) is None


SIGNS = st.sampled_from(
    [*"ab .:#L35-'\"`([{)]},;!?*@~\\…，（）“”éßK报", "e\u0301", "3-5"]
)
NAMES = st.lists(SIGNS, min_size=1, max_size=8).map("".join)


@given(
    path=st.lists(NAMES, min_size=1, max_size=2).map("/".join),
    others=st.lists(NAMES, max_size=3),
    following=st.sampled_from(["", ".", ", see", "\nnext", "? (x)"]),
)
@example(path="a.py:3", others=["a.py"], following="")
@example(path='"a" b"', others=['"a'], following="")
@example(path="~a", others=[], following=".")
@example(path="a: (b", others=["a"], following="? (x)")
def test_completion_writes_each_name_so_that_it_is_read_back(
    path: str, others: list[str], following: str
) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name in (path, *others):
            with suppress(OSError):
                write_file(root, name)
        assume((root / path).is_file())
        word = write_mention(path)
        index = files_to_mention(root)
        index.build()
        offered = [each.line for each in complete_mention(index, "see @")]
        if word is None:
            # Separators of Windows, and blanks at an end, cannot be in any path.
            assert "\\" in path or path != path.strip()
            return
        text = f"see {word}{following}"
        assume(not any(other != path and other in text for other in others))
        mentions = find_mentions(root, text)
        assert [(str(each.path), each.lines) for each in mentions[:1]] == [(path, None)]
        assert f"see {word}" in offered or "/" in path or path.startswith(".")


def test_a_long_paste_is_read_quickly(root: Path) -> None:
    lines = ["@cached", "x = '@scope/part'", "y @ z", "@报告没有，" * 10, '@"x" ' * 40]
    text = "\n".join(lines * 500) + "@src/x " * 5_000 + "@a.py," * 500
    begun = time.process_time()
    find_mentions(root, text)
    find_open_mention(text)
    assert time.process_time() - begun < 10
