"""Every setting: its name in files and in the environment, its option, and what it means.

A setting is given on the command line, in the environment (`STRATAGEM_NAME`), or in a file of
settings; the nearer one wins. The file is `.stratagem/config.toml` of the project, then
`config.toml` in the user's own settings folder. Files are read once, and the environment is left as
it is: what they say is a default of the options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import defer
from stratagem.engine.relevance import TRY_MIN
from stratagem.errors import InvalidInput
from stratagem.hooks.settings import HOOK_SETTINGS
from stratagem.projects import PROJECT_FOLDER, find_memory, tracked_files, user_config_folder

if TYPE_CHECKING:
    import typer
else:
    # A plain line is read without it (`plain_lines`).
    typer = defer("typer")

__all__ = ["FILE_NAME", "SETTINGS", "FileSettings", "Setting", "option"]

FILE_NAME: Final = "config.toml"
PREFIX: Final = "STRATAGEM_"
# The settings that a file from a repository may have: none that opens this machine to its author,
# or sends them the memory. Any other setting is refused.
_OF_REPOSITORIES: Final = frozenset(
    {
        *("namespace", "branch", "durability", "embedder", "auto_embed", "relevance_min"),
        *("read_only", "toolsets", "developer", "expose", "port", "workers"),
        *("max_connections", "log_format", *(each.name for each in HOOK_SETTINGS)),
    }
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `default` is what holds where nobody says, `words` what it is."""

    name: str
    default: str
    words: str
    metavar: str | None = None
    # Where another than `--name` is it; one that can be repeated is named for one of its values.
    flag: str | None = None
    is_repeated: bool = False
    # Options of every command stand at the root, all others at the commands that serve.
    is_shared: bool = False
    # Whether a project's file may have it: somebody else may have written that one.
    of_projects: bool = True

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.name.upper()

    @property
    def is_switch(self) -> bool:
        """Whether it is yes or no."""
        return self.default in {"yes", "no"}

    @property
    def option(self) -> str:
        """Its option on the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"

    @property
    def parameter(self) -> str:
        """Its option as a parameter of a command."""
        return self.option.partition("/")[0].removeprefix("--").replace("-", "_")

    @property
    def help(self) -> str:
        """What the command line says about it."""
        more = "; repeatable" if self.is_repeated else ""
        plain = self.is_switch or self.default in {"none", "default"}
        default = "" if plain else f" Default: {self.default}."
        return f"{self.words[0].upper()}{self.words[1:]}{more}.{default}"

    def text(self, value: Any) -> str:
        """Return a value as a variable of the environment would have it."""
        if isinstance(value, bool):
            return "1" if value else "0"
        between = " " if self.is_repeated else ","
        return between.join(map(str, value)) if isinstance(value, list) else str(value)


def _shared_setting(
    name: str, default: str, words: str, metavar: str = "", flag: str | None = None
) -> Setting:
    return Setting(name, default, words, metavar, flag, is_shared=True)


SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        _shared_setting(
            "db",
            "the project's .stratagem/, else your own",
            "which database: a file, or postgresql://…",
            "FILE",
        ),
        _shared_setting("namespace", "default", "the namespace of keys", "NAME"),
        _shared_setting("branch", "default", "the branch to work on", "NAME"),
        _shared_setting(
            "durability", "full", "what a write survives: power failure or kill", "full|fast"
        ),
        _shared_setting(
            "embedder",
            "static",
            "the embedder for search by meaning: static, minilm or none",
            "NAME",
        ),
        _shared_setting(
            "auto_embed",
            "yes",
            "no: no search by meaning",
            flag="--auto-embed/--no-auto-embed",
        ),
        _shared_setting("redaction", "basic", "what is masked: basic, strict or none", "LEVEL"),
        _shared_setting(
            "relevance_min",
            f"{TRY_MIN:g}",
            "how likely a known problem must be the one at hand for its fix to be recommended",
            "NUMBER",
        ),
        _shared_setting("read_only", "no", "refuse to write"),
        Setting(
            "toolsets",
            "memory,debugging",
            "which tools a server offers, separated by commas",
            "NAMES",
        ),
        Setting(
            "developer",
            "no",
            "offer the granular tools (toolset developer) in place of the eight for agents",
            flag="--developer/--agent",
        ),
        Setting(
            "expose",
            "none",
            "registered tools offered under their own names, separated by commas; * and "
            "? are wildcards",
            "NAMES",
        ),
        Setting("host", "127.0.0.1", "where a server listens"),
        Setting("port", "7437", "the port of a server, or another one if it is in use"),
        Setting(
            "server_name", "none", "host names under which a server is reached", is_repeated=True
        ),
        Setting("public_url", "none", "the server's address for clients, behind a proxy", "URL"),
        Setting(
            "allow_hosts",
            "none",
            "private hosts that registered tools may call",
            "HOST:PORT",
            "--allow-host",
            is_repeated=True,
        ),
        Setting(
            "allow_callables",
            "none",
            "Python functions that registered tools may run; MODULE:* allows all of a module",
            "MODULE:FUNCTION",
            "--allow-callable",
            is_repeated=True,
            of_projects=False,
        ),
        Setting("sandbox_network", "no", "yes: sandboxed code may be given the network"),
        Setting(
            "auth",
            "auto",
            "when a token is needed: once one exists, or always",
            "auto|token",
        ),
        Setting("oauth_issuer", "none", "the OAuth issuer whose JWTs are accepted", "URL"),
        Setting(
            "oauth_audience", "none", "the audience that such a JWT must have", is_repeated=True
        ),
        Setting("oauth_keys", "from the issuer's metadata", "where the issuer's keys are", "URL"),
        Setting("workers", "1", "how many server processes"),
        Setting(
            "redis",
            "none",
            "the Redis server through which several servers share Socket.IO events and rates",
            "URL",
        ),
        Setting(
            "max_connections", f"{limits.CONNECTIONS_MAX}", "how many connections a process accepts"
        ),
        Setting(
            "trusted_proxy",
            "none",
            "proxies that are trusted to report a client's address",
            "ADDRESS",
            is_repeated=True,
        ),
        Setting(
            "bundles",
            "none",
            "the folder that bundles are exported to and imported from",
            "FOLDER",
            of_projects=False,
        ),
        Setting("log_format", "text", "how problems and requests are logged: text or json"),
        Setting("graph", "built in", "the external service for the graph of concepts"),
        Setting("vectors", "built in", "the external service for searching concepts by meaning"),
        *(Setting(*each) for each in HOOK_SETTINGS),
    )
}


def option(name: str, *also: str, **details: Any) -> Any:
    """Return the option of a setting, for the signature of a command; `also` are other flags."""
    setting = SETTINGS[name]
    details = {"envvar": setting.variable, "metavar": setting.metavar} | details
    return typer.Option(setting.option, *also, help=setting.help, show_default=False, **details)


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What files say about settings: the text and the file, by the name of the setting."""

    of_files: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls) -> FileSettings:
        """Read the files of settings that are there.

        Raises:
            InvalidInput: A file is no TOML, or has a setting that does not exist.
        """
        found: dict[str, tuple[str, str]] = {}
        # The nearest comes first, and what it says holds.
        for file in reversed(files()):
            found |= {name: (text, str(file)) for name, text in _read(file).items()}
        return cls(found)

    @property
    def variables(self) -> dict[str, str]:
        """What files say, as variables of the environment."""
        return {SETTINGS[name].variable: text for name, (text, _) in self.of_files.items()}

    @property
    def environment(self) -> dict[str, str]:
        """The environment, with what files say where it says nothing."""
        return {**self.variables, **os.environ}

    def values_of(self, name: str) -> tuple[str, ...]:
        """Return the values of a setting that can be repeated."""
        text = self.environment.get(SETTINGS[name].variable, "")
        return tuple(text.replace(",", " ").split())

    def defaults(self, *, shared: bool) -> dict[str, Any]:
        """Return what files say, as defaults of the options of the root or of other commands."""
        return {
            setting.parameter: text.split() if setting.is_repeated else text
            for name, (text, _) in self.of_files.items()
            if (setting := SETTINGS[name]).is_shared == shared
        }

    def explain(self, error: typer.BadParameter) -> None:
        """Add to an error about an option which file it was set in, if it was."""
        variable = getattr(getattr(error, "param", None), "envvar", None)
        for name, (_, file) in self.of_files.items():
            if SETTINGS[name].variable == variable and variable not in os.environ:
                # Whoever wrote it into a file looks for no variable.
                error.message = f"{error.message.rstrip('.')}; it is set in {file}."


