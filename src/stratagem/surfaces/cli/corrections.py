"""corrections: what is done about calls that do not fit, and what was learned of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from stratagem.errors import InvalidInput
from stratagem.surfaces.cli.inputs import read_json, read_value
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
corrections = typer.Typer(
    help="Corrections of calls: state, policy, figures, lessons.", no_args_is_help=True
)
app.add_typer(corrections, name="corrections", rich_help_panel="Gateway")

Range = Annotated[str, typer.Option("--range", metavar="TIME", help="Such as 1h, 24h, 7d.")]
AsOf = Annotated[
    str | None, typer.Option(metavar="TIME", help="As it was: 1h ago, an ISO time, @version.")
]
ToolOption = Annotated[str | None, typer.Option(metavar="NAME", help="For one tool only.")]


@corrections.callback()
@command
def _corrections(session: Session) -> None:
    """Corrections of calls: state, policy, figures, lessons."""
    del session  # It has actions only.


@corrections.command("status")
@command
def _status(session: Session, *, time_range: Range = "24h", as_of: AsOf = None) -> None:
    """Show whether corrections work, how they did, and what they may do."""
    from stratagem.surfaces.cli.correction_tables import show_status

    answer = session.call("auto_correction_status", timeRange=time_range, asOf=as_of)
    session.output.answer(answer, show_status)


@corrections.command("configure")
@command
def _configure(
    session: Session,
    *,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Such as maxRetries=2.")
    ] = None,
    preset: Annotated[
        Literal["production", "staging", "development"] | None,
        typer.Option(help="Begin with these."),
    ] = None,
    tool: ToolOption = None,
    reset: Annotated[bool, typer.Option("--reset", help="Begin with the default.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what would change.")] = False,
) -> None:
    """Change what corrections may do, for all tools or for one; effective at once."""
    from stratagem.surfaces.cli.correction_tables import show_configured

    if not (settings or preset or reset):
        raise InvalidInput(
            "Nothing to change was given.",
            hint="For example: stratagem corrections configure maxRetries=2, or --preset "
            "production. `stratagem corrections status` shows the settings.",
        )
    answer = session.call(
        "auto_correction_configure",
        settings=dict(_setting(each) for each in settings or ()),
        preset=preset,
        toolName=tool,
        reset=reset,
        applyImmediately=not preview,
    )
    session.output.answer(answer, show_configured)


@corrections.command("test")
@command
def _test(
    session: Session,
    *,
    suite: Annotated[str | None, typer.Argument(metavar="[SUITE]", help="A named suite.")] = None,
    cases: Annotated[
        str | None, typer.Option(metavar="JSON", help="Cases of your own, as a list; - is stdin.")
    ] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="A tool to make a wrong call for.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="With --tool: what is wrong with it.")
    ] = "typeMismatch",
    performance: Annotated[
        bool, typer.Option("--performance", help="Say how long they took, too.")
    ] = False,
    diagnostics: Annotated[
        bool, typer.Option("--diagnostics", help="Look at the system, too.")
    ] = False,
) -> None:
    """Try corrections out on a suite, on cases or on a tool; nothing is called."""
    from stratagem.surfaces.cli.correction_tables import show_tested

    given: list[Any] = read_json(cases, field="cases") if cases is not None else []
    made = [{"tool": tool, "type": kind}] if tool is not None else []
    answer = session.call(
        "auto_correction_test",
        testCases=[*given, *made] if isinstance(given, list) else given,
        testSuite=suite,
        includePerformance=performance,
        runDiagnostics=diagnostics,
    )
    session.output.answer(answer, show_tested)


@corrections.command("insights")
@command
def _insights(
    session: Session,
    *,
    time_range: Range = "7d",
    failures: Annotated[
        bool, typer.Option("--failures", help="What was not corrected, too.")
    ] = False,
    used: Annotated[int, typer.Option(min=1, help="Patterns used at least so often.")] = 1,
    as_of: AsOf = None,
) -> None:
    """Show what the records of a time say: by tool, by pattern, by agent."""
    from stratagem.surfaces.cli.correction_tables import show_insights

    answer = session.call(
        "auto_correction_insights",
        timeRange=time_range,
        includeFailures=failures,
        minPatternUsage=used,
        asOf=as_of,
    )
    session.output.answer(answer, show_insights)


@corrections.command("patterns")
@command
def _patterns(
    session: Session,
    *,
    tool: ToolOption = None,
    used: Annotated[int, typer.Option(min=0, help="Used at least so often.")] = 0,
    as_of: AsOf = None,
) -> None:
    """Show what was learned, and how each pattern did."""
    from stratagem.surfaces.cli.correction_tables import show_patterns

    answer = session.call("auto_correction_patterns", toolName=tool, minUsage=used, asOf=as_of)
    session.output.answer(answer, show_patterns)


@corrections.command("profile")
@command
def _profile(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tool's name or id.")],
) -> None:
    """Show what a tool is usually called with: parameters, types, forms."""
    from stratagem.surfaces.cli.correction_tables import show_patterns

    answer = session.call("auto_correction_patterns", action="profile", toolName=name)
    session.output.answer(answer, show_patterns)


@corrections.command("backup")
@command
def _backup(session: Session, *, tool: ToolOption = None) -> None:
    """Print the lessons as JSON, for `corrections restore`."""
    answer = session.call("auto_correction_patterns", action="backup", toolName=tool)
    session.output.data(answer["backup"])


@corrections.command("restore")
@command
def _restore(
    session: Session,
    *,
    backup: Annotated[
        str, typer.Argument(metavar="JSON", help="What `corrections backup` gave; - reads stdin.")
    ],
) -> None:
    """Bring lessons back that are not there; what is there stays."""
    from stratagem.surfaces.cli.correction_tables import show_patterns

    given = read_json(backup, field="backup")
    answer = session.call("auto_correction_patterns", action="restore", backup=given)
    session.output.answer(answer, show_patterns)


@corrections.command("circuits")
@command
def _circuits(
    session: Session,
    *,
    reset: Annotated[
        str | None, typer.Option(metavar="TOOL", help="Close the breaker of a tool.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Before the five minutes are over.")
    ] = False,
) -> None:
    """Show the breakers that hold corrections back, or close one."""
    from stratagem.surfaces.cli.correction_tables import show_circuits

    action = "list" if reset is None else "reset"
    answer = session.call("auto_correction_circuits", action=action, toolName=reset, force=force)
    session.output.answer(answer, show_circuits)


def _setting(given: str) -> tuple[str, Any]:
    """Return the name and the value of a setting.

    Raises:
        InvalidInput: It has no value.
    """
    name, sign, value = given.partition("=")
    if not sign or not name:
        raise InvalidInput(
            f"{given!r} is no NAME=VALUE.", field="settings", hint="For example: maxRetries=2"
        )
    return name, read_value(value)
