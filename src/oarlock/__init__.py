"""oarlock: Kubernetes workload controllers run by a fleet. Its rooms are the folders at the top of the repository.

For controllers of one's own this is the one module to import: `import oarlock`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oarlock.sdk.children import Children
    from oarlock.sdk.context import AsyncContext, Context
    from oarlock.sdk.definitions import Definition, Result, Retry, Watch, desired, steps, watch
    from oarlock.sdk.errors import ApiError, Later, LostClaim, Never
    from oarlock.sdk.kinds import BadDefinition, Kind
    from oarlock.sdk.objects import Condition, Meta, Object, Struct, resource

_PUBLIC = {
    "AsyncContext": "context",
    "Context": "context",
    "Children": "children",
    "Definition": "definitions",
    "Result": "definitions",
    "Retry": "definitions",
    "Watch": "definitions",
    "desired": "definitions",
    "steps": "definitions",
    "watch": "definitions",
    "ApiError": "errors",
    "Later": "errors",
    "LostClaim": "errors",
    "Never": "errors",
    "BadDefinition": "kinds",
    "Kind": "kinds",
    "Condition": "objects",
    "Meta": "objects",
    "Object": "objects",
    "Struct": "objects",
    "resource": "objects",
}
"""Name -> its module in `oarlock.sdk`, imported when the name is first used: a worker needs none of them."""

__all__ = [
    "ApiError",
    "AsyncContext",
    "BadDefinition",
    "Children",
    "Condition",
    "Context",
    "Definition",
    "Kind",
    "Later",
    "LostClaim",
    "Meta",
    "Never",
    "Object",
    "Result",
    "Retry",
    "Struct",
    "Watch",
    "desired",
    "resource",
    "steps",
    "watch",
]


if not TYPE_CHECKING:  # a checker reads the imports above, and would take any name for one of these

    def __getattr__(name: str) -> Any:
        module = _PUBLIC.get(name)
        if module is None:
            raise AttributeError(f"module 'oarlock' has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415

        value = globals()[name] = getattr(import_module(f"oarlock.sdk.{module}"), name)
        return value
