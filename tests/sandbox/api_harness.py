"""An embedded API server in a thread, and a plain client for it that knows nothing of the product's own."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import urlencode

from oarlock.sandbox.apiserver.http.watch import Pace
from oarlock.sandbox.apiserver.server import EmbeddedCluster, Settings

T = TypeVar("T")
Obj = dict[str, Any]

START_S = 1_700_000_000.0  # 2023-11-14T22:13:20Z
WAIT_S = 20.0
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
DAEMONSETS = "/apis/apps/v1/namespaces/default/daemonsets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


class Clock:
    """The moment objects are stamped with."""

    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


class Stream:
    """A running watch, read event by event."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def next(self) -> Obj:
        """The next event; fails after WAIT_S, or when the watch has ended."""
        line = self._response.readline()
        assert line, "the watch ended"
        return json.loads(line)

    def take(self, count: int) -> list[Obj]:
        return [self.next() for _ in range(count)]

    def until(self, type_: str) -> Obj:
        """The next event of a type, whatever comes before."""
        while True:
            event = self.next()
            if event["type"] == type_:
                return event

    def ended(self) -> bool:
        """Whether the watch has ended in good order, with nothing more in it."""
        return self._response.readline() == b""

    def close(self) -> None:
        self._connection.close()


class Api:
    """Requests to one server: (code, body as JSON)."""

    def __init__(self, port: int, cluster: EmbeddedCluster, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.port = port
        self.cluster = cluster
        self.clock = clock
        self._loop = loop
        self._connection = self._connect()
        self._streams: list[Stream] = []
        self.headers: http.client.HTTPMessage | None = None  # of the last answer

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)

    def inside(self, call: Callable[[], T]) -> T:
        """`call` run in the server's own event loop."""

        async def run() -> T:
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(WAIT_S)

    def raw(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, headers or {})
            response = self._connection.getresponse()
            content = response.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()
            raise
        self.headers = response.headers
        return response.status, content

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, **params: Any
    ) -> tuple[int, Any]:
        headers = {"Content-Type": content_type} if body is not None else {}
        content = json.dumps(body).encode() if body is not None else None
        code, answer = self.raw(method, with_params(path, params), content, headers)
        return code, json.loads(answer)

    def get(self, path: str, **params: Any) -> Any:
        code, answer = self.call("GET", path, **params)
        assert code == 200, answer
        return answer

    def create(self, path: str, obj: Obj, **params: Any) -> Obj:
        code, answer = self.call("POST", path, obj, **params)
        assert code == 201, answer
        return answer

    def put(self, path: str, obj: Obj, **params: Any) -> Obj:
        code, answer = self.call("PUT", path, obj, **params)
        assert code in (200, 201), answer
        return answer

    def patch(self, path: str, patch: Any, content_type: str = MERGE, **params: Any) -> Obj:
        code, answer = self.call("PATCH", path, patch, content_type, **params)
        assert code == 200, answer
        return answer

    def delete(self, path: str, options: Obj | None = None, **params: Any) -> Obj:
        code, answer = self.call("DELETE", path, options, **params)
        assert code in (200, 202), answer
        return answer

    def watch(self, path: str, accept: str = JSON, **params: Any) -> Stream:
        connection = self._connect()
        connection.request("GET", with_params(path, {"watch": "true", **params}), headers={"Accept": accept})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        stream = Stream(connection, response)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        self._connection.close()
        for stream in self._streams:
            stream.close()


def with_params(path: str, params: dict[str, Any]) -> str:
    return f"{path}?{urlencode(params)}" if params else path


@contextlib.contextmanager
def running(settings: Settings | None = None) -> Iterator[Api]:
    """A server with `settings` and a client for it."""
    clock = Clock()
    cluster = EmbeddedCluster(settings or quick(), clock=clock)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded api", daemon=True)
    thread.start()
    url = asyncio.run_coroutine_threadsafe(cluster.start(), loop).result(WAIT_S)
    api = Api(int(url.rpartition(":")[2]), cluster, loop, clock)
    try:
        yield api
    finally:
        api.close()
        asyncio.run_coroutine_threadsafe(cluster.stop(), loop).result(WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


def quick(**changes: Any) -> Settings:
    """Settings whose bookmarks come fast."""
    return Settings(**{"pace": Pace(quiet_s=0.2, progress_s=0.05), **changes})


def pod(name: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    meta: Obj = {"name": name} if name else {"generateName": "web-"}
    if labels:
        meta["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }


def replicaset(name: str = "web", replicas: int = 3, **spec: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
            **spec,
        },
    }


def deployment(name: str = "web", **spec: Any) -> Obj:
    """Asks for one replica where `spec` does not say."""
    whole = replicaset(name, **spec)
    if "replicas" not in spec:
        del whole["spec"]["replicas"]
    return {**whole, "kind": "Deployment"}


def daemonset(name: str = "agent", **spec: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
            **spec,
        },
    }


def names(listing: Obj) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]
