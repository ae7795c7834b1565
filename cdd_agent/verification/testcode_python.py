"""The tests in a Python file, as its parser has them: functions `test…`, in classes for
tests or not, and what else has assertions. Code that is never reached does not count.
"""

import ast
import builtins
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from cdd_agent.verification.testcode import Declared, Skipped

CHECKS = re.compile(
    r"assert|expect|raises|warns|fail|verify|check|should|compare|validat|match",
    re.IGNORECASE,
)
"""Names of calls that may well be assertions."""
HARMLESS = frozenset(name for name in dir(builtins) if name[0].islower())
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NO_STATEMENTS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
)
_Statements = Sequence[ast.stmt]


class Unparsable(Exception):
    """The text is not Python, or not that of this interpreter."""


def read_python(text: str) -> tuple[Declared, ...]:
    """The tests and helpers in a file. Raises `Unparsable`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
        found = list(_of(body, "", _skip_of_all(body)).values())
        own = [node for node in _reached(body) if not isinstance(node, _NO_STATEMENTS)]
        if not any(test.is_test for test in found) and _checks(own):
            whole = _as_declared("", own, Skipped.NO)
            found.append(replace(whole, lines=tuple(ast.unparse(node) for node in own)))
        return tuple(found)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unparsable from error


def _of(body: _Statements, place: str, skipped: Skipped) -> dict[str, Declared]:
    """The tests and helpers that are left at the end: a later one of the same name
    replaces an earlier one.
    """
    found: dict[str, Declared] = {}
    for node in _reached(body):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                test = _function(node, f"{place}{name}", skipped)
                found[test.name] = replace(test, is_test=name.startswith("test"))
            case ast.ClassDef(name=name):
                _forget(found, f"{place}{name}")
                inside = max(
                    skipped, _skip_by(node.decorator_list), _skip_of_all(node.body)
                )
                methods = _of(node.body, f"{place}{name}::", inside)
                is_looked_at = name.startswith("Test") or any(
                    ast.unparse(base) != "object" for base in node.bases
                )
                found |= {
                    key: replace(test, is_test=test.is_test and is_looked_at)
                    for key, test in methods.items()
                }
            case ast.Delete(targets=targets) | ast.Assign(targets=targets):
                for target in targets:
                    _forget(found, f"{place}{ast.unparse(target)}")
    return found


def _forget(found: dict[str, Declared], name: str) -> None:
    for key in [key for key in found if key == name or key.startswith(f"{name}::")]:
        del found[key]


def _reached(body: _Statements) -> Iterator[ast.stmt]:
    """The statements of a block and of the blocks in it, but for what can never run."""
    for node in body:
        match node:
            case ast.If(test=ast.Constant(value=value), body=inner, orelse=other):
                yield from _reached(inner if value else other)
            case ast.If(body=inner, orelse=other):
                yield from _reached((*inner, *other))
            case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=final):
                yield from _reached(
                    (
                        *inner,
                        *(node for each in handlers for node in each.body),
                        *other,
                        *final,
                    )
                )
            case ast.With(body=inner):
                yield from _reached(inner)
            case _:
                yield node


def _function(node: _Function, name: str, skipped: Skipped) -> Declared:
    parameters = [mark for mark in node.decorator_list if _last(mark) == "parametrize"]
    marks = [mark for mark in node.decorator_list if mark not in parameters]
    skips = max(skipped, _skip_by(marks), _skip_within(node.body))
    others = [mark for mark in marks if not _skip_by([mark])]
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    arguments = [argument for argument in every if argument.arg not in ("self", "cls")]
    test = _as_declared(
        name, _live(node.body), skips, [*arguments, *others], parameters
    )
    return replace(test, cases=_cases(parameters))


def _as_declared(
    name: str,
    body: _Statements,
    skipped: Skipped,
    around: Sequence[ast.AST] = (),
    parameters: Sequence[ast.expr] = (),
) -> Declared:
    whole = [*around, *parameters, *body]
    told = [*body, *(part for mark in parameters for part in _given(mark)[1:])]
    calls = frozenset(
        _last(node)
        for part in told
        for node in ast.walk(part)
        if isinstance(node, ast.Call)
    )
    about = {call for call in calls if not CHECKS.search(call) and call not in HARMLESS}
    return Declared(
        name,
        body="\n".join(ast.dump(node) for node in whole),
        shape="\n".join(
            _NAMES.sub(r"\1", ast.dump(node)) for node in (*parameters, *body)
        ),
        words=frozenset({*about, *_values(told)}),
        calls=calls,
        checks=_checks(body),
        is_empty=all(_does_nothing(node) for node in body),
        skipped=skipped,
    )


_NAMES = re.compile(r"\b(id|attr|arg|name)='[^']*'")


def _live(body: _Statements) -> list[ast.stmt]:
    """A function's own statements until it returns, without what only stands there: a
    docstring, a dead branch.
    """
    live: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            live += _live(node.body if node.test.value else node.orelse)
        elif isinstance(node, ast.Return):
            return [*live, node] if node.value else live
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            live.append(node)
    return live


def _does_nothing(node: ast.stmt) -> bool:
    match node:
        case (
            ast.Pass()
            | ast.Import()
            | ast.ImportFrom()
            | ast.Expr(value=ast.Constant())
            | ast.Return(value=None)
        ):
            return True
        case ast.Assert() | ast.Return(value=ast.Constant()):
            return not _checks([node])
        case _:
            return False


def _checks(nodes: Iterable[ast.AST]) -> int:
    """Count the assertions; in a loop over written values, once for each value."""
    count = 0
    for node in nodes:
        inside = _checks(ast.iter_child_nodes(node))
        if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple):
            inside *= max(1, len(node.iter.elts))
        count += _is_check(node) + inside
    return count


def _is_check(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return not _is_constant(test)
        case ast.Call(args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            return bool(CHECKS.search(_last(node))) and not (
                given and all(map(_is_constant, given))
            )
        case _:
            return False


def _is_constant(node: ast.expr) -> bool:
    """Whether nothing of the project is in it: `True`, `1 == 1`."""
    return not any(
        isinstance(part, ast.Name | ast.Call | ast.Attribute | ast.Await)
        for part in ast.walk(node)
    )


def _last(node: ast.AST) -> str:
    """The last name of a call or a decorator, without what it is taken from."""
    while isinstance(node, ast.Call):
        node = node.func
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _values(parts: Sequence[ast.AST]) -> set[str]:
    """The values that are written there, but for what is only said when an assertion
    fails.
    """
    said = {
        id(node.msg)
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Assert) and node.msg
    }
    return {
        repr(node.value)
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and id(node) not in said
    }


def _cases(parameters: Sequence[ast.expr]) -> tuple[str, ...] | None:
    """Each set of values that a test is run for; several lists of them are combined."""
    found: tuple[str, ...] = ()
    for mark in parameters:
        given = _given(mark)
        values = given[1] if len(given) > 1 else None
        if not isinstance(values, ast.List | ast.Tuple) or any(
            isinstance(one, ast.Starred) for one in values.elts
        ):
            return None
        sets = tuple(map(ast.dump, values.elts))
        found = (
            tuple(f"{one}\n{other}" for one in found for other in sets)
            if found
            else sets
        )
    return found


def _given(mark: ast.expr) -> list[ast.expr]:
    """Of a `parametrize`: the names, and what they stand for."""
    call = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
    return [
        *call.args,
        *(
            word.value
            for word in call.keywords
            if word.arg in ("argnames", "argvalues")
        ),
    ]


_SKIPS = re.compile(r"skip(if|unless|test)?|xfail|expectedfailure", re.IGNORECASE)


def _skip_by(marks: Sequence[ast.expr]) -> Skipped:
    """By decorators."""
    found = Skipped.NO
    for mark in marks:
        if _SKIPS.fullmatch(_last(mark)):
            arguments = mark.args if isinstance(mark, ast.Call) else []
            is_certain = all(
                isinstance(argument, ast.Constant) for argument in arguments[:1]
            )
            found = max(found, Skipped.YES if is_certain else Skipped.PERHAPS)
    return found


def _skip_of_all(body: _Statements) -> Skipped:
    """By what a module or class says of all that is in it."""
    found = Skipped.NO
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks = (
                    value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
                )
                found = max(found, _skip_by(marks))
            case ast.Assign(
                targets=[ast.Name(id="__test__")], value=ast.Constant(value=False)
            ):
                return Skipped.YES
            case ast.Expr() | ast.Raise() | ast.If() | ast.Assign():
                found = max(found, _skip_within([node]))
    return found


def _skip_within(body: _Statements) -> Skipped:
    """By what a block does while it runs: at once, or in a branch."""
    found = Skipped.NO
    for node in body:
        match node:
            case (
                ast.Expr(value=ast.Call() as call)
                | ast.Raise(exc=ast.expr() as call)
                | ast.Assign(value=call)
            ):
                if re.fullmatch(
                    r"skip|skipTest|SkipTest|xfail|importorskip", _last(call)
                ):
                    return Skipped.YES
            case ast.If(test=ast.Constant(value=value), body=inner, orelse=other):
                found = max(found, _skip_within(inner if value else other))
            case ast.If() | ast.Try():
                if any(
                    _last(part) in ("skip", "skipTest", "SkipTest", "xfail")
                    for part in ast.walk(node)
                ):
                    found = max(found, Skipped.PERHAPS)
    return found
