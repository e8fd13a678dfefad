"""Reads code: symbols and imports by tree-sitter, complexity by lizard. JSON in, JSON out."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

__all__: list[str] = []

# The package of each language, and the function in it.
_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "java": ("tree_sitter_java", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
}
_SCRIPT = {
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "class_declaration": "class",
    "method_definition": "method",
}
_TYPED = {
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "abstract_class_declaration": "class",
}
_CLASSES = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "record_declaration": "class",
    "struct_declaration": "struct",
    "method_declaration": "method",
    "constructor_declaration": "method",
    "trait_declaration": "trait",
}
_C = {"function_definition": "function", "struct_specifier": "struct", "enum_specifier": "enum"}
_SYMBOLS: Mapping[str, Mapping[str, str]] = {
    "python": {"function_definition": "function", "class_definition": "class"},
    "javascript": _SCRIPT,
    "typescript": _SCRIPT | _TYPED,
    "tsx": _SCRIPT | _TYPED,
    "java": _CLASSES,
    "go": {
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
    },
    "rust": {
        "function_item": "function",
        "struct_item": "struct",
        "enum_item": "enum",
        "trait_item": "trait",
        "mod_item": "module",
        "macro_definition": "macro",
    },
    "c": _C,
    "cpp": _C | {"class_specifier": "class", "namespace_definition": "namespace"},
    "csharp": _CLASSES | {"namespace_declaration": "namespace"},
    "ruby": {
        "method": "method",
        "singleton_method": "method",
        "class": "class",
        "module": "module",
    },
    "php": _CLASSES | {"function_definition": "function"},
}
_IMPORTS: Mapping[str, frozenset[str]] = {
    "python": frozenset({"import_statement", "import_from_statement", "future_import_statement"}),
    "javascript": frozenset({"import_statement"}),
    "typescript": frozenset({"import_statement"}),
    "tsx": frozenset({"import_statement"}),
    "java": frozenset({"import_declaration"}),
    "go": frozenset({"import_spec"}),
    "rust": frozenset({"use_declaration", "extern_crate_declaration"}),
    "c": frozenset({"preproc_include"}),
    "cpp": frozenset({"preproc_include", "using_declaration"}),
    "csharp": frozenset({"using_directive"}),
    "ruby": frozenset(),
    "php": frozenset(
        {"namespace_use_declaration", "require_once_expression", "include_expression"}
    ),
}
_EXTENSIONS = {"python": "py", "javascript": "js", "typescript": "ts", "tsx": "tsx", "java": "java"}
_EXTENSIONS |= {"go": "go", "rust": "rs", "c": "c", "cpp": "cpp", "csharp": "cs", "ruby": "rb"}
_EXTENSIONS |= {"php": "php"}
_SHOWN = 5_000
_PARENTS_MAX = 20


def _parser(language: str) -> Any:
    from tree_sitter import Language, Parser

    package, function = _GRAMMARS[language]
    return Parser(Language(getattr(importlib.import_module(package), function)()))


def _outline(code: str, language: str) -> dict[str, Any]:
    data = code.encode("utf-8", "replace")
    tree = _parser(language).parse(data)
    symbols: list[dict[str, Any]] = []
    imports: list[str] = []
    errors: list[int] = []
    for node, parents in _walk(tree.root_node, _SYMBOLS[language]):
        if node.is_error or node.is_missing:
            errors.append(node.start_point[0] + 1)
        elif node.type in _IMPORTS[language] or _is_require(node, language):
            imports.append(" ".join(_text(node).split())[:300])
        elif (symbol := _symbol(node, language, parents)) is not None:
            symbols.append(symbol)
        if len(symbols) > _SHOWN:
            break
    return {
        "symbols": symbols,
        "imports": list(dict.fromkeys(imports))[:500],
        "syntaxErrors": sorted(set(errors))[:20],
    }


def _walk(root: Any, kinds: Mapping[str, str]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield every node with the names of the symbols around it; code may be nested very deeply."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(root, ())]
    while waiting:
        node, parents = waiting.pop()
        yield node, parents
        inner = parents
        if node.type in kinds and len(parents) < _PARENTS_MAX:
            inner = (*parents, _name(node) or "")
        waiting.extend((child, inner) for child in reversed(node.children))


def _symbol(node: Any, language: str, parents: tuple[str, ...]) -> dict[str, Any] | None:
    kind = _SYMBOLS[language].get(node.type)
    if kind is None and node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        kind = "function" if value is not None and value.type == "arrow_function" else None
    if kind is None or (node.type.endswith("_specifier") and not node.child_by_field_name("body")):
        return None
    name = _name(node)
    if not name:
        return None
    if kind == "function" and parents and language == "python" and _in_class(node):
        kind = "method"
    shown = {
        "kind": kind,
        "name": name,
        "line": node.start_point[0] + 1,
        "endLine": node.end_point[0] + 1,
    }
    return {**shown, "parent": ".".join(parents)} if any(parents) else shown


def _in_class(node: Any) -> bool:
    above = node.parent
    while above is not None and above.type not in {"function_definition", "class_definition"}:
        above = above.parent
    return above is not None and above.type == "class_definition"


def _name(node: Any) -> str:
    found = node.child_by_field_name("name")
    inner = node.child_by_field_name("declarator") if found is None else None
    # In C the name lies within as many declarators as there are stars and brackets.
    for _ in range(10):
        if inner is None:
            break
        found = inner
        inner = inner.child_by_field_name("declarator")
    return _text(found)[:200] if found is not None else ""


def _text(node: Any) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _is_require(node: Any, language: str) -> bool:
    return (
        language == "ruby"
        and node.type == "call"
        and _text(node)[:16].startswith(("require ", "require_relative", "require("))
    )


def _complexity(code: str, language: str) -> list[dict[str, Any]]:
    import lizard

    found = lizard.analyze_file.analyze_source_code(f"code.{_EXTENSIONS[language]}", code)
    return [
        {
            "name": each.name[:200],
            "line": each.start_line,
            "endLine": each.end_line,
            "complexity": each.cyclomatic_complexity,
            "lines": each.nloc,
            "parameters": each.parameter_count,
        }
        for each in found.function_list[:_SHOWN]
    ]


def _main() -> NoReturn:
    order = json.loads(sys.stdin.buffer.readline())
    answers = []
    for file in order["files"]:
        answer: dict[str, Any] = {}
        if "outline" in order["wanted"]:
            answer |= _outline(file["content"], file["language"])
        if "complexity" in order["wanted"]:
            answer["functions"] = _complexity(file["content"], file["language"])
        answers.append(answer)
    sys.stdout.write(json.dumps({"result": answers}))
    sys.exit(0)


if __name__ == "__main__":
    _main()
