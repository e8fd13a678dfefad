"""Progress in a log: lines now and then, while there is something left to do."""

from types import SimpleNamespace

import pytest

from stratagem.surfaces.cli import progress
from stratagem.surfaces.cli.output import Output


def test_lines_tell_of_what_goes_on_and_not_of_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    report = progress.Reporter(Output())

    for second, done in ((5, 1), (11, 2), (12, 3), (30, 4)):
        now[0] = second
        report(done, 4, "copying")

    assert capsys.readouterr().err == "copying: 2 of 4\n"
