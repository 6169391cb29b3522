"""Logs: one line an event on stderr, key=value or JSON."""

from __future__ import annotations

import json
import logging
import re
import shlex
import sys
import time

from oarlock.cli.log_handler import LogHandler
from oarlock.workers.process.log_line import line

FORMATS = ("text", "json")
USERS_OWN = "oarlock.controller"
"""The loggers of users' functions begin so."""
_WORD = re.compile(r"(\w+)=(\"(?:[^\"\\]|\\.)*\"|\S*)(?:\s|$)")


class TextFormatter(logging.Formatter):
    """``time=... level=info logger=oarlock.fleet event=started pid=7``."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if not text.startswith("event="):
            text = f"{line('message', **_about(record))} text={json.dumps(text)}"
        head = f"time={_time(record)} level={record.levelname.lower()} logger={record.name}"
        return f"{head} {text}{_traceback(self, record)}"


class JsonFormatter(logging.Formatter):
    """The same event as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        told = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
        text = record.getMessage()
        if text.startswith("event="):
            told |= {name: _plain(value) for name, value in _WORD.findall(text)}
        else:
            told |= {"event": "message", **{name: str(value) for name, value in _about(record).items()}, "text": text}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told)


def _about(record: logging.LogRecord) -> dict[str, object]:
    """Whom a line of a user's function is about: `ctx.log` says it."""
    if not record.name.startswith(USERS_OWN):
        return {}
    return {name: vars(record)[name] for name in ("controller", "key") if name in vars(record)}


def _plain(value: str) -> str:
    return shlex.split(value)[0] if value.startswith('"') else value


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return f" traceback={json.dumps(formatter.formatException(record.exc_info))}" if record.exc_info else ""


def _time(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def set_up(verbose: int, log_format: str = "text", *, least: int = logging.INFO) -> None:
    """Log to stderr: warnings of libraries, our own events from ``least`` (``-v``: debug, ``-vv``: libraries too)."""
    handler = LogHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose > 1 else logging.WARNING)
    logging.getLogger("oarlock").setLevel(logging.DEBUG if verbose else least)
