"""Controllers as a user defines them: the decorators `desired` and `steps`, and what they say of a controller.

A definition is called like the function that it decorates, so a test needs no cluster.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, overload

import msgspec

from oarlock.sdk.children import Children, given_to
from oarlock.sdk.kinds import BadDefinition, Kind, kind_of
from oarlock.sdk.objects import AnyKind, Object
from oarlock.sdk.types.fields import check as check_fields

Json = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])


class Watch(msgspec.Struct, frozen=True):
    """Objects of another kind that matter to a controller, though it does not own them. See `watch`."""

    kind: Kind
    wakes: Callable[[Any], Iterable[str]] | None = None
    names: Callable[[Any], Iterable[str]] | None = None
    fields: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def watch(
    kind: AnyKind,
    *,
    wakes: Callable[[Any], Iterable[str]] | None = None,
    names: Callable[[Any], Iterable[str]] | None = None,
    fields: Sequence[str] = (),
    writes: Sequence[Literal["create", "patch", "delete"]] = (),
) -> Watch:
    """Watch objects of another kind, by an index function, one of two:

    `names`: from an object of one's own to the keys of those that it refers to (`lambda site: [f"{ns}/{secret}"]`).
    `wakes`: from one of those to the keys of one's own objects that it concerns (`lambda pod: [pod namespace]`).
    `fields`: paths such as `spec.image`; beside the identity only these are cached. Empty: all.
    `writes`: what a function of the steps style does to them: create, patch, delete. `oarlock rbac` asks for it.

    Raises BadDefinition.
    """
    found = kind_of(kind)
    _lists(f"watch({found})", fields=fields, writes=writes)
    if (wakes is None) == (names is None):
        raise BadDefinition(f"watch({found}): give it wakes= or names=, one of the two")
    if not callable(wakes or names):
        raise BadDefinition(
            f"watch({found}): {wakes or names!r} has to be a function, from an object to a list of keys"
        )
    if set(writes) - {"create", "patch", "delete"}:
        raise BadDefinition(f"watch({found}): writes={list(writes)} has to be some of create, patch, delete")
    return Watch(found, wakes, names, tuple(fields), tuple(writes))


class Retry(msgspec.Struct, frozen=True):
    """How a failed turn is tried again: after `base_s`, doubled each time, up to `max_s`."""

    base_s: float = 0.005
    max_s: float = 1000.0


QUEUES_OWN = Retry()
"""The back-off of the queue itself."""


class Result(msgspec.Struct):
    """What is wanted: `children`, whole and each with a name; the `status` of the object, None to leave it as it is.

    `again_s`: look again after so many seconds. `events`: (reason, message), shown by `kubectl describe`.
    """

    children: Sequence[Json | Object] = ()
    status: Any = None
    again_s: float | None = None
    events: Sequence[tuple[str, str]] = ()


class Undo(NamedTuple):
    """The function that undoes what a controller does outside. `raw`: it gets its object as a plain dict."""

    function: Callable[..., Any]
    raw: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One controller. `name`: of its queue, its metrics and its events; DNS label. `kind`: of its own objects.

    `model`: the type its objects are decoded to; None for plain dicts. `children`: the kinds that it makes.
    `finalizer`: held while something outside is to be undone; empty for none. `every_s`: look at each object so often.
    `concurrency`: objects at once in a process; 0: as many as there are workers' batches.
    `rate_per_s`: turns that begin in a second, in all processes together; 0: no bound.
    """

    style: Literal["desired", "steps"]
    function: Callable[..., Any]
    name: str
    kind: Kind
    model: type[Object] | None
    children: tuple[Kind, ...] = ()
    watches: tuple[Watch, ...] = ()
    fields: tuple[str, ...] = ()
    finalizer: str = ""
    every_s: float | None = None
    concurrency: int = 0
    rate_per_s: float = 0.0
    retry: Retry = Retry()

    undo: list[Undo] = []
    """Of the function that `finalize` was put above, if any."""

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @overload
    def finalize(self, function: F) -> F: ...
    @overload
    def finalize(self, *, raw: bool) -> Callable[[F], F]: ...
    def finalize(self, function: Any = None, *, raw: bool = False) -> Any:
        """Put it above the function that undoes what it has done outside: `def f(obj, ctx)`, sync or async.

        It runs once the object is being deleted; when it has returned, the finalizer is removed and the object goes. It
        runs again if it raises. `@name.finalize(raw=True)`: it gets the object as a plain dict, read live, so it runs
        for one that does not fit its type too. Raises BadDefinition.
        """
        if function is None:
            return partial(self._undone_by, raw=raw)
        return self._undone_by(function, raw=raw)

    def _undone_by(self, function: F, *, raw: bool) -> F:
        if not self.finalizer:
            raise BadDefinition(f"{self.name}: @{self.name}.finalize needs a finalizer: give @steps a finalizer=")
        if self.undo:
            raise BadDefinition(f"{self.name} has a function to finalize already: {self.undo[0].function.__name__}")
        self.undo.append(Undo(function, raw))
        return function

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function itself. Children that it gets know what the controller declares, as in a turn."""
        obj = next(iter((*args, *options.values())), None)
        given = {name: self._given(each, obj) for name, each in options.items()}
        return self.function(*(self._given(each, obj) for each in args), **given)

    def _given(self, argument: Any, obj: Any) -> Any:
        if not isinstance(argument, Children):
            return argument
        namespace = obj.namespace if isinstance(obj, Object) else obj["metadata"].get("namespace") or ""
        return given_to(argument, self.name, namespace, self.children, [each.kind for each in self.watches])


def desired(
    kind: AnyKind,
    *,
    children: Sequence[AnyKind] = (),
    watches: Sequence[Watch] = (),
    fields: Sequence[str] = (),
    every_s: float | None = None,
    name: str = "",
    concurrency: int = 0,
    rate_per_s: float = 0.0,
    retry: Retry = QUEUES_OWN,
) -> Callable[[Callable[..., Result]], Definition]:
    """A controller that says what is wanted: above `def f(obj, children) -> Result`, a pure function.

    The fleet compares, applies server-side what differs, deletes children that the result no longer holds, sets owner
    references and writes the status. Raises BadDefinition.
    """
    _has_a_kind("desired", kind)

    def defined(function: Callable[..., Result]) -> Definition:
        if inspect.iscoroutinefunction(function):
            raise BadDefinition(f"{function.__name__}: a desired-state function waits for nothing; use @oarlock.steps")
        return _definition(
            "desired", function, kind, children, watches, fields, "", every_s, name, concurrency, rate_per_s, retry
        )

    return defined


def steps(
    kind: AnyKind,
    *,
    children: Sequence[AnyKind] = (),
    watches: Sequence[Watch] = (),
    fields: Sequence[str] = (),
    finalizer: str = "",
    every_s: float | None = None,
    name: str = "",
    concurrency: int = 0,
    rate_per_s: float = 0.0,
    retry: Retry = QUEUES_OWN,
) -> Callable[[Callable[..., Any]], Definition]:
    """A controller that does things one by one: above `def f(obj, ctx)`, sync or async. Raises BadDefinition."""
    _has_a_kind("steps", kind)

    def defined(function: Callable[..., Any]) -> Definition:
        return _definition(
            "steps", function, kind, children, watches, fields, finalizer, every_s, name, concurrency, rate_per_s, retry
        )

    return defined


def _definition(
    style: Literal["desired", "steps"],
    function: Callable[..., Any],
    on: AnyKind,
    children: Sequence[AnyKind],
    watches: Sequence[Watch],
    fields: Sequence[str],
    finalizer: str,
    every_s: float | None,
    name: str,
    concurrency: int,
    rate_per_s: float,
    retry: Retry,
) -> Definition:
    name = name or getattr(function, "__name__", "").replace("_", "-")
    if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", name):
        raise BadDefinition(f"{name!r} cannot name a controller: letters, digits and dashes, at most 40; give it name=")
    if not callable(function):
        raise BadDefinition(f"{name}: @oarlock.{style} stands above a function, not a {type(function).__name__}")
    _lists(name, children=children, watches=watches, fields=fields)
    _numbers(name, every_s=0 if every_s is None else every_s, concurrency=concurrency, rate_per_s=rate_per_s)
    for each in watches:
        if not isinstance(each, Watch):
            raise BadDefinition(f"{name}: watches= holds {each!r:.80}: write oarlock.watch(...), with names= or wakes=")
    if not isinstance(retry, Retry):
        raise BadDefinition(f"{name}: retry={retry!r} has to be an oarlock.Retry, as oarlock.Retry(base_s=1, max_s=60)")
    _numbers(f"{name}: Retry", base_s=retry.base_s, max_s=retry.max_s)
    if not isinstance(finalizer, str):
        raise BadDefinition(f'{name}: finalizer={finalizer!r} has to be a text, as "dns.example.com/record"')
    if finalizer and not re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9_.-]+", finalizer):
        raise BadDefinition(f"{name}: finalizer {finalizer!r} has to be <domain>/<word>, as dns.example.com/record")
    if every_s is not None and not 0 < every_s < 1e9:
        raise BadDefinition(f"{name}: every_s={every_s:g} has to be more than nothing, and less than 1e9")
    if concurrency < 0:
        raise BadDefinition(f"{name}: concurrency={concurrency} has to be 0, for no bound, or more")
    if rate_per_s and not 1e-6 <= rate_per_s <= 1e6:
        raise BadDefinition(f"{name}: rate_per_s={rate_per_s:g} has to be 0, for no bound, or from 1e-6 to 1e6")
    if not 0 <= retry.base_s <= retry.max_s < 1e9:
        raise BadDefinition(f"{name}: Retry(base_s={retry.base_s:g}, max_s={retry.max_s:g}): give 0 <= base_s <= max_s")
    model = on if isinstance(on, type) else None
    check_fields(fields, model, name)
    for each in watches:
        check_fields(each.fields, None, name)
    return Definition(
        style=style,
        function=function,
        name=name,
        kind=kind_of(on),
        model=model,
        children=tuple(kind_of(each) for each in children),
        watches=tuple(watches),
        fields=tuple(fields),
        finalizer=finalizer,
        every_s=every_s,
        concurrency=concurrency,
        rate_per_s=float(rate_per_s),
        retry=retry,
    )


def _has_a_kind(style: str, kind: Any) -> None:
    """Of a decorator without parentheses the kind is the function, which no other word would ever say. Raises
    BadDefinition.
    """
    if isinstance(kind, Definition) or inspect.isroutine(kind):
        called = kind.name if isinstance(kind, Definition) else kind.__name__
        raise BadDefinition(f"{called}: @oarlock.{style} has to say of which kind: write @oarlock.{style}(Site)")
    kind_of(kind)


def _lists(of: str, **options: Any) -> None:
    """A text would count as a list of its letters. Raises BadDefinition."""
    for option, given in options.items():
        if isinstance(given, str):
            raise BadDefinition(f"{of}: {option}={given!r} has to be a list: write [{given!r}]")
        if not isinstance(given, Iterable):
            raise BadDefinition(f"{of}: {option}= has to be a list, not {_told(given)}: write {option}=[...]")


def _numbers(of: str, **options: Any) -> None:
    """Raises BadDefinition."""
    for option, given in options.items():
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise BadDefinition(f"{of}: {option}={given!r} has to be a number, not {_told(given)}")


def _told(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else "None" if value is None else f"a {type(value).__name__}"
