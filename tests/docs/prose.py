"""Markdown as a reader meets it: its prose without code, tables and headings, its sentences, and the files it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_NO_PROSE = re.compile(r"^( {4,}\S|\||#|<|!\[)")
_ITEM = re.compile(r"^\s*([-*]|\d+\.)\s+")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"`[^`]*`")
_SENTENCE_END = re.compile(r"(?<=[.!?])[*)\"']*\s+(?=[A-Z`*(\[\"])")
_NAMES_A_FILE = re.compile(r"[\w-][\w.*-]*(/[\w.*-]+)*/?")
_OF_THE_REPOSITORY = (".py", ".lua", ".sh", ".toml", ".md")


def blocks(text: str) -> Iterator[str]:
    """Paragraphs and items of lists, each on one line, without code blocks, tables, headings and pictures."""
    block: list[str] = []
    for line in [*_COMMENT.sub("", _FENCE.sub("", text)).splitlines(), ""]:
        inside_item = bool(block) and _ITEM.match(block[0]) is not None
        begins = not line.strip() or _ITEM.match(line) is not None
        ends = begins or (_NO_PROSE.match(line) is not None and not (inside_item and line.startswith("    ")))
        if ends and block:
            yield " ".join(_ITEM.sub("", part).strip() for part in block)
            block = []
        if line.strip() and not (ends and not begins):
            block.append(line)


def sentences(text: str) -> list[str]:
    """The sentences of the prose; what stands in code quotes is one word, and of a link its text counts."""
    found = []
    for block in blocks(text):
        plain = _CODE.sub("X", _LINK.sub(r"\1", block))
        found += [part for part in _SENTENCE_END.split(plain) if re.search(r"\w", part)]
    return found


def mean_words(text: str) -> float:
    """Words a sentence."""
    found = sentences(text)
    return sum(len(re.findall(r"[\w'/+-]+", each)) for each in found) / max(1, len(found))


def files_named(text: str, top: frozenset[str]) -> Iterator[str]:
    """Files and folders in code quotes. ``top``: names of the repository's top-level folders."""
    for quoted in re.findall(r"`([^`\s]+)`", _FENCE.sub("", text)):
        name = quoted.split("::")[0]
        if not _NAMES_A_FILE.fullmatch(name):
            continue
        if name.endswith(_OF_THE_REPOSITORY) or ("/" in name and name.split("/")[0] in top):
            yield name
