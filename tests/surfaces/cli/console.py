"""The command line in this process, as a test uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from stratagem.surfaces.cli.app import app


class Cli:
    """Runs commands on a database of the test's own."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self._runner = CliRunner()

    def run(self, *args: str, given: str | bytes | None = None, **environment: str) -> Result:
        env = {"STRATAGEM_DB": str(self.database), "COLUMNS": "100", **environment}
        return self._runner.invoke(app, list(args), input=given, env=env)

    def __call__(self, *args: str, given: str | None = None, **environment: str) -> str:
        """Run a command that must succeed; return what it printed."""
        result = self.run(*args, given=given, **environment)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *args: str, given: str | None = None) -> Any:
        """Run a command that must succeed and answers in JSON."""
        return json.loads(self(*args, "--json", given=given))

    def refused(self, *args: str, code: int, given: str | bytes | None = None) -> str:
        """Run a command that must fail with an exit code; return what it said."""
        result = self.run(*args, given=given)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        return result.stderr
