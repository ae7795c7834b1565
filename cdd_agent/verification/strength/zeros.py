"""Values that faulty functions return in languages with declared types."""

import re

from tree_sitter import Node

from cdd_agent.pattern import Pattern

_FUNCTION = Pattern(
    r"(function|method|func)(_item|_declaration|_definition|_literal)"
    r"|closure_expression|lambda_expression|anonymous_function\w*|lambda_literal"
    r"|arrow_function"
)
_TYPE_FIELDS = ("result", "return_type", "type")
_TYPES = ("user_type", "nullable_type")
_DECLARATORS = {"pointer_declarator": "*", "reference_declarator": "&"}
_ZEROS: dict[str, tuple[tuple[str, str], ...]] = {
    "c": (
        (r".*\*", "0"),
        (r"((un)?signed|int|long|short|char|s?size_t|u?int\d+_t|\s)+", "0"),
        (r"float|double", "0"),
        (r"_?[Bb]ool", "0"),
    ),
    "cpp": (
        (r"|auto|.*&", ""),
        (r".*", "{}"),
    ),
    "go": (
        (r"u?int\d*|byte|rune|float\d+|uintptr", "0"),
        (r"bool", "false"),
        (r"string", '""'),
        (r"error|any|interface\{\}|[*\[<].*|(map|chan|func)\b.*", "nil"),
    ),
    "java": (
        (r"int|long|short|byte|float|double", "0"),
        (r"boolean|Boolean", "false"),
        (r"String", '""'),
        (r"[A-Z].*|.*\[\]", "null"),
    ),
    "kotlin": (
        (r".*\?", "null"),
        (r"Int|Short|Byte", "0"),
        (r"Long", "0L"),
        (r"Double", "0.0"),
        (r"Boolean", "false"),
        (r"String", '""'),
        (r"List<.*>", "emptyList()"),
        (r"Map<.*>", "emptyMap()"),
    ),
    "php": (
        (r"", "null"),
        (r"\?.*", "null"),
        (r"int", "0"),
        (r"float", "0.0"),
        (r"bool", "false"),
        (r"string", '""'),
        (r"array|iterable", "[]"),
    ),
    "rust": (
        (r"[iu](8|16|32|64|128|size)", "0"),
        (r"f(32|64)", "0.0"),
        (r"bool", "false"),
        (r"&('\w+ )?str", '""'),
        (r"String", "String::new()"),
        (r"Vec<.*>", "Vec::new()"),
        (r"Option<.*>", "None"),
        (r"Result<\(\).*>", "Ok(())"),
    ),
}
"""By language: type patterns and zeros. The first match counts."""


def zero_of_returned(value: Node, language: str) -> str:
    """Return the zero of the enclosing function's declared type; empty if unknown."""
    function = value.parent
    while function is not None and not _FUNCTION.fullmatch(function.type):
        function = function.parent
    if function is None:
        return ""
    zeros = []
    for declared in _declared_types(function):
        zero = _zero(declared, language)
        if not zero:
            return ""
        zeros.append(zero)
    return ", ".join(zeros)


def _declared_types(function: Node) -> list[str]:
    """Return the function's result types; "" for none."""
    for name in _TYPE_FIELDS:
        declared = function.child_by_field_name(name)
        if declared is not None:
            break
    else:
        # unnamed in Kotlin's grammar
        for child in function.named_children:
            if child.type in _TYPES:
                return [_text(child)]
        return [""]
    if declared.type == "parameter_list":  # several results
        types = []
        for result in declared.named_children:
            inner = result.child_by_field_name("type")
            names = len(result.children_by_field_name("name")) or 1
            types += [_text(inner)] * names
        return types
    text = _text(declared)
    declarator = function.child_by_field_name("declarator")
    if declarator is not None:
        text += _DECLARATORS.get(declarator.type, "")
    return [text]


def _zero(declared: str, language: str) -> str:
    for pattern, zero in _ZEROS.get(language, ()):
        if re.fullmatch(pattern, declared, re.DOTALL):
            return zero
    return ""


def _text(node: Node | None) -> str:
    if node is None:
        return ""
    return (node.text or b"").decode("utf-8", errors="replace")
