"""What the server must know of one kind, except for the content of its objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from oarlock.sandbox.apiserver.printing.columns import Printer
from oarlock.sandbox.apiserver.printing.printers import NAME_AND_AGE, PRINTERS

if TYPE_CHECKING:  # its rules are written with kinds
    from oarlock.sandbox.apiserver.custom.rules import CustomRules

Obj = dict[str, Any]

PLURALS: Final = {"Endpoints": "endpoints"}
"""Those that do not follow the rule."""


class Cascade(StrEnum):
    """What happens to dependents when a delete does not say (upstream: DefaultGarbageCollectionPolicy)."""

    BACKGROUND = "background"  # the collector removes them afterwards
    ORPHAN = "orphan"  # they stay, without an owner (ReplicationControllers)
    UNSUPPORTED = "unsupported"  # the kind has no dependents: orphan and foreground are ignored


def no_selectable(obj: Obj) -> dict[str, str]:
    """Most kinds can be selected by name and namespace only."""
    return {}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One resource in one version.

    `name` is the key of the store: the Kubernetes kind, for a custom one with its group (`Widget.example.com`).
    """

    name: str
    group: str = ""
    version: str = "v1"
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: frozenset[str] = frozenset()
    # generation counts changes of spec (upstream: the strategies' PrepareForUpdate)
    has_generation: bool = False
    # a PUT without resourceVersion overwrites (upstream: AllowUnconditionalUpdate)
    unconditional_update: bool = True
    # a PUT of an absent object creates it (upstream: AllowCreateOnUpdate)
    create_on_update: bool = False
    # deletion waits for terminationGracePeriodSeconds (pods)
    graceful: bool = False
    # DELETE answers with the object instead of a Status (upstream: ReturnDeletedObject)
    returns_deleted: bool = False
    cascade: Cascade = Cascade.BACKGROUND
    # fields beyond metadata.name and metadata.namespace that fieldSelector may name
    selectable: Callable[[Obj], dict[str, str]] = no_selectable
    # the Kubernetes kind and the names in paths, where they do not follow from `name`
    kind: str = ""
    list_name: str = ""
    plural: str = ""
    singular: str = ""
    printer: Printer = NAME_AND_AGE
    # of a custom kind: the rules of this version, and the other versions in which its objects are served
    custom: CustomRules | None = None
    served: bool = True
    other_versions: tuple[Kind, ...] = ()

    def __post_init__(self) -> None:
        """Spell its names as upstream does: apimachinery/pkg/api/meta/restmapper.go, UnsafeGuessKindToResource."""
        kind = self.kind or self.name
        singular = kind.lower()
        stem, ending = (
            (singular[:-1], "ies") if singular[-1] == "y" else (singular, "es" if singular[-1] == "s" else "s")
        )
        plural = PLURALS.get(kind, stem + ending)
        for field, value in (
            ("kind", kind),
            ("list_name", kind + "List"),
            ("plural", plural),
            ("singular", singular),
        ):
            object.__setattr__(self, field, getattr(self, field) or value)
        if self.printer is NAME_AND_AGE:
            object.__setattr__(self, "printer", PRINTERS.get(self.name, NAME_AND_AGE))

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def versions(self) -> tuple[Kind, ...]:
        """Every version that is served; the stored one first, if it is."""
        return (self, *self.other_versions) if self.served else self.other_versions

    @property
    def has_status(self) -> bool:
        """Whether status is written through its own subresource, and ignored elsewhere."""
        return "status" in self.subresources
