"""The files of the page, read once. A page that has them asks only whether they are still the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

FOLDER = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class PageFile:
    """``tag``: changes with the content."""

    content: bytes
    content_type: str
    tag: str

    def answer(self, request: web.Request) -> web.Response:
        """The file, or that it is still the same."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match", "").removeprefix("W/") == self.tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.content, content_type=self.content_type, charset="utf-8", headers=headers)


def page_files() -> dict[str, PageFile]:
    """Path below the page -> file. There are no others, whatever is asked for."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            found[path.relative_to(FOLDER).as_posix()] = PageFile(content, TYPES[path.suffix], tag)
    return found
