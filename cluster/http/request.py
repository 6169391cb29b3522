"""A write as the bytes of an HTTP/1.1 request. Pure."""

_NAME = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class RequestWriter:
    """For one server. host: as the Host header has it; root: path before every path; user_agent: of all requests."""

    def __init__(self, host: str, root: str, user_agent: str) -> None:
        self._root = root
        self._fixed = (("Host", host), ("User-Agent", user_agent), ("Accept", "application/json"))
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._head: str | None = None

    def written(
        self, method: str, path: str, headers: tuple[tuple[str, str], ...], content_type: str, body: bytes
    ) -> bytes | None:
        """The whole request, or None where something in it is not plain printable text: nothing a path or a header may
        hold can then pass for the end of a line. ``headers``: those of the credentials.
        """
        if headers is not self._headers:
            self._headers, self._head = headers, _head((*self._fixed, *headers))
        target = self._root + path
        if self._head is None or not _plain(target) or " " in target or not _plain(content_type):
            return None
        of_body = f"Content-Type: {content_type}\r\n" if body else ""
        return f"{method} {target} HTTP/1.1\r\n{self._head}{of_body}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _head(headers: tuple[tuple[str, str], ...]) -> str | None:
    if not all(name and _NAME.issuperset(name) and _plain(value) for name, value in headers):
        return None
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
