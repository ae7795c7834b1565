"""`cdd doctor`: what is set up and what is missing, each with what to do about it."""

import asyncio
import http.client
import json
import platform
import shutil
import urllib.request
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cdd_agent.config import PROJECT_FILE, Config, user_file
from cdd_agent.errors import ExitCode
from cdd_agent.execution.verify import detect, parse_command
from cdd_agent.version import VERSION
from cdd_agent.wiring import NO_MODEL_HINT, open_project
from cdd_agent.workspace.git import current_branch

_LOCAL_SERVERS = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
_PATIENCE = 1.0  # seconds


def examine(folder: Path) -> ExitCode:
    """Print the findings. `BAD_INPUT` when a run could not start: no model, or no key for it."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def say(good: bool | None, name: str, text: str) -> None:
        glyph, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("!", "yellow")}[good]
        console.print(Text.assemble((f"{glyph} ", style), (f"{name:<8}", "bold"), text))

    say(True, "cdd", f"{VERSION}, Python {platform.python_version()}, {platform.system()}")
    project = open_project(folder, {})
    root, config = project.root, project.config
    is_project = (root / PROJECT_FILE).is_file()
    say(
        is_project or None,
        "project",
        f"{root}{'' if is_project else ' (no .cdd/config.yaml; `cdd init` makes one)'}",
    )
    if user_file().is_file():
        say(True, "config", f"{user_file()} (yours, for all projects)")
    say(True, "tickets", f"{len(project.tickets.list())} in {config.tickets_dir}")
    branch = current_branch(root)
    git = shutil.which("git")
    say(
        bool(git and branch) or None,
        "git",
        f"branch {branch}" if branch else "not a repository" if git else "not found",
    )
    check = parse_command(config.test_command, root) if config.test_command else detect(root)
    say(
        bool(check) or None,
        "tests",
        f"`{check.shown}`" if check else "no test framework found; steps will be unverified",
    )
    with console.status("Looking at the model ..."):
        problem = _model_problem(config)
        servers = asyncio.run(_local_servers())
    say(
        problem is None,
        "model",
        problem or f"{config.model}{f' at {config.api_base}' if config.api_base else ''}",
    )
    fit = problem is None
    for name, (url, models) in servers.items():
        say(True, "server", f"{name} at {url}: {', '.join(models[:5]) or 'no models'}")
    if not fit:
        console.print(f"\n{NO_MODEL_HINT}")
    return ExitCode.DONE if fit else ExitCode.BAD_INPUT


def _model_problem(config: Config) -> str | None:
    """Why no model could be asked, or None."""
    if config.model is None:
        return "none is configured"
    if config.model.startswith("script:") or config.api_base:
        return None
    from cdd_agent.llm.litellm_adapter import missing_keys

    missing = missing_keys(config.model)
    return f"{config.model}: {' and '.join(missing)} not set in the environment" if missing else None


async def _local_servers() -> dict[str, tuple[str, list[str]]]:
    """Model servers that answer on their usual loopback ports: name → address and models."""
    urls = {name: f"http://127.0.0.1:{port}/v1" for name, port in _LOCAL_SERVERS.items()}
    answers = await asyncio.gather(*(asyncio.to_thread(_models, url) for url in urls.values()))
    return {
        name: (url, models) for (name, url), models in zip(urls.items(), answers, strict=True) if models is not None
    }


def _models(url: str) -> list[str] | None:
    """The models that an OpenAI-compatible server offers; None when nothing like it answers."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/models", timeout=_PATIENCE) as answer:
            entries = json.loads(answer.read(1_000_000))["data"]
        return [str(entry["id"]) for entry in entries]
    except (http.client.HTTPException, OSError, ValueError, KeyError, TypeError):
        return None  # nothing there, or something else
