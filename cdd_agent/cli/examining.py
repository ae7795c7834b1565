"""`cdd doctor`: show the setup, and what to do about missing parts."""

import asyncio
import importlib.metadata
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
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
from cdd_agent.commands.added_commands import ADDED
from cdd_agent.commands.model_setup import how_to_set_up
from cdd_agent.commands.trust_words import leaves_out_model, left_out_in_words
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.files.paths import find_root
from cdd_agent.git.branch import current_branch
from cdd_agent.llm.added_adapters import added_adapters
from cdd_agent.llm.added_adapters import left_out as left_out_adapters
from cdd_agent.llm.direct.http_client import client_settings, parse_url
from cdd_agent.llm.litellm_adapter import expect_provider, missing_keys
from cdd_agent.llm.local_servers import (
    USUAL_PORTS,
    LocalServer,
    NoModelList,
    find_local_servers,
    models_at,
)
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import ModelError
from cdd_agent.llm.providers import Endpoint
from cdd_agent.network.certificates import certificate_sources
from cdd_agent.network.proxies import proxy_for
from cdd_agent.process.policy import CommandRunner
from cdd_agent.session.open_project import (
    Decide,
    Project,
    accept_once,
    leave_out,
    open_project,
)
from cdd_agent.settings.config import PROJECT_FILE, ROLES, Config, Models
from cdd_agent.settings.models import fallbacks_of, of_role
from cdd_agent.settings.reading import existing_user_file, user_file
from cdd_agent.settings.writing import as_lines
from cdd_agent.verification.check import Check
from cdd_agent.verification.checks import project_checks
from cdd_agent.verification.collection import collect_tests
from cdd_agent.verification.detection import survey
from cdd_agent.verification.runners import all_runners
from cdd_agent.verification.runners.added import left_out as left_out_runners
from cdd_agent.version import VERSION
from cdd_agent.wiring.models import added_adapter, direct_endpoint, make_model

SERVER_TIMEOUT = 5.0
"""Seconds to wait for a server's list of models."""
_SHOWN_MODELS = 5
_UNTRUSTED_MODEL = (
    "the project sets one that you do not trust yet. Review it with `cdd trust`, accept"
    " it with `cdd trust --give`"
)
_SLOW_IMPORT = 1.0
"""Seconds of an import that deserve a remark."""
_SIGNS = {True: ("✓", "green"), False: ("✗", "red"), None: ("!", "yellow")}
_COMMAND_MODES = {
    "safe": "only programs on the list run",
    "ask": "you are asked about other programs",
    "unsafe": "every command runs, in a real shell",
}
Finding = tuple[bool | None, str]
"""A result and a text. True: good; None: may be good; False: bad."""


def doctor(invocation: Invocation) -> ExitCode:
    settings = {"model": invocation.model, "api_base": invocation.api_base}
    decide = accept_once if invocation.trust else leave_out
    return examine(invocation.project, settings, decide=decide)


