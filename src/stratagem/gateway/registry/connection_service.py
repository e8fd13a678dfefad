"""Named connections of the standard tools, for one caller."""

from __future__ import annotations

from difflib import get_close_matches

from stratagem import limits
from stratagem.engine.events import Draft
from stratagem.errors import ResourceNotFound, ValidationFailed
from stratagem.gateway import inputs, names
from stratagem.gateway.registry.answers import ConnectionDocument, ConnectionList, RemovedConnection
from stratagem.gateway.registry.connections import check_settings, read_connections
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Transaction

__all__ = ["ConnectionService"]


class ConnectionService:
    """Sets, removes and lists connections."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._foundation = foundation
        self._caller = caller

    def set(self, given: inputs.ConnectionInput) -> ConnectionDocument:
        """Set a connection, or replace it; the tools use it from the next call on."""
        settings = check_settings(given.kind, given.settings)
        document: ConnectionDocument = {
            "name": given.name,
            "kind": given.kind,
            "settings": settings,
        }

        def work(transaction: Transaction) -> ConnectionDocument:
            known = read_connections(self._foundation, transaction)
            if given.name not in known and len(known) >= limits.NAMED_CONNECTIONS_MAX:
                raise ValidationFailed(
                    f"There are {len(known)} connections already; that is the limit.",
                    field="name",
                    limit=limits.NAMED_CONNECTIONS_MAX,
                    hint="Remove an unused one: connection_remove.",
                )
            self._append(
                transaction, Draft(names.CONNECTION_SET, document, names.CONNECTIONS, given.name)
            )
            return document

        return self._foundation.write(self._caller, work)

    def remove(self, given: inputs.ConnectionNameInput) -> RemovedConnection:
        """Remove a connection: tools that have no other say so from the next call on."""

        def work(transaction: Transaction) -> RemovedConnection:
            known = read_connections(self._foundation, transaction)
            if given.name not in known:
                near = get_close_matches(given.name, known, n=3)
                raise ResourceNotFound(
                    f"There is no connection named {given.name!r}.",
                    field="name",
                    similar=near,
                    hint=f"Did you mean {' or '.join(near)}?" if near else "See connections_list.",
                )
            content = {"name": given.name}
            draft = Draft(names.CONNECTION_REMOVED, content, names.CONNECTIONS, given.name)
            self._append(transaction, draft)
            return {"name": given.name, "removed": True}

        return self._foundation.write(self._caller, work)

    def list(self, _given: inputs.NothingInput) -> ConnectionList:
        """Return the connections there are, with references to secrets and never their values."""
        with self._foundation.store.snapshot() as reader:
            found = read_connections(self._foundation, reader)
        return {
            "connections": [
                {"name": each["name"], "kind": each["kind"], "settings": each["settings"]}
                for _name, each in sorted(found.items())
            ]
        }

    def _append(self, transaction: Transaction, draft: Draft) -> None:
        view = self._foundation.views.view(transaction, "default")
        transaction.append(view.branch, [draft])
