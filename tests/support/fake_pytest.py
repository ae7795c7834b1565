"""A small pytest for the projects of tests, executed by `FakePrograms`.

It runs plain test functions, with `skip`, `skipif`, `xfail` and `parametrize`, and
writes the report for `--junitxml`. It supports no fixtures, no conftest and no settings
but `pythonpath`: a test that needs more is a story with the real pytest.
"""

import inspect
import sys
import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from xml.sax.saxutils import escape, quoteattr

import pytest

_SETTINGS = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "conftest.py")
_PLAIN = ("-q", "-v", "-x", "--continue-on-collection-errors", "--maxfail=0")
_USAGE_ERROR = 4


class NeedsProcess(AssertionError):
    """A command of a test, or its project, needs a real program."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Mark the test `story`, or change what it runs: {what}")


class _Case:
    """The result of one test, or of a file that could not be collected."""

    def __init__(self, file: str, names: Sequence[str]) -> None:
        self.file = file
        self.names = tuple(names)
        self.result = "passed"
        self.text = ""

    @property
    def id(self) -> str:
        return "::".join((self.file, *self.names))


def run_suite(words: Sequence[str], root: Path) -> int:
    """Run the requested tests. Return the exit code."""
    report, places = None, list[str]()
    rest = iter(words)
    for word in rest:
        if word == "--no-such-option":
            sys.stderr.write(f"ERROR: unrecognized arguments: {word}\n")
            return _USAGE_ERROR
        if word.startswith("--junitxml="):
            report = Path(word.partition("=")[2])
        elif word == "-o":
            next(rest)
        elif not word.startswith("-"):
            places.append(word)
        elif word not in _PLAIN:
            raise NeedsProcess(f"the option {word}")
    sys.path[1:1] = _import_folders(root)
    cases: list[_Case] = []
    for file, wanted in _files(places or ["."], root):
        cases += _run_file(file, wanted, root)
    sys.stdout.write(_shown(cases))
    if report is not None:
        report.write_text(_as_xml(cases))
        sys.stdout.write(f"- generated xml file: {report} -\n")
    if not cases:
        return 5
    return int(any(case.result == "failed" for case in cases))


def _import_folders(root: Path) -> list[str]:
    for name in _SETTINGS:
        if (root / name).exists() or (root / "tests" / name).exists():
            raise NeedsProcess(name)
    try:
        text = (root / "pyproject.toml").read_text()
    except FileNotFoundError:
        return []
    tool = tomllib.loads(text).get("tool", {}).get("pytest", {})
    options = tool.get("ini_options", {})
    if options.keys() - {"pythonpath"}:
        raise NeedsProcess(", ".join(options))
    return [str(root / folder) for folder in options.get("pythonpath", ())]


def _files(places: Sequence[str], root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files with tests, with the name of the requested test."""
    for place in places:
        name, _, wanted = place.partition("::")
        if (root / name).is_file():
            yield root / name, wanted
            continue
        found = (*(root / name).rglob("test_*.py"), *(root / name).rglob("*_test.py"))
        for file in sorted(found):
            if not any(part.startswith(".") for part in file.relative_to(root).parts):
                yield file, ""


def _run_file(file: Path, wanted: str, root: Path) -> list[_Case]:
    shown = file.relative_to(root).as_posix()
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    whole = _Case(shown, ())
    sys.path.insert(0, str(file.parent))
    sys.modules[file.stem] = module
    try:
        code = compile(file.read_text(), str(file), "exec", dont_inherit=True)
        exec(code, module.__dict__)
        return [
            case
            for case in _cases(module, shown)
            if not wanted or case.names[0].partition("[")[0] == wanted
        ]
    except NeedsProcess:
        raise
    except pytest.skip.Exception:
        whole.result = "skipped"
    except Exception:  # noqa: BLE001 the code of a project may raise anything
        whole.result, whole.text = "failed", traceback.format_exc()
    finally:
        sys.path.remove(str(file.parent))
        del sys.modules[file.stem]
        module.__dict__.clear()
    return [whole]


def _cases(module: ModuleType, file: str) -> Iterator[_Case]:
    for name, found in list(vars(module).items()):
        if inspect.isclass(found) and name.startswith("Test"):
            raise NeedsProcess(f"the class {name}")
        if name.startswith("test") and inspect.isfunction(found):
            marks = {mark.name: mark for mark in getattr(found, "pytestmark", ())}
            rows = _rows(marks)
            for row, arguments in rows.items():
                case = _Case(file, [f"{name}[{row}]" if row else name])
                expected = inspect.signature(found).parameters.keys()
                if expected != arguments.keys():
                    raise NeedsProcess(f"the fixtures of {name}")
                _run(case, found, arguments, marks)
                yield case


def _rows(marks: Mapping[str, pytest.Mark]) -> dict[str, dict[str, object]]:
    """Return the arguments of each case, by the text between its brackets."""
    if "parametrize" not in marks:
        return {"": {}}
    words, values = marks["parametrize"].args
    names = [word.strip() for word in words.split(",")]
    rows = dict[str, dict[str, object]]()
    for value in values:
        row = value if len(names) > 1 else (value,)
        rows["-".join(map(str, row))] = dict(zip(names, row, strict=True))
    return rows


def _run(
    case: _Case,
    function: object,
    arguments: Mapping[str, object],
    marks: Mapping[str, pytest.Mark],
) -> None:
    assert callable(function)
    if "skip" in marks or ("skipif" in marks and marks["skipif"].args[0]):
        case.result = "skipped"
        return
    try:
        function(**arguments)
    except pytest.skip.Exception:
        case.result = "skipped"
    except Exception:  # noqa: BLE001 the code of a project may raise anything
        case.result, case.text = "failed", traceback.format_exc()
    if "xfail" in marks and case.result == "failed":
        case.result = "skipped"


def _shown(cases: Sequence[_Case]) -> str:
    """Return the output in pytest's format."""
    failed = [case for case in cases if case.result == "failed"]
    lines = [f"collected {len(cases)} items", ""]
    if failed:
        lines.append("FAILURES".center(60, "="))
        lines += [f"____ {case.id} ____\n{case.text}" for case in failed]
        lines.append(" short test summary info ".center(60, "="))
        lines += [f"FAILED {case.id}" for case in failed]
    counts = [
        f"{count} {result}"
        for result in ("failed", "passed", "skipped")
        if (count := sum(case.result == result for case in cases))
    ]
    summary = ", ".join(counts) or "no tests ran"
    lines.append(f" {summary} in 0.01s ".center(60, "="))
    return "\n".join([*lines, ""])


def _as_xml(cases: Sequence[_Case]) -> str:
    lines = ["<testsuites><testsuite>"]
    for case in cases:
        module = case.file.removesuffix(".py").replace("/", ".")
        dotted, name = (module, case.names[0]) if case.names else ("", module)
        lines.append(
            f"<testcase classname={quoteattr(dotted)} name={quoteattr(name)}"
            f" file={quoteattr(case.file)}>"
        )
        if case.result == "failed":
            lines.append(f"<failure>{escape(case.text)}</failure>")
        elif case.result == "skipped":
            lines.append("<skipped/>")
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite></testsuites>\n"])