class _Report:
    def __init__(self) -> None:
        self.console = Console(
            highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    def add(self, good: bool | None, name: str, text: str) -> None:
        glyph, style = _SIGNS[good]
        line = Text.assemble((f"{glyph} ", style), (f"{name:<8} ", "bold"), text)
        self.console.print(line)


def examine(
    folder: Path,
    flags: Mapping[str, Any],
    ports: Mapping[str, int] = USUAL_PORTS,
    decide: Decide = leave_out,
) -> ExitCode:
    """Print the findings. Return `BAD_INPUT` if a run could not start.

    `flags` override settings. `ports` are where model servers on this computer are
    searched.
    """
    report = _Report()
    _report_program(report)
    has_git = _report_place(report, find_root(folder))
    try:
        project = open_project(folder, flags, decide=decide)
    except BadInput as error:
        report.add(False, "config", error.message)
        return ExitCode.BAD_INPUT
    _report_settings(report, project)
    _report_extensions(report)
    can_check = _report_tests(report, project)
    has_models = _report_models(report, project, ports)
    if has_git and can_check and has_models:
        return ExitCode.DONE
    return ExitCode.BAD_INPUT


def _report_program(report: _Report) -> None:
    python, system = platform.python_version(), platform.system()
    report.add(True, "cdd", f"{VERSION}, Python {python}, {system}")
    other = _version_of_other_program()
    if other:
        text = (
            f"cdd-agent {other} is installed, too, and shares its files with cdd-shell."
            " Run `pip uninstall cdd-agent`, which removes these files, then install"
            " cdd-shell again."
        )
        report.add(None, "package", text)


def _report_place(report: _Report, root: Path) -> bool:
    """Report the folder and git. False without git."""
    if (root / PROJECT_FILE).is_file():
        report.add(True, "project", str(root))
    else:
        report.add(None, "project", f"{root} (not set up yet; run `cdd init`)")
    if shutil.which("git") is None:
        text = "not found. Install git: steps need it for checkpoints"
        report.add(False, "git", text)
        return False
    branch = current_branch(root)
    if branch:
        report.add(True, "git", f"branch {branch}")
    else:
        report.add(None, "git", "not a repository; checkpoints go into .cdd")
    return True


def _report_settings(report: _Report, project: Project) -> None:
    if file := existing_user_file():
        report.add(True, "config", f"{file} (your settings for all projects)")
    elif user_file() is None:
        report.add(None, "home", "no home folder, so no settings for all projects")
    _report_trust(report, project)
    tickets = project.tickets.list()
    if tickets:
        text = f"{len(tickets)} in {project.config.tickets_dir}"
        report.add(True, "tickets", text)
    else:
        report.add(None, "tickets", "none yet (cdd new TYPE NAME)")
    commands = project.config.commands
    text = f"{commands.mode}: {_COMMAND_MODES[commands.mode]}"
    if commands.allow:
        text += f"; also allowed: {', '.join(commands.allow)}"
    report.add(commands.mode == "safe" or None, "commands", text)


def _report_trust(report: _Report, project: Project) -> None:
    trust = project.trust
    if trust.left_out:
        text = f"{left_out_in_words(trust)}. Review them with `cdd trust`"
        report.add(None, "trust", text)
    elif trust.settings:
        many = len(trust.settings)
        text = f"trusted settings of the project: {many} (`cdd trust` shows them)"
        report.add(True, "trust", text)
    else:
        report.add(True, "trust", "no setting of the project needs it")


def _report_extensions(report: _Report) -> None:
    all_forms()
    added_adapters()
    all_runners()
    for name, kind, problems in (
        ("replies", "reply form", left_out_forms),
        ("model", "model adapter", left_out_adapters),
        ("tests", "test runner", left_out_runners),
    ):
        for full_name, problem in problems.items():
            text = f"the {kind} {full_name} is not used: {problem}"
            report.add(None, name, text)
    ADDED.wait()
    for command in ADDED.loaded.values():
        full_name = ADDED.full_names[command.name]
        seconds = ADDED.extensions.seconds[full_name]
        text = f"/{full_name}: {command.summary}"
        if seconds > _SLOW_IMPORT:
            text += f" (takes {seconds:.1f} s to load)"
        report.add(True, "added", text)
    for full_name, problem in ADDED.extensions.left_out.items():
        text = f"the command {full_name} is not used: {problem}"
        report.add(None, "added", text)


def _report_models(report: _Report, project: Project, ports: Mapping[str, int]) -> bool:
    """Report the models, and the servers on this computer. False if a model cannot be
    called.
    """
    config = project.config
    with report.console.status("Checking the model …"):
        servers = asyncio.run(find_local_servers(ports))
        configs = {"model": config, **_others(config)}
        findings = {
            name: _asking(role_config, project.root)
            for name, role_config in configs.items()
        }
    is_untrusted = config.model is None and leaves_out_model(project.trust)
    if is_untrusted:
        findings["model"] = (False, _UNTRUSTED_MODEL)
    for name, (good, text) in findings.items():
        report.add(good, name, text)
    for server in servers:
        _report_server(report, server)
    if config.model is None and not is_untrusted:
        report.console.print(f"\n{how_to_set_up(in_shell=False)}")
    return all(good is not False for good, _ in findings.values())


def _report_server(report: _Report, server: LocalServer) -> None:
    text = f"{server.name} at {server.api_base}: {_list_models(server.models)}"
    report.add(bool(server.models) or None, "server", text)
    if server.models:
        first = OfferedModel(server.models[0], server.name, server.api_base)
        # The settings that choose it.
        lines = as_lines({"model": first.model, "api_base": first.api_base})
        report.console.print(indent(lines, " " * 10))


def _version_of_other_program() -> str | None:
    """Return the version of an installed `cdd-agent`, or None.

    It is a different program, or cdd from before its renaming. Both use the same import
    package as `cdd-shell`.
    """
    try:
        return importlib.metadata.version("cdd-agent")
    except importlib.metadata.PackageNotFoundError:
        return None


def _report_tests(report: _Report, project: Project) -> bool:
    """Report how steps are checked. False if a command cannot run."""
    commands = CommandRunner(project.root, project.config.commands)
    test_command = project.config.test_command
    try:
        if test_command:
            (check,) = project_checks(test_command, commands)
            return _report_check(report, check, "set by `test_command`", commands)
        survey_of_tests = survey(project.root)
    except BadInput as error:
        report.add(False, "tests", error.message)
        return False
    can_run = True
    for run in survey_of_tests.runs:
        is_good = _report_check(report, run.check, run.reason, commands)
        can_run = can_run and is_good
    for note in survey_of_tests.notes:
        report.add(None, "tests", note)
    for tool in survey_of_tests.worth_naming:
        text = (
            f"{tool.name} is recognised ({tool.file}). To use it, set `test_command:"
            f" {tool.command}`"
        )
        report.add(None, "tests", text)
    if not survey_of_tests.runs:
        reason = "no runner that cdd knows"
        if survey_of_tests.worth_naming:
            reason = "none runs"
        report.add(None, "tests", f"{reason}; steps will be unverified")
    return can_run


def _report_check(
    report: _Report, check: Check, reason: str, commands: CommandRunner
) -> bool:
    """Report a check, its source, and its tests. False if its program is missing."""
    program = check.argv[0]
    if shutil.which(program) is None and not (commands.root / program).is_file():
        report.add(False, "tests", f"`{check.shown}`: {program} was not found")
        return False
    text = f"`{check.shown}`, {reason}"
    collection = asyncio.run(collect_tests(check, commands))
    if collection is None:
        report.add(True, "tests", text)
        return True
    text += f"; {_describe_environment(program, commands.root)}"
    if collection.tests or not collection.problem:
        plural = "" if collection.tests == 1 else "s"
        text += f"; {collection.tests} test{plural} collected"
        text += f" in {collection.seconds:.1f} s"
    if collection.problem:
        text += f"; {collection.problem}"
    is_good = True if collection.tests and not collection.problem else None
    report.add(is_good, "tests", text)
    return True


def _describe_environment(program: str, root: Path) -> str:
    folder = Path(program).parent.parent
    if not Path(program).name.startswith("python"):
        return f"by {program}"
    if str(folder) == sys.prefix:
        return "in cdd's own Python, as no environment of the project has pytest"
    if folder.is_relative_to(root.absolute()):
        return f"in {folder.relative_to(root.absolute()).as_posix()}"
    return f"in {folder}"


def _others(config: Config) -> dict[str, Config]:
    general = replace(config, models=Models())
    roles = {
        role: role_config
        for role in ROLES
        if (role_config := of_role(config, role)) != general
    }
    return {**roles} | {
        f"fallback {number}": other
        for number, other in enumerate(fallbacks_of(config), 1)
    }


def _asking(config: Config, root: Path) -> Finding:
    """Return how the model is called, or why it cannot be called."""
    model = config.model
    if model is None:
        return False, "none set up yet"
    try:
        endpoint = direct_endpoint(config)
        is_script = model.startswith(("script:", "replay:"))
        if is_script or (endpoint is None and added_adapter(config)):
            make_model(config, root, watched=False)
            return True, _describe_model(config)
        if endpoint is None:
            expect_provider(model, config.api_base)
    except BadInput as error:
        return False, error.in_a_line
    if endpoint is None:
        return _asking_through_litellm(config)
    if endpoint.lacks_key:
        return False, _describe_missing_keys(config, [endpoint.key_variable])
    if problem := _network_problem(endpoint):
        return False, f"{model}: {problem}"
    # A server that needs a key is only asked for replies.
    api_base = None if endpoint.needs_key else endpoint.compatible_base
    if not api_base:
        return True, _describe_model(config)
    return _asking_server(config, endpoint, api_base)


def _asking_through_litellm(config: Config) -> Finding:
    assert config.model is not None
    if config.api_base:
        return _asking_server(config, None, config.api_base)
    missing = missing_keys(config.model)
    if missing:
        return False, _describe_missing_keys(config, missing)
    return True, _describe_model(config)


def _describe_missing_keys(config: Config, keys: Sequence[str]) -> str:
    return f"{config.model}: {' and '.join(keys)} not set in the environment"


def _asking_server(config: Config, endpoint: Endpoint | None, api_base: str) -> Finding:
    key = endpoint.key if endpoint else None
    try:
        models = asyncio.run(models_at(api_base, key, SERVER_TIMEOUT))
    except NoModelList as error:
        text = (
            f"{_describe_model(config)}; could not check whether it has the model:"
            f" {error}"
        )
        if error.is_refusal and endpoint is not None:
            text = f"{text}. {endpoint.key_hint}"
        return None, text
    except ModelError as error:
        return False, f"{config.model}: {error.in_a_line}"
    if endpoint and not {endpoint.model, f"{endpoint.model}:latest"} & set(models):
        text = (
            f"{_describe_model(config)}; the model is not in its list:"
            f" {_list_models(models)}"
        )
        return None, text
    return True, _describe_model(config)


def _network_problem(endpoint: Endpoint) -> str:
    """Return why environment variables break all calls; empty if they do not."""
    if endpoint.key_problem:
        return f"{endpoint.key_variable} {endpoint.key_problem}"
    try:
        client_settings(parse_url(endpoint.base))
    except (ModelError, httpx.InvalidURL) as error:
        return error.in_a_line if isinstance(error, ModelError) else str(error)
    return ""


def _network_notes(endpoint: Endpoint) -> list[str]:
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


def _list_models(models: tuple[str, ...]) -> str:
    if not models:
        return "it has no model yet"
    text = ", ".join(models[:_SHOWN_MODELS])
    more = len(models) - _SHOWN_MODELS
    return f"{text}, and {more} more" if more > 0 else text


def _describe_model(config: Config) -> str:
    assert config.model is not None
    if config.model.startswith(("script:", "replay:")):
        return config.model
    notes = [f"{name} {value}" for name, value in _call_settings(config).items()]
    if endpoint := direct_endpoint(config):
        notes += _network_notes(endpoint)
        way = f"{config.model} at {endpoint.base}, asked directly"
    elif adapter := added_adapter(config):
        way = f"{config.model}, asked by the model adapter {adapter.name}"
    else:
        place = f" at {config.api_base}" if config.api_base else ""
        way = f"{config.model}{place}, asked through litellm"
    return "; ".join([way, *notes])


def _call_settings(config: Config) -> dict[str, object]:
    settings = {
        "effort": config.effort,
        "temperature": config.temperature,
        "max_output_tokens": config.max_output_tokens,
        "request": ", ".join([*config.request.body, *config.request.headers]) or None,
    }
    return {name: value for name, value in settings.items() if value is not None}
