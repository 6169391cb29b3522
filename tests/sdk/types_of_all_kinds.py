"""One kind with everything that a schema says, for tests."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

from msgspec import Meta

import oarlock


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Tls(oarlock.Struct):
    """How it is encrypted."""

    secret_name: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9-]+$")]
    port: Annotated[int, Meta(ge=1, le=65535)] = 443


class Http(oarlock.Struct, tag_field="type", tag="http"):
    path: str
    headers: dict[str, str] = {}


class Tcp(oarlock.Struct, tag_field="type", tag="tcp"):
    number: Annotated[int, Meta(ge=1, le=65535)]


class ThingSpec(oarlock.Struct):
    image: str
    """What runs."""
    size: Size = Size.SMALL
    replicas: Annotated[int, Meta(ge=0, lt=100)] = 1
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    port: Annotated[int, Meta(ge=0)] | str = 80
    limit: int | Literal["none", "auto"] = "auto"
    tls: Tls | None = None
    probes: Annotated[list[Http | Tcp], Meta(max_length=3)] = []
    tags: set[Annotated[str, Meta(min_length=1)]] = set()
    labels: dict[str, str | None] = {}
    weights: Annotated[dict[str, Annotated[int, Meta(multiple_of=2)]], Meta(max_length=3)] = {}
    since: Annotated[datetime.datetime, Meta(tz=True)] | None = None
    day: datetime.date | None = None
    blob: bytes = b""
    free: Any = None
    mode: Literal["a", "b", None] = None
    pair: tuple[int, int] = (1, 2)
    public: bool = True


class ThingStatus(oarlock.Struct):
    ready: int = 0
    selector: str = ""
    phase: Literal["New", "Done"] = "New"


@oarlock.resource(
    "things.example.com/v1",
    short_name="th",
    columns={"Image": "spec.image", "Ready": "status.ready", "Secret": "spec.tls.secretName", "Since": "spec.since"},
    selectable=("spec.size", "spec.public"),
    scale=("spec.replicas", "status.ready", "status.selector"),
)
class Thing(oarlock.Object):
    """All that a schema can say.

    In two paragraphs.
    """

    spec: ThingSpec
    status: ThingStatus | None = None
