"""`cdd doctor`: show what is set up and what is missing, and what to do about it."""

import asyncio
import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import httpx
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from cdd_agent.changes.formats.added import left_out as left_out_forms
from cdd_agent.changes.formats.all_forms import all_forms
from cdd_agent.cli.invocation import Invocation
from cdd_agent.commands.model_setup import how_to_set_up
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.paths import find_root
from cdd_agent.git.branch import current_branch
from cdd_agent.llm.added_adapters import added_adapters
from cdd_agent.llm.added_adapters import left_out as left_out_adapters
from cdd_agent.llm.direct.http_client import client_settings, parse_url
from cdd_agent.llm.litellm_adapter import expect_provider, missing_keys
from cdd_agent.llm.local_servers import (
    USUAL_PORTS,
    NoModelList,
    find_local_servers,
    models_at,
)
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import ModelError
from cdd_agent.llm.providers import Endpoint
from cdd_agent.network.certificates import certificate_sources
from cdd_agent.network.proxies import proxy_for
from cdd_agent.open_project import Decide, Project, accept_once, leave_out, open_project
from cdd_agent.process.policy import CommandRunner
from cdd_agent.settings.config import PROJECT_FILE, ROLES, Config, Models
from cdd_agent.settings.models import fallbacks_of, of_role
from cdd_agent.settings.reading import existing_user_file, user_file
from cdd_agent.settings.writing import as_lines
from cdd_agent.trust_words import leaves_out_model, left_out_in_words
from cdd_agent.verification.check import Check
from cdd_agent.verification.checks import project_checks
from cdd_agent.verification.collection import collect_tests
from cdd_agent.verification.detection import survey
from cdd_agent.verification.runners import all_runners
from cdd_agent.verification.runners.added import left_out as left_out_runners
from cdd_agent.version import VERSION
from cdd_agent.wiring import added_adapter, direct_endpoint, make_model

SERVER_TIMEOUT = 5.0
"""Seconds for the list of models of a remote server."""
_SHOWN_MODELS = 5
_UNTRUSTED_MODEL = (
    "the project sets one that you do not trust yet. Review it with `cdd trust`, accept"
    " it with `cdd trust --give`"
)
Finding = tuple[bool | None, str]
"""True if all is well, None if it may be, False if not; and a text about it."""


def doctor(invocation: Invocation) -> ExitCode:
    settings = {"model": invocation.model, "api_base": invocation.api_base}
    decide = accept_once if invocation.trust else leave_out
    return examine(invocation.project, settings, decide=decide)


def examine(
    folder: Path,
    flags: Mapping[str, Any],
    ports: Mapping[str, int] = USUAL_PORTS,
    decide: Decide = leave_out,
) -> ExitCode:
    """Print the findings. Return `BAD_INPUT` if a run could not start: bad settings, no
    model, no key for it.

    `flags` replace settings; `ports` are the ports at which model servers of this
    computer are sought.
    """
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)

    def say(good: bool | None, name: str, text: str) -> None:
        glyph, style = {
            True: ("✓", "green"),
            False: ("✗", "red"),
            None: ("!", "yellow"),
        }[good]
        console.print(
            Text.assemble((f"{glyph} ", style), (f"{name:<8} ", "bold"), text)
        )

    say(
        True,
        "cdd",
        f"{VERSION}, Python {platform.python_version()}, {platform.system()}",
    )
    if other := _version_of_other_program():
        say(
            None,
            "package",
            (
                f"cdd-agent {other} is installed, too, and shares its files with"
                " cdd-shell. Run `pip uninstall cdd-agent`, which removes these files,"
                " then install cdd-shell again."
            ),
        )
    root = find_root(folder)
    is_project = (root / PROJECT_FILE).is_file()
    say(
        is_project or None,
        "project",
        f"{root}{'' if is_project else ' (not set up yet; run `cdd init`)'}",
    )
    branch, git = current_branch(root), shutil.which("git")
    if git is None:
        say(False, "git", "not found. Install git: steps need it for checkpoints")
    else:
        say(
            bool(branch) or None,
            "git",
            (
                f"branch {branch}"
                if branch
                else "not a repository; checkpoints go into .cdd"
            ),
        )
    try:
        project = open_project(folder, flags, decide=decide)
    except BadInput as error:
        say(False, "config", error.message)
        return ExitCode.BAD_INPUT
    if file := existing_user_file():
        say(True, "config", f"{file} (your settings for all projects)")
    elif user_file() is None:
        say(
            None,
            "home",
            "no home folder, so no settings for all projects",
        )
    _tell_trust(project, say)
    tickets = project.tickets.list()
    say(
        bool(tickets) or None,
        "tickets",
        (
            f"{len(tickets)} in {project.config.tickets_dir}"
            if tickets
            else "none yet (cdd new TYPE NAME)"
        ),
    )
    mode = project.config.commands.mode
    allow = ", ".join(project.config.commands.allow)
    modes = {
        "safe": "only programs on the list run",
        "ask": "you are asked about other programs",
        "unsafe": "every command runs, in a real shell",
    }
    say(
        mode == "safe" or None,
        "commands",
        f"{mode}: {modes[mode]}{f'; also allowed: {allow}' if allow else ''}",
    )
    all_forms()
    for form, problem in left_out_forms.items():
        say(None, "replies", f"the reply form {form} is not used: {problem}")
    added_adapters()
    fit = _tests(project, say) and git is not None
    with console.status("Checking the model …"):
        servers = asyncio.run(find_local_servers(ports))
        configs = {"model": project.config, **_others(project.config)}
        findings = {
            name: _asking(config, project.root) for name, config in configs.items()
        }
    has_model = project.config.model is not None
    is_untrusted = not has_model and leaves_out_model(project.trust)
    if is_untrusted:
        findings["model"] = (False, _UNTRUSTED_MODEL)
    for adapter, problem in left_out_adapters.items():
        say(None, "model", f"the model adapter {adapter} is not used: {problem}")
    for name, (good, text) in findings.items():
        say(good, name, text)
    for server in servers:
        say(
            bool(server.models) or None,
            "server",
            f"{server.name} at {server.api_base}: {_listed(server.models)}",
        )
        if server.models:
            first = OfferedModel(server.models[0], server.name, server.api_base)
            # settings that choose it
            lines = as_lines({"model": first.model, "api_base": first.api_base})
            console.print(indent(lines, " " * 10))
    if not has_model and not is_untrusted:
        console.print(f"\n{how_to_set_up(in_shell=False)}")
    can_be_asked = all(good is not False for good, _ in findings.values())
    return ExitCode.DONE if fit and can_be_asked else ExitCode.BAD_INPUT


