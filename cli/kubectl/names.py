"""Objects as people name them to kubectl, as the keys that the commands of `oarlock` take."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.cli.look.keys import dependents_called, kind_words, queues_called
from oarlock.cli.problems import InputProblem
from oarlock.controllers.registry import WATCHED, resource_of


def keys_of(words: Sequence[str], namespace: str) -> list[str]:
    """TYPE/NAME..., or TYPE NAME..., as TYPE/NAMESPACE/NAME; of a kind without namespaces TYPE//NAME.

    Upstream: cli-runtime/pkg/resource/builder.go. Raises InputProblem.
    """
    if any("/" in word for word in words):
        pairs = [_pair(word) for word in words]
    elif len(words) == 1:
        raise InputProblem(f"{words[0]!r}: of which type? Write TYPE/NAME, such as deploy/{words[0]}")
    else:
        pairs = [(words[0], name) for name in words[1:]]
    return [f"{kind}/{namespace if _namespaced(kind) else ''}/{name}" for kind, name in pairs]


def _pair(word: str) -> tuple[str, str]:
    kind, _, name = word.partition("/")
    if not kind or not name or "/" in name:
        raise InputProblem(f"{word!r} is no TYPE/NAME, such as deploy/web; name the namespace with -n")
    return kind, name


def _namespaced(kind: str) -> bool:
    """Raises InputProblem for what names no kind."""
    queues = queues_called(kind)
    if not queues and not dependents_called(kind):
        raise InputProblem(f"{kind!r} is no type that the fleet looks after: {', '.join(kind_words())}")
    return not queues or WATCHED[resource_of(queues[0])].namespaced


def types_beginning(begun: str) -> list[str]:
    """What a name may begin with: "deploy/"."""
    return [f"{word}/" for word in kind_words() if f"{word}/".startswith(begun)]