def files() -> list[Path]:
    """Return the files of settings that are there, the nearest first."""
    memory = find_memory(str(Path.cwd()))
    places = [memory, user_config_folder()]
    found = [Path(place) / FILE_NAME for place in places if place]
    # Unlike `Path.is_file`, this is no error where a folder may not be looked into.
    return [file for file in found if os.path.isfile(file)]  # noqa: PTH113 -- as above


def _read(file: Path) -> dict[str, str]:
    """Return the settings of a file."""
    import tomllib

    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read: {error}.", path=str(file), hint="Correct the file."
        ) from error
    for name, value in given.items():
        if name not in SETTINGS:
            raise InvalidInput(
                f"{file} has a setting that does not exist: {name}.",
                path=str(file),
                hint=f"There are: {', '.join(SETTINGS)}.",
            )
        if reason := _refusal(SETTINGS[name], file):
            raise InvalidInput(
                f"{file} cannot set {name}: {reason}.",
                path=str(file),
                hint=f"Set it in your own {FILE_NAME}, or as {SETTINGS[name].variable}.",
            )
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str | int | float) for each in parts):
            raise InvalidInput(
                f"{file} has no value for {name}: it is text, a number, true or false, or a list.",
                path=str(file),
                hint="Correct the file.",
            )
    return {name: SETTINGS[name].text(value) for name, value in given.items()}


def _refusal(setting: Setting, file: Path) -> str:
    """Return why a file may not have a setting; empty where it may."""
    if file.parent.name != PROJECT_FOLDER:
        return ""
    if not setting.of_projects:
        return "a project may have been written by anybody"
    if setting.name in _OF_REPOSITORIES:
        return ""
    tracked = tracked_files(str(file.parent))
    return "it came with the repository: git tracks it" if tracked & {"", FILE_NAME} else ""
