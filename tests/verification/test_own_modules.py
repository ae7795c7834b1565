"""Which missing modules are those that the project makes itself."""

from pathlib import Path

from cdd_agent.verification.outcomes import StatementKind
from cdd_agent.verification.own_modules import find_own_modules
from cdd_agent.verification.statements import find_statements
from tests.support.tables import each_row

PYTHON = "E   ModuleNotFoundError: No module named '{}'"
NODE = "Error: Cannot find module '{}'"
RUBY = "LoadError: cannot load such file -- {}"
FILES = {
    "src/shop/__init__.py": "",
    "src/shop/prices.py": "",
    "tool.py": "",
    "tests/test_cart.py": "",
    "docs/guide/index.md": "",
    "packages/ui/package.json": '{"name": "@acme/ui"}',
    "packages/ui/button.ts": "",
    "lib/store/base.rb": "",
    ".venv/lib/left.py": "",
    "node_modules/axios/index.js": "",
}


def cause(text: str) -> str:
    """What a failed test states that its environment lacks."""
    statements = find_statements(1, text)
    (found,) = [one for one in statements if one.kind is StatementKind.ENVIRONMENT]
    return found.text


@each_row(
    ("text", "planned", "is_own"),
    [
        # a module of an existing package, and one that exists already
        (PYTHON.format("shop.cart"), [], True),
        (PYTHON.format("shop"), [], True),
        (PYTHON.format("tool"), [], True),
        # a module that a step makes
        (PYTHON.format("billing"), ["billing.py"], True),
        (PYTHON.format("billing"), ["src/billing/__init__.py"], True),
        (PYTHON.format("billing.tax"), ["app/billing/tax.py"], True),
        (RUBY.format("billing/tax"), ["lib/billing/tax.rb"], True),
        # a package of the workspace, and names that mean the sources
        (NODE.format("@acme/ui"), [], True),
        (NODE.format("@acme/ui/button"), [], True),
        (NODE.format("@/cart"), [], True),
        (NODE.format("~/cart"), [], True),
        (RUBY.format("store/cart"), [], True),
        # what only an environment has
        (PYTHON.format("requests"), [], False),
        (PYTHON.format("requests"), ["tests/test_requests.py"], False),
        (PYTHON.format("google.cloud"), ["src/shop/cloud.py"], False),
        (PYTHON.format("guide"), [], False),
        (PYTHON.format("left"), [], False),
        (NODE.format("axios"), ["src/http.ts"], False),
        (NODE.format("@acme/icons"), [], False),
        (RUBY.format("nokogiri"), [], False),
        ("E   ConnectionRefusedError: [Errno 111] Connection refused", [], False),
    ],
)
def test_a_module_of_the_project_or_of_its_plan_is_not_missing(
    tmp_path: Path, text: str, planned: list[str], is_own: bool
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = find_own_modules([cause(text)], tmp_path, planned)
    assert found == (frozenset([cause(text)]) if is_own else frozenset())
