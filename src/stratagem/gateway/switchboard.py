"""The parts of the gateway that all callers of a database share, for as long as it is open."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from stratagem.engine.lineage import View
from stratagem.errors import ValidationFailed
from stratagem.gateway.calls import cache_settings
from stratagem.gateway.calls.breakers import Breakers
from stratagem.gateway.calls.call import Call, Finished
from stratagem.gateway.calls.concurrency import Lanes
from stratagem.gateway.calls.executor import Corrector, Executor, Parts
from stratagem.gateway.calls.idempotency import Repeats
from stratagem.gateway.calls.metrics import Metrics
from stratagem.gateway.calls.pipelines import Pipelines
from stratagem.gateway.calls.rate_limits import Rates
from stratagem.gateway.calls.recorder import Recorder
from stratagem.gateway.calls.result_cache import Cache
from stratagem.gateway.definitions.contract import Handler, Runner
from stratagem.gateway.handlers.operation import CheckOperation
from stratagem.gateway.home_loop import HomeLoop
from stratagem.gateway.registry.secrets import GrantedSecrets, grants
from stratagem.gateway.registry.tool_registry import Registry
from stratagem.gateway.registry.tools import Tool
from stratagem.search.foundation import Foundation

if TYPE_CHECKING:
    from stratagem.gateway.advice.recommender import Recommender
    from stratagem.gateway.outbound import Outbound
    from stratagem.gateway.sandbox.sandbox import Sandbox

__all__ = ["Builtin", "GatewaySettings", "Listener", "Runners", "Switchboard"]

logger = logging.getLogger(__name__)

_SANDBOX_NETWORK: Final = "STRATAGEM_SANDBOX_NETWORK"
_YES: Final = frozenset({"1", "true", "yes", "on"})
# Told of what happens: what it is, and its data.
Listener = Callable[[str, Mapping[str, Any]], None]
# A definition in the documented form, without a handler.
Builtin = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the gateway may reach, and where it takes secrets from."""

    allow_hosts: tuple[str, ...] = ()
    allow_callables: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def sandbox_network(self) -> bool:
        """Whether code may have the whole network, private addresses too."""
        return self.environment.get(_SANDBOX_NETWORK, "").casefold() in _YES


