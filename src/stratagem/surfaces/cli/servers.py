"""mcp and serve: the ways in for agents."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.operation import DEFAULT_TOOLSETS, DEVELOPER_TOOLSET
from stratagem.surfaces.cli.configuration import describe_settings
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.cli.settings import option
from stratagem.surfaces.serving.settings import PORT_DEFAULT, ServerSettings

if TYPE_CHECKING:
    from stratagem.access.oauth.settings import OAuthSettings

__all__ = ["app"]

app = typer.Typer()
PANEL = "For agents"
HOST_DEFAULT = "127.0.0.1"

Auth = Literal["auto", "token"]
Toolsets = Annotated[str | None, option("toolsets")]
Developer = Annotated[bool | None, option("developer", "--developer-mode/--agent-mode")]
Bundles = Annotated[str | None, option("bundles")]
Expose = Annotated[str | None, option("expose")]
AllowHost = Annotated[list[str] | None, option("allow_hosts")]
AllowCallable = Annotated[list[str] | None, option("allow_callables")]
Host = Annotated[str, option("host")]
Port = Annotated[int | None, option("port", min=0, max=65535)]
ServerName = Annotated[list[str] | None, option("server_name")]
Workers = Annotated[int, option("workers", min=1, max=64)]
LogFormat = Annotated[Literal["text", "json"], option("log_format")]
Redis = Annotated[str | None, option("redis")]
AuthOption = Annotated[Auth, option("auth")]
OauthIssuer = Annotated[str | None, option("oauth_issuer")]
OauthAudience = Annotated[list[str] | None, option("oauth_audience")]
OauthKeys = Annotated[str | None, option("oauth_keys")]
PublicUrl = Annotated[str | None, option("public_url")]
MaxConnections = Annotated[int, option("max_connections", min=1, max=limits.CONNECTIONS_MAX_MAX)]
TrustedProxy = Annotated[list[str] | None, option("trusted_proxy")]


@app.command("mcp", rich_help_panel=PANEL)
@command
def _mcp(
    session: Session,
    *,
    toolsets: Toolsets = None,
    developer: Developer = None,
    expose: Expose = None,
    allow_host: AllowHost = None,
    allow_callable: AllowCallable = None,
    bundles: Bundles = None,
) -> None:
    """Serve one agent on stdin and stdout. This is what an agent's settings start."""
    from stratagem.surfaces.mcp import run_stdio

    # Standard output belongs to the protocol.
    session.output.json = False
    if sys.stdin.isatty():
        session.output.note(
            "This server speaks MCP on stdin and stdout: an agent's client starts it. `stratagem "
            "init` sets up a client; Ctrl-C stops this one."
        )
    run_stdio(
        replace(
            _settings(session, toolsets, developer=developer),
            expose=_names(expose),
            allow_hosts=tuple(allow_host or ()),
            allow_callables=tuple(allow_callable or ()),
            # Of the person who starts it: a server that others reach has the project's alone.
            personal=session.personal,
            git_folder=session.git_folder,
            bundles=bundles,
        )
    )


@app.command("serve", rich_help_panel=PANEL)
@command
def _serve(
    session: Session,
    *,
    toolsets: Toolsets = None,
    developer: Developer = None,
    expose: Expose = None,
    host: Host = HOST_DEFAULT,
    port: Port = None,
    server_name: ServerName = None,
    allow_host: AllowHost = None,
    allow_callable: AllowCallable = None,
    workers: Workers = 1,
    log_format: LogFormat = "text",
    redis: Redis = None,
    auth: AuthOption = "auto",
    oauth_issuer: OauthIssuer = None,
    oauth_audience: OauthAudience = None,
    oauth_keys: OauthKeys = None,
    public_url: PublicUrl = None,
    max_connections: MaxConnections = limits.CONNECTIONS_MAX,
    trusted_proxy: TrustedProxy = None,
    bundles: Bundles = None,
) -> None:
    """Serve any number of agents on http://HOST:PORT/mcp, and REST under /api."""
    from stratagem.surfaces.server import run

    run(
        replace(
            _settings(session, toolsets, developer=developer),
            host=host,
            port=PORT_DEFAULT if port is None else port,
            port_given=port is not None,
            server_names=tuple(server_name or ()),
            allow_hosts=tuple(allow_host or ()),
            allow_callables=tuple(allow_callable or ()),
            expose=_names(expose),
            auth=auth,
            oauth=_oauth(oauth_issuer, oauth_audience, oauth_keys),
            public_url=public_url.rstrip("/") if public_url else None,
            workers=workers,
            log_format=log_format,
            redis=redis,
            max_connections=max_connections,
            trusted_proxies=tuple(trusted_proxy or ()),
            bundles=bundles,
        )
    )


@app.command("console", rich_help_panel=PANEL)
@command
def _console(
    session: Session,
    *,
    port: Port = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")
    ] = True,
) -> None:
    """Browse a database: search, history, branches, tools. Ctrl-C stops it."""
    import webbrowser

    from stratagem.surfaces.server.http import run
    from stratagem.surfaces.server.startup_message import console_message

    settings = replace(_settings(session, None, developer=False), port=port or 0, port_given=True)
    run(settings, console_message, webbrowser.open if browser else None)


def _oauth(
    issuer: str | None, audiences: list[str] | None, keys: str | None
) -> OAuthSettings | None:
    if issuer is None:
        if audiences or keys:
            raise ValidationFailed(
                "OAuth needs an issuer.", field="oauth_issuer", hint="Name it: --oauth-issuer URL."
            )
        return None
    from stratagem.access.oauth.settings import OAuthSettings

    return OAuthSettings(issuer, tuple(audiences or ()), keys)


def _settings(session: Session, toolsets: str | None, *, developer: bool | None) -> ServerSettings:
    return ServerSettings(
        database=session.database,
        namespace=session.namespace,
        branch=session.branch,
        toolsets=_chosen_toolsets(_names(toolsets), developer=developer),
        read_only=bool(session.options.read_only),
        durability=session.options.durability or "full",
        embedder=session.embedder,
        redaction=session.options.redaction or "basic",
        relevance_min=session.relevance_min,
        of_files=session.options.file_settings.variables,
        described=describe_settings(session),
    )


def _chosen_toolsets(named: tuple[str, ...], *, developer: bool | None) -> tuple[str, ...]:
    """Return the toolsets to offer; the granular tools take the place of the eight for agents."""
    if developer is False:
        named = tuple(name for name in named if name != DEVELOPER_TOOLSET)
    elif developer:
        named = (DEVELOPER_TOOLSET, *(name for name in named if name != DEVELOPER_TOOLSET))
    if DEVELOPER_TOOLSET in named:
        return tuple(name for name in named if name != "memory")
    return named or DEFAULT_TOOLSETS


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name for each in (given or "").split(",") if (name := each.strip()))
