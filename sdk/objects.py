"""Objects as types. The type of an object makes its CustomResourceDefinition, what of it is cached, and the message
where one does not fit.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec

from oarlock.sdk.kinds import LABEL, LABEL_TOLD, BadDefinition, Kind
from oarlock.sdk.types import pydantic_models


class Struct(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """A part of an object: `tls_secret` in Python is `tlsSecret` in the API. Fields without a default are required."""


class Meta(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """An object's metadata, as far as controllers read it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    creation_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    deletion_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Struct):
    """One condition of a status, as metav1.Condition: `conditions: list[oarlock.Condition] = []` in the status's type.

    Leave `last_transition_time` out: it is set when the status of the condition has changed, and kept otherwise.
    """

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    message: str = ""
    observed_generation: int = 0
    last_transition_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class Object(msgspec.Struct, rename="camel", kw_only=True):
    """The base of a user's kinds: `@oarlock.resource("example.com/v1") class Website(oarlock.Object): spec: ...`."""

    kind: ClassVar[Kind]
    served: ClassVar[Served]

    metadata: Meta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace


AnyKind = Kind | str | type[Object]
"""How a user says a kind: in full, as "apps/v1 Deployment" or, of those declared, "Deployment"; or a class."""


class Served(msgspec.Struct, frozen=True):
    """What the CustomResourceDefinition says beside the schema.

    `columns`: of `kubectl get`, heading -> path such as `spec.image`. `selectable`: paths for field selectors.
    `scale`: `(path of replicas in the spec, in the status, path of the selector or "")`, for `kubectl scale`.
    """

    short_names: tuple[str, ...] = ()
    columns: Mapping[str, str] = {}
    selectable: tuple[str, ...] = ()
    scale: tuple[str, str, str] | None = None
    description: str = ""


T = TypeVar("T", bound=type[Object])
_GROUP = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+"


def resource(
    api_version: str,
    *,
    plural: str = "",
    namespaced: bool = True,
    short_name: str = "",
    columns: Mapping[str, str] = {},
    selectable: tuple[str, ...] = (),
    scale: tuple[str, str, str] | None = None,
) -> Callable[[T], T]:
    """Say where a kind of one's own is found in the API: `@oarlock.resource("example.com/v1")` above its class.

    Raises BadDefinition.
    """
    if not isinstance(api_version, str):
        called = getattr(api_version, "__name__", "the class")
        raise BadDefinition(
            f'@oarlock.resource has to say where: write @oarlock.resource("example.com/v1") above {called}'
        )
    group, _, version = api_version.rpartition("/")
    if not re.fullmatch(_GROUP, group) or not version.startswith("v"):
        raise BadDefinition(
            f"resource({api_version!r}): a kind of one's own needs <group>/<version>, as example.com/v1"
        )
    if not isinstance(short_name, str) or (short_name and not re.fullmatch(LABEL, short_name)):
        raise BadDefinition(f"resource({api_version!r}): short_name={short_name!r} has to be {LABEL_TOLD}; as st")
    if not isinstance(columns, Mapping):
        raise BadDefinition(f"resource({api_version!r}): columns= has to be a dict: heading -> path, as spec.image")
    if isinstance(selectable, str):
        raise BadDefinition(f"resource({api_version!r}): selectable={selectable!r} has to be a list of paths")

    def named(cls: T) -> T:
        if not (isinstance(cls, type) and issubclass(cls, Object)):
            raise BadDefinition(f"{cls.__name__}: a kind is a subclass of oarlock.Object")
        cls.kind = Kind(api_version, cls.__name__, plural, namespaced)
        description = " ".join((cls.__doc__ or "").split())
        cls.served = Served(tuple(filter(None, (short_name,))), dict(columns), selectable, scale, description)
        return cls

    return named


def to_json(obj: Any) -> Any:
    """A typed object or part as dicts, lists and scalars, with the API's names. An Object gets apiVersion and kind."""
    try:
        plain = _builtins(obj)
    except TypeError:
        # Perhaps it holds a set whose members have no order, as those of an Enum; what is no JSON raises again.
        plain = _builtins(_with_sets_as_lists(obj))
    if isinstance(obj, Object):
        kind = type(obj).kind
        return {"apiVersion": kind.api_version, "kind": kind.kind, **plain}
    return plain


def _builtins(value: Any) -> Any:
    """Sets are sorted: their own order is another one in each process, so the same wish would differ."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encoded, order="deterministic")


def _encoded(value: Any) -> Any:
    for scalar in (str, int, float):  # of a class of the user's, as YAML libraries have them
        if isinstance(value, scalar):
            return scalar(value)
    return pydantic_models.encoded(value)


def _with_sets_as_lists(value: Any) -> Any:
    """A copy in which each set is a list that is sorted by the JSON of its members."""
    match value:
        case set() | frozenset():
            return sorted(map(_with_sets_as_lists, value), key=lambda each: msgspec.json.encode(_builtins(each)))
        case dict():
            return {name: _with_sets_as_lists(each) for name, each in value.items()}
        case list() | tuple():
            return [_with_sets_as_lists(each) for each in value]
        case msgspec.Struct():
            done = copy.copy(value)
            for field in value.__struct_fields__:
                if each := getattr(value, field):
                    msgspec.structs.force_setattr(done, field, _with_sets_as_lists(each))
            return done
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            same = copy.copy(value)
            for name in value.__dataclass_fields__:
                if each := getattr(value, name, None):
                    object.__setattr__(same, name, _with_sets_as_lists(each))  # it may be frozen
            return same
    return value
