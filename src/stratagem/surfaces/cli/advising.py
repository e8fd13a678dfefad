"""tools recommend, recover, validate, discover, compare, plan, diagnose: questions about tools."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import typer

from stratagem import limits
from stratagem.errors import TABLE, ExecutionFailed, InvalidInput, ValidationFailed
from stratagem.surfaces.cli.inputs import read_json, read_value
from stratagem.surfaces.cli.session import Session, command

__all__ = ["advice"]

advice = typer.Typer()

_PANEL: Final = "Which tool, and why not"

Arguments = Annotated[
    str | None,
    typer.Argument(metavar="[JSON]", help="The arguments of the call; - reads stdin."),
]
Tool = Annotated[str, typer.Argument(metavar="NAME", help="A tool's name or id.")]
Tools = Annotated[list[str], typer.Argument(metavar="NAME", help="Tools by name or id.")]


@advice.command("recommend", rich_help_panel=_PANEL)
@command
def _recommend(
    session: Session,
    *,
    intent: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="What is to be done, in your words.")
    ],
    limit: Annotated[
        int, typer.Option(min=1, max=limits.RECOMMENDED_MAX, help="At most so many.")
    ] = limits.RECOMMENDED_DEFAULT,
) -> None:
    """Show which tools do what is to be done, best first, and why."""
    from stratagem.surfaces.cli.advice_tables import show_recommended

    given = {"intent": " ".join(intent), "maxRecommendations": limit}
    session.output.answer(session.call("tools_recommend", **given), show_recommended)


@advice.command("recover", rich_help_panel=_PANEL)
@command
def _recover(
    session: Session,
    *,
    name: Tool,
    arguments: Arguments = None,
    error: Annotated[
        str, typer.Option(metavar="TEXT", help="What the failed call said; - reads stdin.")
    ],
    intent: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it was to be good for.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=limits.RECOMMENDED_MAX, help="At most so many other tools.")
    ] = 3,
) -> None:
    """After a call that failed: show corrected arguments, known fixes and other tools."""
    from stratagem.surfaces.cli.advice_tables import show_recovery

    answer = session.call(
        "tools_recommend_on_error",
        failedTool=name,
        errorMessage=read_value(error, text=True),
        failedParameters=_arguments(arguments),
        intent=intent,
        maxAlternatives=limit,
    )
    session.output.answer(answer, show_recovery)


@advice.command("validate", rich_help_panel=_PANEL)
@command
def _validate(
    session: Session,
    *,
    names: Tools,
    configuration: Annotated[
        bool, typer.Option("--configuration", help="Look at handlers and secrets too.")
    ] = False,
) -> None:
    """Show which tools can be called now, and why others cannot."""
    from stratagem.surfaces.cli.advice_tables import show_validated

    answer = session.call("tools_validate", toolNames=names, checkConfiguration=configuration)
    session.output.answer(answer, show_validated)


@advice.command("discover", rich_help_panel=_PANEL)
@command
def _discover(
    session: Session,
    *,
    pattern: Annotated[
        str | None, typer.Argument(metavar="[PATTERN]", help="Part of a name, or a*b.")
    ] = None,
    category: Annotated[str | None, typer.Option(help="Of one category.")] = None,
    source: Annotated[
        Literal["internal", "external"] | None,
        typer.Option(help="Those that came with Stratagem, or the registered ones."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="With --json: what each of them takes, too.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=limits.TOOLS_LISTED_MAX, help="At most so many.")
    ] = limits.TOOLS_LISTED_DEFAULT,
) -> None:
    """Show the tools of a name, a category and a source."""
    from stratagem.surfaces.cli.advice_tables import show_discovered

    answer = session.call(
        "tools_discover",
        namePattern=pattern,
        category=category,
        source=source,
        includeSchema=schema,
        limit=limit,
    )
    session.output.answer(answer, show_discovered)


@advice.command("compare", rich_help_panel=_PANEL)
@command
def _compare(
    session: Session,
    *,
    names: Tools,
    intent: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What they are compared for.")
    ] = None,
) -> None:
    """Show tools next to each other: what they take, how their calls went, what differs."""
    from stratagem.surfaces.cli.advice_tables import show_compared

    answer = session.call("tools_compare", toolNames=names, intent=intent)
    session.output.answer(answer, show_compared)


@advice.command("plan", rich_help_panel=_PANEL)
@command
def _plan(
    session: Session,
    *,
    goal: Annotated[list[str], typer.Argument(metavar="WORDS", help="The goal: this, then that.")],
    inputs: Annotated[
        str | None, typer.Option(metavar="JSON", help="Values at hand, by parameter.")
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Tools to chain, in this order.")
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, max=limits.PLAN_STEPS_MAX, help="At most so many steps.")
    ] = 5,
    run: Annotated[
        bool, typer.Option("--run", help="Call the tools, if nothing is missing.")
    ] = False,
) -> None:
    """Show which tools, one after another, reach a goal, and where their arguments come from."""
    from stratagem.surfaces.cli.advice_tables import show_plan, show_run

    given = read_json(inputs, field="inputs") if inputs is not None else {}
    planned = session.call(
        "workflow_plan", goal=" ".join(goal), inputs=given, tools=tool or None, maxSteps=steps
    )
    if not run:
        session.output.answer(planned, show_plan)
        return
    if not planned["runnable"]:
        raise ValidationFailed(
            "The plan cannot be run as it is.",
            field="inputs",
            missing=planned["missing"],
            hint="Look at it without --run: it says what is missing.",
        )
    done = session.call("tools_pipeline", **planned["definition"], input=given)
    session.output.answer(done, show_run)
    if not done["success"]:
        raise typer.Exit(TABLE[ExecutionFailed.code].exit_code)


@advice.command("diagnose", rich_help_panel=_PANEL)
@command
def _diagnose(
    session: Session,
    *,
    name: Tool,
    arguments: Arguments = None,
    error: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the call said; - reads stdin.")
    ] = None,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="Tools too that would take the call.")
    ] = False,
) -> None:
    """Show what is wrong with a call and how it could be corrected; nothing is called."""
    from stratagem.surfaces.cli.correction_tables import show_diagnosis

    if arguments is None and error is None:
        raise InvalidInput(
            "There is nothing to diagnose.",
            hint="Give the arguments of the call as JSON, or what it said with --error.",
        )
    answer = session.call(
        "error_diagnose",
        error=read_value(error, text=True) if error is not None else None,
        toolName=name,
        parameters=_arguments(arguments),
        includeAlternatives=alternatives,
    )
    session.output.answer(answer, show_diagnosis)


def _arguments(given: str | None) -> Any:
    """Return arguments as they were given: what is no JSON is a part of the question."""
    return None if given is None else read_value(given)
