"""mcp and serve: the ways in for agents."""

from __future__ import annotations

from typing import Annotated

import typer

from stratagem.operation import DEFAULT_TOOLSETS
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.mcp.settings import PORT_DEFAULT, ServerSettings

__all__ = ["app"]

app = typer.Typer()
PANEL = "For agents"
HOST_DEFAULT = "127.0.0.1"

Toolsets = Annotated[
    str | None,
    typer.Option(
        envvar="STRATAGEM_TOOLSETS",
        metavar="NAMES",
        help=f"Which tools to offer, by commas. Default: {','.join(DEFAULT_TOOLSETS)}.",
    ),
]


Expose = Annotated[
    str | None,
    typer.Option(
        envvar="STRATAGEM_EXPOSE",
        metavar="NAMES",
        help="Registered tools to offer by their own names, by commas; * and ? are wildcards.",
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        envvar="STRATAGEM_ALLOW_HOSTS",
        metavar="HOST:PORT",
        help="A private host that registered tools may call; repeatable.",
    ),
]


@app.command("mcp", rich_help_panel=PANEL)
@command
def _mcp(
    session: Session,
    *,
    toolsets: Toolsets = None,
    expose: Expose = None,
    allow_host: AllowHost = None,
) -> None:
    """Serve one agent on stdin and stdout. This is what an agent's settings start."""
    from stratagem.surfaces.mcp import run_stdio

    # Standard output belongs to the protocol.
    session.output.json = False
    run_stdio(
        _settings(session, toolsets, expose=_names(expose), allow_hosts=tuple(allow_host or ()))
    )


@app.command("serve", rich_help_panel=PANEL)
@command
def _serve(
    session: Session,
    *,
    toolsets: Toolsets = None,
    expose: Expose = None,
    host: Annotated[
        str, typer.Option(envvar="STRATAGEM_HOST", help="An address of this machine.")
    ] = HOST_DEFAULT,
    port: Annotated[
        int | None,
        typer.Option(
            envvar="STRATAGEM_PORT",
            help=f"Default: {PORT_DEFAULT}, or another where that is taken.",
            min=0,
            max=65535,
        ),
    ] = None,
    server_name: Annotated[
        list[str] | None,
        typer.Option(envvar="STRATAGEM_SERVER_NAME", help="A name to be reached by; repeatable."),
    ] = None,
    allow_host: AllowHost = None,
) -> None:
    """Serve any number of agents on http://HOST:PORT/mcp, and REST under /api."""
    from stratagem.surfaces.server import run

    run(
        _settings(
            session,
            toolsets,
            host=host,
            port=PORT_DEFAULT if port is None else port,
            port_given=port is not None,
            server_names=tuple(server_name or ()),
            allow_hosts=tuple(allow_host or ()),
            expose=_names(expose),
        )
    )


def _settings(
    session: Session,
    toolsets: str | None,
    *,
    host: str = HOST_DEFAULT,
    port: int = PORT_DEFAULT,
    port_given: bool = False,
    server_names: tuple[str, ...] = (),
    allow_hosts: tuple[str, ...] = (),
    expose: tuple[str, ...] = (),
) -> ServerSettings:
    return ServerSettings(
        database=session.database,
        namespace=session.namespace,
        branch=session.branch,
        toolsets=_names(toolsets) or DEFAULT_TOOLSETS,
        read_only=bool(session.options.read_only),
        durability=session.options.durability or "full",
        embedder=session.embedder,
        redaction=session.options.redaction or "basic",
        host=host,
        port=port,
        port_given=port_given,
        server_names=server_names,
        allow_hosts=allow_hosts,
        expose=expose,
    )


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name for each in (given or "").split(",") if (name := each.strip()))
