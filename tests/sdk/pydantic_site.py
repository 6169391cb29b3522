"""A kind whose parts are pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

import oarlock


class Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Http(Part):
    type: Literal["http"]
    path: str = "/"


class Tcp(Part):
    type: Literal["tcp"]
    port: int


class SiteSpec(Part):
    """What is wanted."""

    image: str
    replica_count: int = Field(1, ge=0, description="How many.")
    probe: Annotated[Http | Tcp, Field(discriminator="type")] | None = None
    tags: list[str] = []

    @model_validator(mode="after")
    def tagged(self) -> SiteSpec:
        if self.replica_count > 5 and not self.tags:
            raise ValueError("more than 5 need a tag")
        return self


class SiteStatus(Part):
    ready_count: int = 0
    note: str | None = None


@oarlock.resource("pydantic.example.com/v1", columns={"Replicas": "spec.replicaCount"})
class PydanticSite(oarlock.Object):
    spec: SiteSpec
    status: SiteStatus | None = None