class Runners(Mapping[str, Runner]):
    """Runners by the type of their handler, each made when it is first needed."""

    def __init__(self, makers: Mapping[str, Callable[[], Runner]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Runner] = {}

    def __getitem__(self, kind: str) -> Runner:
        runner = self._made.get(kind)
        if runner is None:
            runner = self._made.setdefault(kind, self._makers[kind]())
        return runner

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def check(self, handler: Handler) -> list[str]:
        """Check a handler when it is registered; return warnings.

        Raises:
            ValidationFailed: It cannot work.
        """
        kind = handler.get("type")
        if not isinstance(kind, str) or kind not in self._makers:
            raise ValidationFailed(
                f"There is no handler of type {kind!r}.",
                field="handler.type",
                allowed=sorted(self._makers),
                hint=f"Choose one of: {', '.join(sorted(self._makers))}.",
            )
        return self[kind].check(handler)

    async def close(self) -> None:
        """End what was begun."""
        for runner in self._made.values():
            try:
                await runner.close()
            except Exception:  # the others must be ended too
                logger.exception("a runner did not end well")


class Switchboard:
    """Registry, runners and the path between them."""

    def __init__(
        self,
        foundation: Foundation,
        *,
        runners: Callable[[Switchboard], Runners],
        builtin: Sequence[Tool],
        check_operation: CheckOperation,
        settings: GatewaySettings | None = None,
        corrector: Callable[[Switchboard], Corrector] | None = None,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.foundation = foundation
        self.settings = settings or GatewaySettings()
        self.home = HomeLoop()
        self._random = random
        self._listeners: list[Listener] = []
        self.pipelines = Pipelines(self)
        self.runners = runners(self)
        self.registry = Registry(builtin, self.runners.check)
        self.recorder = Recorder(foundation)
        self.cache = Cache(time.monotonic)
        self._cache_rules = 0
        self._purged_at = 0
        foundation.purge_listeners.before.append(self.recorder.settle)
        foundation.purge_listeners.after.append(self.cache.clear)
        self.lanes = Lanes()
        self.repeats = Repeats(self)
        self.metrics = Metrics()
        self.breakers = Breakers(time.monotonic, listener=self._breaker_changed)
        self.corrector = corrector(self) if corrector is not None else None
        self.executor = Executor(
            Parts(
                resolve=self._resolve,
                check_operation=check_operation,
                secrets=self._secrets,
                runners=self.runners,
                rates=Rates(time.monotonic),
                cache=self.cache,
                forgotten=self._forgotten,
                breakers=self.breakers,
                lanes=self.lanes,
                record=self.recorder.add,
                watch=self._watch,
                microseconds=foundation.store.now,
                monotonic=time.monotonic,
                new_id=self.new_id,
                corrector=self.corrector,
            )
        )

    @cached_property
    def outbound(self) -> Outbound:
        """The guarded way to other hosts."""
        from stratagem.gateway.outbound import Outbound

        return Outbound(self.settings.allow_hosts)

    @cached_property
    def recommender(self) -> Recommender:
        """What chooses tools for a request."""
        from stratagem.gateway.advice.recommender import Recommender

        return Recommender(self)

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where code that is not trusted runs."""
        from stratagem.gateway.sandbox.sandbox import Sandbox

        return Sandbox(network=self.settings.sandbox_network)

    def new_id(self, kind: str) -> str:
        """Return an id that nobody has."""
        return f"{kind}_{self._random(8).hex()}"

    async def execute(self, call: Call) -> Finished:
        """Run a call, from whichever loop."""
        return await self.home.join(lambda: self.executor.execute(call))

    def run(self, call: Call) -> Finished:
        """Run a call, from a thread without a loop."""
        return self.home.run(lambda: self.executor.execute(call))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a listener told of what happens, on the home loop; return what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, what: str, data: Mapping[str, Any]) -> None:
        """Tell the listeners; from the home loop, or from any thread."""
        if self._listeners:
            self.home.post(lambda: self._tell_all(what, data))

    def close(self) -> None:
        """End connections and processes, and write what is still to be recorded."""
        self.home.close(self.runners.close)
        self.recorder.close()

    def _tell_all(self, what: str, data: Mapping[str, Any]) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(what, data)
            except Exception:  # one that fails must not keep others from hearing
                logger.exception("a listener failed at %s", what)

    def _watch(self, what: str, data: Mapping[str, Any]) -> None:
        if what == "finished":
            self.metrics.count(data)
        self.tell(what, data)

    def _breaker_changed(self, tool: str, state: str, reason: str) -> None:
        self.tell("breaker", {"toolName": tool, "state": state, "reason": reason})

    async def _resolve(self, branch: str, name: str) -> tuple[Tool, View]:
        return await self.foundation.read_async(lambda: self._look_up(branch, name))

    def _look_up(self, branch: str, name: str) -> tuple[Tool, View]:
        reader = self.foundation.store.reader()
        view = self.foundation.views.view(reader, branch)
        return self.registry.find(reader, view, name), view

    async def _forgotten(self, tool: str) -> tuple[int, int, int]:
        kept = await self.foundation.read_async(lambda: self._kept(tool))
        if kept.version != self._cache_rules:
            self._cache_rules = kept.version
            self.cache.configure(**kept.rules)
        if kept.forgotten[-1] != self._purged_at:
            # Another process has purged something: results from before are not held on to.
            self._purged_at = kept.forgotten[-1]
            self.cache.clear()
        return kept.forgotten

    def _kept(self, tool: str) -> cache_settings.Kept:
        reader = self.foundation.store.reader()
        return cache_settings.read(reader, self.foundation.views.view(reader, "default"), tool)

    async def _secrets(self, tool: Tool) -> GrantedSecrets:
        if "${" in str(tool.handler):
            return await self.secrets_of(tool.name)
        return GrantedSecrets(tool.name, {}, self.settings.environment)

    async def secrets_of(self, owner: str) -> GrantedSecrets:
        """Return the secrets that were granted to a tool, or to an upstream server."""
        return await self.foundation.read_async(lambda: self._read_grants(owner))

    def _read_grants(self, owner: str) -> GrantedSecrets:
        granted: dict[str, frozenset[str]] = {}
        # Whoever may write to another branch must not be able to grant anything by it.
        reader = self.foundation.store.reader()
        view = self.foundation.views.view(reader, "default")
        for each in grants(reader, view):
            if each["tool"] == owner:
                hosts = granted.get(each["name"], frozenset())
                granted[each["name"]] = hosts | {each["host"]}
        return GrantedSecrets(owner, granted, self.settings.environment)
