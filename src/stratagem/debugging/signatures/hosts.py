"""Which servers an error names: the hosts of addresses with the port of a well-known service.

A host does not tell problems apart: what is `localhost` in one environment is `db` or
`10.0.0.7` in another, and a signature has a placeholder in its place. But whoever is shown a known
problem has to see that it was another server that refused.
"""

from __future__ import annotations

import re
from typing import Final

from stratagem.debugging.signatures.vocabulary import PORTS

__all__ = ["hosts"]

# Lower ports are lines and times in most texts: `Makefile:22`, `10:53`.
_ADDRESS: Final = re.compile(
    r"(?<![\w.@:/\\-])(?P<plain>[A-Za-z0-9][\w.-]{0,252}+):(?P<plain_port>\d{4,5})(?![\w-])"
    r"|//(?:[^\s/@]{1,100}+@)?(?P<url>[A-Za-z0-9][\w.-]{0,252}+):(?P<url_port>\d{4,5})(?!\d)"
    r"|\(['\"](?P<quoted>[\w.-]{1,253})['\"], (?P<quoted_port>\d{4,5})(?=[,)])"
)
# What has a line in place of a port.
_SOURCE_FILE: Final = re.compile(r"\.(?:[cm]?[jt]sx?|c|cc|cpp|cs|go|h|java|kt|php|py|rb|rs)$")
# What stands before a number that is the port.
_LABELS: Final = frozenset({"port", "tcp", "tcp4", "tcp6", "udp"})
# The machine itself, by whatever name.
_SELF: Final = {"127.0.0.1": "localhost", "0.0.0.0": "localhost"}  # noqa: S104 -- not listened at


def hosts(text: str) -> list[str]:
    """Return the hosts of a text's addresses of well-known services, each once, in their order."""
    found = []
    for match in _ADDRESS.finditer(text):
        form = next(name for name in ("plain", "url", "quoted") if match[name])
        host = match[form].rstrip(".").lower()
        is_host = host not in _LABELS and not host.isdecimal() and not _SOURCE_FILE.search(host)
        if is_host and int(match[f"{form}_port"]) in PORTS:
            found.append(_SELF.get(host, host))
    return list(dict.fromkeys(found))
