"""The reference pages that are made from the code: `make docs` writes them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from stratagem import errors, limits
from stratagem.surfaces.cli.app import root_command
from stratagem.surfaces.cli.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent

_COMMANDS = (root_command(), root_command().get_command(None, "serve"))
_OPTIONS = {
    name
    for name, setting in SETTINGS.items()
    if setting.variable
    in {getattr(param, "envvar", None) for command in _COMMANDS for param in command.params}
}
_MADE_FROM = "*Made from `{source}` by `make docs`.*"


class Limit(NamedTuple):
    name: str
    value: float
    reason: str


def error_classes() -> list[type[errors.StratagemError]]:
    """Every error below the base, in the order in which `errors.py` defines them."""
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    base = errors.StratagemError
    return [kind for kind in found if issubclass(kind, base) and kind is not base]


def all_limits() -> list[Limit]:
    """Every limit, with the comment above it.

    A comment speaks for all the limits below it, up to the next comment or blank line.
    """
    source = Path(limits.__file__).read_text(encoding="utf-8")
    names = {
        node.lineno: node.target.id
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return list(_limits_in(source.splitlines(), names))


def _limits_in(lines: list[str], names: dict[int, str]) -> Iterator[Limit]:
    comment: list[str] = []
    fresh = True
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            comment = [*([] if fresh else comment), line.removeprefix("#").strip()]
            fresh = False
        elif not line.strip():
            comment, fresh = [], True
        elif number in names:
            name = names[number]
            yield Limit(name, getattr(limits, name), " ".join(comment))
            fresh = True


def errors_page() -> str:
    rows = []
    for kind in error_classes():
        row = errors.TABLE[kind.code]
        rows.append(
            (
                f"`{kind.code}`",
                f"`{kind.__name__}`",
                (kind.__doc__ or "").strip(),
                kind.hint_default,
                "yes" if kind.retryable else "no",
                str(row.http_status),
                str(row.json_rpc_code),
                str(row.exit_code),
                f"`{row.gateway_code}`",
            )
        )
    heads = (
        "code",
        "class",
        "what happened",
        "what to do",
        "retry",
        "HTTP",
        "JSON-RPC",
        "exit",
        "gateway",
    )
    return _page(
        "Errors",
        "src/stratagem/errors.py",
        "Every error has a stable code, and looks alike on every surface. A hint in the answer "
        "may be more exact than the one given here. *Retry* says whether the same call may "
        "succeed later.",
        _table(heads, rows),
    )


def limits_page() -> str:
    rows = [(f"`{limit.name}`", f"{limit.value:,}", limit.reason) for limit in all_limits()]
    return _page(
        "Limits",
        "src/stratagem/limits.py",
        "What a caller gives beyond a limit is refused with an error that names the parameter and "
        "the limit, unless the reason below says otherwise.",
        _table(("limit", "value", "why"), rows),
    )


def settings_page() -> str:
    rows = [
        (
            f"`{setting.name}`",
            f"`{setting.variable}`",
            f"`{setting.option}`" if setting.name in _OPTIONS else "",
            setting.default,
            setting.words,
        )
        for setting in SETTINGS.values()
    ]
    return _page(
        "Settings",
        "surfaces/cli/settings.py",
        "A setting is an option, a variable or a line in a file; the nearer one wins. Where there is\n"
        "no option, it is given by the variable or the file.",
        _table(("in files", "variable", "option", "default", "what it says"), rows),
    )


def agents_page() -> str:
    """Return the page that a model reads as a resource, too."""
    return (ROOT / "src/stratagem/surfaces/mcp/guide.md").read_text("utf-8")


PAGES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "for-agents.md": agents_page,
    ROOT / "docs" / "errors.md": errors_page,
    ROOT / "docs" / "limits.md": limits_page,
    ROOT / "docs" / "settings.md": settings_page,
}


def _page(title: str, source: str, intro: str, table: str) -> str:
    return f"# {title}\n\n{intro}\n\n{_MADE_FROM.format(source=source)}\n\n{table}\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    for path, page in PAGES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
