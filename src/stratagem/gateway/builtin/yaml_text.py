"""YAML in and out, as YAML 1.2 means it: `no` is a text, `012` is twelve, a date is a text.

Only plain values are made, never objects. Aliases are followed, and what they multiply is weighed
by whoever asks; merge keys are counted here, because they multiply while they are read. A key
that stands twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from stratagem import limits

__all__ = ["YamlFault", "dump", "load"]

_MERGE: Final = "tag:yaml.org,2002:merge"
_LINE_ENDS: Final = re.compile("[\r\x85\u2028\u2029\ufeff]")
_RESOLVERS: Final = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.nan|\.NaN)",
        "-+.0123456789",
    ),
    (_MERGE, r"<<", "<"),
)


class YamlFault(ValueError):
    """The text is not YAML that is accepted."""


class _Loader(yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._merged = 0

    def flatten_mapping(self, node: MappingNode) -> None:
        """Put what `<<` refers to in front of a mapping's own entries."""
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        sources = [value for key, value in node.value if key.tag == _MERGE]
        if not sources:
            return
        names = {key.value for key, _ in own if isinstance(key, ScalarNode)}
        for source in self._sources(sources):
            self.flatten_mapping(source)
            self._merged += len(source.value)
            if self._merged > limits.KEYS_MAX * 10:
                raise YamlFault("it merges too much")
            for key, value in source.value:
                if isinstance(key, ScalarNode) and key.value not in names:
                    names.add(key.value)
                    own.append((key, value))
        node.value = own

    def _sources(self, nodes: list[Node]) -> list[MappingNode]:
        found: list[MappingNode] = []
        for node in nodes:
            each: list[Any] = node.value if isinstance(node, SequenceNode) else [node]
            if not all(isinstance(source, MappingNode) for source in each):
                raise YamlFault("<< merges mappings")
            found.extend(each)
        return found

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 -- the library's own signature
        """Make a mapping whose keys are texts."""
        self.flatten_mapping(node)
        made: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise YamlFault("a key is a list or a mapping")
            # As it is written: 1 and true are keys of objects in JSON too, as texts.
            key = key_node.value
            if key in made:
                raise YamlFault(f"the key {key[:64]!r} occurs twice")
            made[key] = self.construct_object(value_node, deep=deep)
        return made


def _integer(_loader: _Loader, node: ScalarNode) -> int:
    text = node.value
    return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> ScalarNode:
    # YAML takes these for line ends, which only an escape keeps apart from others.
    style = '"' if _LINE_ENDS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
# None of the rules of YAML 1.1.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _RESOLVERS:
    _rule = re.compile(rf"^(?:{_pattern})$")
    _Loader.add_implicit_resolver(_tag, _rule, list(_first))
    # Texts that only one of the two versions takes for a number are quoted for both.
    _Dumper.add_implicit_resolver(_tag, _rule, list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def load(text: str) -> Any:
    """Read one document.

    Raises:
        YamlFault: It is none, or more than one.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 -- a safe loader, narrowed further
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlFault(f"{problem}{where}") from error


def dump(value: Any) -> str:
    """Write a plain value."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
