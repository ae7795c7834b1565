"""The checks of a step: from the plan (`**Verify:**`), else the settings
(`test_command`), else the project's files.
"""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.paths import PathRefused, confine_folder
from cdd_agent.process.command_folder import split_folder
from cdd_agent.process.environments import environment_tools
from cdd_agent.process.policy import (
    CommandRefused,
    CommandRunner,
    JudgedCommand,
    needs_shell,
    split,
)
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Commands, runs_others
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.check import Check
from cdd_agent.verification.detection import detect, survey


def checks_for(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> tuple[Check, ...]:
    """Return the step's checks, in order; empty if there is nothing to run. Raises
    `BadInput` for the first unusable command.
    """
    if step.checks is not None:
        return tuple(_judge_line(line, test_command, commands) for line in step.checks)
    return project_checks(test_command, commands)


def read_checks(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> tuple[Check, ...]:
    """Return the same checks for a caller that does not run them. It is not checked
    whether a command could show hidden files.
    """
    if step.checks is not None:
        return tuple(_read_line(line, test_command, commands) for line in step.checks)
    return project_checks(test_command, commands)


def check_problems(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> list[BadInput]:
    """Return an error for each check in the plan that cannot run."""
    problems = []
    for line in step.checks or ():
        try:
            _read_line(line, test_command, commands)
        except BadInput as error:
            problems.append(error)
    return problems


def _judge_line(line: str, test_command: str | None, commands: CommandRunner) -> Check:
    """Judge a check of the plan like a command that a model asks for. The project's own
    command is trusted.
    """
    if line == test_command:
        return parse_command(line, commands.root, commands.settings)
    commands = _restrict(line, commands)
    judge = partial(commands.judge, also=partial(_is_for_tests, test_command, commands))
    check = _judge(line, judge, commands.root)
    if not check.command.objection or commands.trusted_checks.accepts(line):
        return check
    return replace(check, command=replace(check.command, is_always_asked=True))


def _read_line(line: str, test_command: str | None, commands: CommandRunner) -> Check:
    if line == test_command:
        return parse_command(line, commands.root, commands.settings)
    commands = _restrict(line, commands)
    read = partial(commands.read, also=partial(_is_for_tests, test_command, commands))
    return _judge(line, read, commands.root)


def _restrict(line: str, commands: CommandRunner) -> CommandRunner:
    """Unsafe mode lets the user's own plans run anything. For a plan that came with a
    clone, the user is asked.
    """
    settings = commands.settings
    if settings.mode == "unsafe" and not commands.trusted_checks.accepts(line):
        return replace(commands, settings=replace(settings, mode="ask"))
    return commands


def _is_for_tests(
    test_command: str | None, commands: CommandRunner, program: str
) -> bool:
    """True for a program of the project's tests, which a check may use, too."""
    return program in test_programs(test_command, commands.root)


def project_checks(
    test_command: str | None, commands: CommandRunner
) -> tuple[Check, ...]:
    """Return the checks that run the project's tests; empty if there is nothing to run.
    Raises `BadInput`.
    """
    if test_command:
        return (parse_command(test_command, commands.root, commands.settings),)
    return detect(commands.root)


def unused_runners(test_command: str | None, root: Path) -> tuple[str, ...]:
    """Return the project's test runners that no check starts, each with the reason.
    Raises `BadInput`.
    """
    return () if test_command else survey(root).notes


def parse_command(command: str, root: Path, settings: Commands | None = None) -> Check:
    """Judge the user's test command: any program, but a shell only in unsafe mode.
    Raises `BadInput`.
    """
    commands = CommandRunner(root, settings or Commands())
    return _judge(command, partial(commands.judge, trusted=True), root)


def _judge(text: str, judge: Callable[..., JudgedCommand], root: Path) -> Check:
    """A check may begin with `cd FOLDER &&` inside the project."""
    folder, plain = split_folder(text)
    try:
        if not folder:
            return Check(judge(text))
        inside = confine_folder(root, folder)
        command = judge(plain, root / inside)
        return Check(replace(command, text=text), folder=str(inside))
    except (CommandRefused, PathRefused) as refusal:
        hint = refusal.hint or "Write `none` if the step needs no check."
        raise BadInput(
            f"The check `{text}` cannot be run: {refusal.message}",
            hint=hint,
            refusal=Refusal.CHECK_UNUSABLE,
        ) from refusal


def runs_usual_program(text: str, allowed: Collection[str], root: Path) -> bool:
    """True if a command starts, without a shell, an allowed program or a detected test
    program.
    """
    try:
        words = split(split_folder(text)[1])
    except CommandRefused:
        return False
    if words.expands or needs_shell(words):
        return False
    program = words.argv[0]
    return program in allowed or program in test_programs(None, root)


def test_programs(test_command: str | None, root: Path) -> frozenset[str]:
    """Return the programs that run the project's tests, except shells and other
    programs that run anything.
    """
    try:
        if test_command:
            texts = [parse_command(test_command, root).shown]
        else:
            found_runs = survey(root)
            texts = [run.check.shown for run in found_runs.runs]
            texts += [tool.command for tool in found_runs.requested]
            texts += environment_tools(root)
    except BadInput:  # reported by the steps that use it
        return frozenset()
    programs = [split(split_folder(text)[1]).argv[0] for text in texts]
    return frozenset(
        program for program in programs if not runs_others(Path(program).name)
    )