def _tell_trust(project: Project, say: Callable[[bool | None, str, str], None]) -> None:
    """Show how many of the project's settings need trust, or which are not used."""
    trust = project.trust
    if trust.left_out:
        say(None, "trust", f"{left_out_in_words(trust)}. Review them with `cdd trust`")
    elif trust.settings:
        many = len(trust.settings)
        text = f"{many} of the project's settings need it and have it (`cdd trust`)"
        say(True, "trust", text)
    else:
        say(True, "trust", "no setting of the project needs it")


def _version_of_other_program() -> str | None:
    """Return the version of the installed `cdd-agent`, or None.

    It is another program, or cdd itself from before it was renamed. Both have the same
    import package as `cdd-shell`.
    """
    try:
        return importlib.metadata.version("cdd-agent")
    except importlib.metadata.PackageNotFoundError:
        return None


def _tests(project: Project, say: Callable[[bool | None, str, str], None]) -> bool:
    """Show how steps are checked, and why. Return False if a command cannot run."""
    all_runners()
    for name, problem in left_out_runners.items():
        say(None, "tests", f"the test runner {name} is not used: {problem}")
    commands = CommandRunner(project.root, project.config.commands)
    test_command = project.config.test_command
    try:
        if test_command:
            (check,) = project_checks(test_command, commands)
            return _report_check(check, "set by `test_command`", commands, say)
        known = survey(project.root)
    except BadInput as error:
        say(False, "tests", error.message)
        return False
    can_run = True
    for found in known.runs:
        is_good = _report_check(found.check, found.reason, commands, say)
        can_run = can_run and is_good
    for note in known.notes:
        say(None, "tests", note)
    for tool in known.worth_naming:
        words = f"{tool.name} is recognised ({tool.file})"
        say(None, "tests", f"{words}. To use it, set `test_command: {tool.command}`")
    if not known.runs:
        words = "no runner that cdd knows" if not known.worth_naming else "none runs"
        say(None, "tests", f"{words}; steps will be unverified")
    return can_run


def _report_check(
    check: Check,
    reason: str,
    commands: CommandRunner,
    say: Callable[[bool | None, str, str], None],
) -> bool:
    """Show a check, where it comes from, and what it would run. Return False if its
    program is missing.
    """
    program = check.argv[0]
    if shutil.which(program) is None and not (commands.root / program).is_file():
        say(False, "tests", f"`{check.shown}`: {program} was not found")
        return False
    words = f"`{check.shown}`, {reason}"
    collection = asyncio.run(collect_tests(check, commands))
    if collection is None:
        say(True, "tests", words)
        return True
    words = f"{words}; {_describe_environment(program, commands.root)}"
    is_good = True if collection.tests and not collection.problem else None
    if collection.tests or not collection.problem:
        plural = "" if collection.tests == 1 else "s"
        words += f"; {collection.tests} test{plural} collected"
        words += f" in {collection.seconds:.1f} s"
    if collection.problem:
        words += f"; {collection.problem}"
    say(is_good, "tests", words)
    return True


