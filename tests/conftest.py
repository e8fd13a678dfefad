"""What every test stands on."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Speed is measured by benchmarks, never by a test; a failure prints how to repeat it.
settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's own database and settings out of the tests."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("STRATAGEM_", "XDG_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        yield
