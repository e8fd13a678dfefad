"""Progress is for people who wait."""

from types import SimpleNamespace

import pytest

from stratagem.surfaces.cli import progress as module
from stratagem.surfaces.cli.output import Output


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock that the module reads, and nobody else."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_what_is_quick_says_nothing(time: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with module.progress(Output()) as report:
        time[0] += 0.5
        report(1, 2, "working")

    assert capsys.readouterr().err == ""


def test_elsewhere_than_on_a_terminal_a_line_now_and_then(
    time: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with module.progress(Output()) as report:
        for done in range(30):
            time[0] += 1
            report(1000 * done, 30_000, "working")

    assert capsys.readouterr().err.splitlines() == [
        "working: 9,000 of 30,000",
        "working: 19,000 of 30,000",
        "working: 29,000 of 30,000",
    ]


def test_lines_tell_of_what_goes_on_and_not_of_what_is_done(
    time: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with module.progress(Output()) as report:
        for seconds, done in ((5, 1), (6, 2), (1, 3), (18, 4)):
            time[0] += seconds
            report(done, 4, "copying")

    assert capsys.readouterr().err == "copying: 2 of 4\n"


def test_on_a_terminal_a_bar(
    time: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    with module.progress(Output()) as report:
        for what in ("reading", "writing"):
            time[0] += 2
            report(5, 10, what)

    shown = capsys.readouterr().err
    assert "reading" in shown
    assert "5/10" in shown


def test_programs_are_left_alone(time: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with module.progress(Output(json=True)) as report:
        time[0] += 100
        report(1, 2, "working")

    assert capsys.readouterr().err == ""