def _describe_environment(program: str, root: Path) -> str:
    """Return where the program of a check is installed."""
    folder = Path(program).parent.parent
    if not Path(program).name.startswith("python"):
        return f"by {program}"
    if str(folder) == sys.prefix:
        return "in cdd's own Python, as no environment of the project has pytest"
    if folder.is_relative_to(root.absolute()):
        return f"in {folder.relative_to(root.absolute()).as_posix()}"
    return f"in {folder}"


def _others(config: Config) -> dict[str, Config]:
    """Return the settings of the fallbacks, and of the roles that differ from the
    general settings.
    """
    general = replace(config, models=Models())
    roles = {role: own for role in ROLES if (own := of_role(config, role)) != general}
    return {**roles} | {
        f"fallback {number}": other
        for number, other in enumerate(fallbacks_of(config), 1)
    }


def _asking(config: Config, root: Path) -> Finding:
    """Return how the model is called, or why it cannot be called."""
    model, api_base = config.model, config.api_base
    if model is None:
        return False, "none set up yet"
    try:
        if model.startswith(("script:", "replay:")):
            make_model(config, root, watched=False)
            return True, _asked(config)
        endpoint = direct_endpoint(config)
        if endpoint is None and added_adapter(config):
            make_model(config, root, watched=False)
            return True, _asked(config)
        if endpoint is None:
            expect_provider(model, api_base)
    except BadInput as error:
        return False, error.in_a_line
    if endpoint is not None:
        missing = [endpoint.key_variable] if endpoint.lacks_key else []
        # A server that needs a key is asked only for replies.
        api_base = None if endpoint.needs_key else endpoint.compatible_base
    else:
        missing = [] if api_base else missing_keys(model)
    if missing:
        return False, f"{model}: {' and '.join(missing)} not set in the environment"
    if endpoint is not None and (problem := _network_problem(endpoint)):
        return False, f"{model}: {problem}"
    if not api_base:
        return True, _asked(config)
    try:
        models = asyncio.run(
            models_at(api_base, endpoint.key if endpoint else None, SERVER_TIMEOUT)
        )
    except NoModelList as error:
        words = f"{_asked(config)}; could not check whether it has the model: {error}"
        if error.is_refusal and endpoint is not None:
            words = f"{words}. {endpoint.key_hint}"
        return None, words
    except ModelError as error:
        return False, f"{model}: {error.in_a_line}"
    if endpoint and not {endpoint.model, f"{endpoint.model}:latest"} & set(models):
        return (
            None,
            f"{_asked(config)}; the model is not in its list: {_listed(models)}",
        )
    return True, _asked(config)


def _network_problem(endpoint: Endpoint) -> str:
    """Return why environment variables stop all calls; empty if they do not."""
    if endpoint.key_problem:
        return f"{endpoint.key_variable} {endpoint.key_problem}"
    try:
        client_settings(parse_url(endpoint.base))
    except (ModelError, httpx.InvalidURL) as error:
        return error.in_a_line if isinstance(error, ModelError) else str(error)
    return ""


def _network_notes(endpoint: Endpoint) -> list[str]:
    """Return how the environment changes calls."""
    notes = []
    url = parse_url(endpoint.base)
    if proxy := proxy_for(url):
        notes.append(f"through the proxy {proxy}")
    if url.scheme == "https":
        notes += [f"trusts {source}" for source in certificate_sources()]
    if endpoint.removed_from_key:
        removed = ", ".join(endpoint.removed_from_key)
        notes.append(f"removed around {endpoint.key_variable}: {removed}")
    return notes


def _listed(models: tuple[str, ...]) -> str:
    more = len(models) - _SHOWN_MODELS
    return (", ".join(models[:_SHOWN_MODELS]) or "it has no model yet") + (
        f", and {more} more" if more > 0 else ""
    )


def _asked(config: Config) -> str:
    """Return the model and how it is called."""
    assert config.model is not None
    settings = {
        "effort": config.effort,
        "temperature": config.temperature,
        "max_output_tokens": config.max_output_tokens,
        "request": ", ".join([*config.request.body, *config.request.headers]) or None,
    }
    how = "".join(
        f"; {name} {value}" for name, value in settings.items() if value is not None
    )
    if config.model.startswith(("script:", "replay:")):
        return config.model
    if endpoint := direct_endpoint(config):
        how += "".join(f"; {note}" for note in _network_notes(endpoint))
        return f"{config.model} at {endpoint.base}, asked directly{how}"
    if adapter := added_adapter(config):
        return f"{config.model}, asked by the model adapter {adapter.name}{how}"
    return (
        f"{config.model}{f' at {config.api_base}' if config.api_base else ''}, asked"
        f" through litellm{how}"
    )
