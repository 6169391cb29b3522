"""ControllerRevisions: what they hold never changes.

Upstream: pkg/apis/apps/validation/validation.go (ValidateControllerRevisionCreate, ValidateControllerRevisionUpdate).
"""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.sandbox.apiserver.errors import FieldError
from oarlock.sandbox.apiserver.validation.metadata import IMMUTABLE
from oarlock.sandbox.apiserver.validation.values import not_negative

Obj = dict[str, Any]


def controllerrevision_errors(revision: Obj) -> list[FieldError]:
    """Data that is missing, a number below 0."""
    errors = [] if revision.get("data") is not None else [FieldError.required("data", "data is mandatory")]
    return errors + not_negative(revision.get("revision"), "revision")


def controllerrevision_update_errors(new: Obj, old: Obj) -> list[FieldError]:
    """The number may change, the data may not: not even the order of its keys, for it is compared as text."""
    errors = controllerrevision_errors(new)
    if orjson.dumps(new.get("data")) != orjson.dumps(old.get("data")):
        errors.append(FieldError.invalid("data", new.get("data"), IMMUTABLE))
    return errors
