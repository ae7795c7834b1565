"""`cdd serve`: the shell in a browser."""

import ipaddress
import socket
import sys
from pathlib import Path

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading
from cdd_agent.errors import BadInput, ExitCode


def serve(invocation: Invocation, *, host: str, port: int, opens_browser: bool) -> int:
    try:
        # late: textual-serve is optional
        from cdd_agent.cli.serving import ShellServer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in (
            "textual_serve",
            "aiohttp",
            "aiohttp_jinja2",
            "jinja2",
        ):
            raise
        raise BadInput(
            "`cdd serve` needs a library that is not installed",
            hint=(
                'Where cdd is installed: pip install "cdd-shell[serve]", or pipx inject'
                " cdd-shell textual-serve."
            ),
        ) from error
    root = open_for_reading(invocation, invocation.model_settings).root
    listening = _listening(host, port)
    server = ShellServer(
        _shell(invocation, root), host, listening, title=f"cdd · {root.name}"
    )
    sys.stderr.write(warning(listening.getsockname()[0]))
    sys.stdout.write(
        f"{server.address}\nPress Ctrl+C to stop the server and its shells.\n"
    )
    sys.stdout.flush()
    server.run(opens_browser=opens_browser)
    return ExitCode.DONE


def _shell(invocation: Invocation, root: Path) -> list[str]:
    """Return the command of each page's shell: this program with the same flags. `-P`:
    the current folder does not affect imports.
    """
    flags = []
    for name, value in invocation.model_settings.items():
        if value is not None:
            flags += [f"--{name.replace('_', '-')}", value]
    if invocation.trust:
        flags.append("--trust")
    if invocation.debug:
        flags.append("--debug")
    return [sys.executable, "-P", "-m", "cdd_agent", "-C", str(root), *flags]


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        raise BadInput(
            f"cdd cannot serve on {host}, port {port}:"
            f" {getattr(error, 'strerror', None) or error}",
            hint="--port 0 chooses a free port.",
        ) from error


def warning(address: str) -> str:
    """Return a warning about serving on this address; empty if only this computer can
    connect.
    """
    if ipaddress.ip_address(address).is_loopback:
        return ""
    return (
        "cdd: other computers can connect, and the connection is not encrypted. Anyone"
        " on the network can read the screen, the keys and the token.\nSafer: run"
        " `cdd serve` without --host, and on the other computer: ssh -L"
        " 8000:127.0.0.1:8000 HOST\n"
    )
