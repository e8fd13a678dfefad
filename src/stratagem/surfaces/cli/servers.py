"""mcp and serve: the ways in for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.operation import DEFAULT_TOOLSETS
from stratagem.surfaces.cli.session import Session, command
from stratagem.surfaces.serving.settings import PORT_DEFAULT, ServerSettings

if TYPE_CHECKING:
    from stratagem.access.oauth.settings import OAuthSettings

__all__ = ["app"]

app = typer.Typer()
PANEL = "For agents"
HOST_DEFAULT = "127.0.0.1"

Auth = Literal["auto", "token"]
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

AllowCallable = Annotated[
    list[str] | None,
    typer.Option(
        envvar="STRATAGEM_ALLOW_CALLABLES",
        metavar="MODULE:FUNCTION",
        help="A Python function that registered tools may run; MODULE:* is all it defines.",
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
    allow_callable: AllowCallable = None,
) -> None:
    """Serve one agent on stdin and stdout. This is what an agent's settings start."""
    from stratagem.surfaces.mcp import run_stdio

    # Standard output belongs to the protocol.
    session.output.json = False
    run_stdio(
        _settings(
            session,
            toolsets,
            expose=_names(expose),
            allow_hosts=tuple(allow_host or ()),
            allow_callables=tuple(allow_callable or ()),
        )
    )


Host = Annotated[str, typer.Option(envvar="STRATAGEM_HOST", help="An address of this machine.")]
Port = Annotated[
    int | None,
    typer.Option(
        envvar="STRATAGEM_PORT",
        help=f"Default: {PORT_DEFAULT}, or another where that is taken.",
        min=0,
        max=65535,
    ),
]
ServerName = Annotated[
    list[str] | None,
    typer.Option(envvar="STRATAGEM_SERVER_NAME", help="A name to be reached by; repeatable."),
]
Workers = Annotated[
    int,
    typer.Option(envvar="STRATAGEM_WORKERS", help="How many processes serve.", min=1, max=64),
]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option(envvar="STRATAGEM_LOG_FORMAT", help="How problems and requests are logged."),
]
Redis = Annotated[
    str | None,
    typer.Option(
        envvar="STRATAGEM_REDIS",
        metavar="URL",
        help="What several servers share Socket.IO events and rates by.",
    ),
]
AuthOption = Annotated[
    Auth,
    typer.Option(
        envvar="STRATAGEM_AUTH",
        metavar="auto|token",
        help="Whether everybody needs a token: from the first one on, or in any case.",
    ),
]
OauthIssuer = Annotated[
    str | None,
    typer.Option(envvar="STRATAGEM_OAUTH_ISSUER", metavar="URL", help="Whose JWTs are taken."),
]
OauthAudience = Annotated[
    list[str] | None,
    typer.Option(
        envvar="STRATAGEM_OAUTH_AUDIENCE", help="Whom such a JWT must be for; repeatable."
    ),
]
OauthKeys = Annotated[
    str | None,
    typer.Option(
        envvar="STRATAGEM_OAUTH_KEYS", metavar="URL", help="The issuer's keys, if not told."
    ),
]
PublicUrl = Annotated[
    str | None,
    typer.Option(
        envvar="STRATAGEM_PUBLIC_URL", metavar="URL", help="How clients reach the server."
    ),
]
MaxConnections = Annotated[
    int,
    typer.Option(
        envvar="STRATAGEM_MAX_CONNECTIONS",
        help="How many connections each process takes.",
        min=1,
        max=limits.CONNECTIONS_MAX_MAX,
    ),
]
TrustedProxy = Annotated[
    list[str] | None,
    typer.Option(
        envvar="STRATAGEM_TRUSTED_PROXY",
        metavar="ADDRESS",
        help="A proxy or network of them, whose X-Forwarded-For is believed; repeatable.",
    ),
]


@app.command("serve", rich_help_panel=PANEL)
@command
def _serve(
    session: Session,
    *,
    toolsets: Toolsets = None,
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
        )
    )


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


def _settings(
    session: Session,
    toolsets: str | None,
    *,
    host: str = HOST_DEFAULT,
    port: int = PORT_DEFAULT,
    port_given: bool = False,
    server_names: tuple[str, ...] = (),
    allow_hosts: tuple[str, ...] = (),
    allow_callables: tuple[str, ...] = (),
    expose: tuple[str, ...] = (),
    auth: Auth = "auto",
    oauth: OAuthSettings | None = None,
    public_url: str | None = None,
    workers: int = 1,
    log_format: str = "text",
    redis: str | None = None,
    max_connections: int = limits.CONNECTIONS_MAX,
    trusted_proxies: tuple[str, ...] = (),
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
        allow_callables=allow_callables,
        expose=expose,
        auth=auth,
        oauth=oauth,
        public_url=public_url,
        workers=workers,
        log_format=log_format,
        redis=redis,
        max_connections=max_connections,
        trusted_proxies=trusted_proxies,
    )


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name for each in (given or "").split(",") if (name := each.strip()))
