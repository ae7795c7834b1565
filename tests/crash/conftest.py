"""How many points of the kill matrix are tried."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-kill-points",
        action="store_true",
        help=(
            "kill a run at every one of its points, not at a sample (give the folder"
            " tests/crash too)"
        ),
    )
