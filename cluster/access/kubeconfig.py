"""Reading kubeconfig files: where they are, how several merge, and which entries a context means.

Upstream: client-go/tools/clientcmd/{loader,client_config}.go. The first file to name a cluster, user or context
wins; the first to set current-context wins; relative paths count from the folder of the file they stand in.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock.cluster.access.credentials import ConfigError, read_file


@dataclass(frozen=True, slots=True)
class Entry:
    """One cluster, user or context: its values, and the file that holds it."""

    name: str
    values: Mapping[str, Any]
    path: Path

    def text(self, key: str) -> str:
        """A value that must be a string; "" if absent."""
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"kubeconfig {self.path}: {key} of {self.name!r} must be a string")
        return value

    def flag(self, key: str) -> bool:
        """A value that must be true or false; False if absent."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise ConfigError(f"kubeconfig {self.path}: {key} of {self.name!r} must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The members of a value that must be a list, as text; empty if absent."""
        value = self.values.get(key) or []
        if not isinstance(value, list):
            raise ConfigError(f"kubeconfig {self.path}: {key} of {self.name!r} must be a list")
        return tuple(map(str, value))

    def file(self, key: str) -> Path | None:
        """A path, made absolute from the folder of the kubeconfig; None if absent."""
        value = self.text(key)
        return self.path.parent / value if value else None

    def data(self, key: str) -> bytes:
        """A value in base64, decoded; empty if absent."""
        value = self.text(key)
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"kubeconfig {self.path}: {key} of {self.name!r} is not base64") from error


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """All files merged."""

    paths: tuple[Path, ...]
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]
    current_context: str

    def select(self, context: str = "") -> tuple[Entry, Entry, Entry]:
        """(context, cluster, user) of the named or the current context; the user may be empty.

        Raises ConfigError naming what is missing and what there is instead.
        """
        where = f"kubeconfig {':'.join(str(path) for path in self.paths)}"
        wanted = context or self.current_context
        if not wanted:
            raise ConfigError(f"{where}: no current-context is set; choose one of: {_names(self.contexts)}")
        chosen = self.contexts.get(wanted)
        if chosen is None:
            raise ConfigError(f"{where}: no context named {wanted!r}; there are: {_names(self.contexts)}")
        cluster = self.clusters.get(chosen.text("cluster"))
        if cluster is None:
            raise ConfigError(
                f"{where}: context {wanted!r} names the cluster {chosen.text('cluster')!r}, "
                f"which has no entry; there are: {_names(self.clusters)}"
            )
        user_name = chosen.text("user")
        user = self.users.get(user_name) if user_name else Entry("", {}, chosen.path)
        if user is None:
            raise ConfigError(
                f"{where}: context {wanted!r} names the user {user_name!r}, "
                f"which has no entry; there are: {_names(self.users)}"
            )
        return chosen, cluster, user


def _names(entries: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(entries)) or "none"


def read(paths: Sequence[Path], *, all_must_exist: bool) -> Kubeconfig:
    """Read and merge. Raises ConfigError: no file at all, unreadable, not YAML, wrong shape."""
    present = [path for path in paths if all_must_exist or not _absent(path)]
    if not present:
        tried = ", ".join(str(path) for path in paths)
        raise ConfigError(f"no kubeconfig found at {tried}; give one with --kubeconfig or KUBECONFIG")
    clusters: dict[str, Entry] = {}
    users: dict[str, Entry] = {}
    contexts: dict[str, Entry] = {}
    current = ""
    for path in present:
        document = _parse(path)
        for kind, singular, into in (
            ("clusters", "cluster", clusters),
            ("users", "user", users),
            ("contexts", "context", contexts),
        ):
            for entry in _entries(document, kind, singular, path):
                into.setdefault(entry.name, entry)
        current = current or Entry("the file", document, path).text("current-context")
    return Kubeconfig(tuple(present), clusters, users, contexts, current)


def _absent(path: Path) -> bool:
    """No, where it may not be looked at: whoever reads it then says why."""
    try:
        return not path.exists()
    except OSError:
        return False


def _parse(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  # slow to load, and commands that look at Redis read no file

    raw = read_file(path, "kubeconfig")
    try:
        document = yaml.safe_load(raw)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigError(f"kubeconfig {path} is not valid YAML{where}: {problem}") from None
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path} is not a kubeconfig: expected a mapping at the top")
    return document


def _entries(document: Mapping[str, Any], kind: str, singular: str, path: Path) -> list[Entry]:
    listed = document.get(kind) or []
    if not isinstance(listed, list):
        raise ConfigError(f"kubeconfig {path}: {kind} must be a list")
    entries = []
    for item in listed:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ConfigError(f"kubeconfig {path}: every entry of {kind} needs a name")
        values = item.get(singular) or {}
        if not isinstance(values, dict):
            raise ConfigError(f"kubeconfig {path}: {singular} of {item['name']!r} must be a mapping")
        entries.append(Entry(item["name"], values, path))
    return entries
