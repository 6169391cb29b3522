"""Debian packages without installing them: a private apt state in a folder, nothing under /etc/apt changes.

The mirror is the one this machine is configured with; the release is fixed, so that every machine gets the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.realserver.telling import CannotObtain, run

RELEASE = "bookworm"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCES = Path("/etc/apt")


class Packages:
    """Downloads into `folder`. Needs apt-get and dpkg, no rights. Raises CannotObtain."""

    def __init__(self, folder: Path, log: Path) -> None:
        for tool in ("apt-get", "dpkg"):
            if shutil.which(tool) is None:
                raise CannotObtain(f"{tool} is missing: the programs come from Debian packages; use a Debian machine")
        self._folder, self._log = folder, log
        for part in ("parts", "lists/partial", "cache/archives/partial", "debs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        entry = f"Types: deb deb-src\nURIs: {mirror()}\nSuites: {RELEASE}\nComponents: main\nSigned-By: {KEYRING}\n"
        (folder / "parts" / "debian.sources").write_text(entry)
        self._apt = [
            "apt-get",
            "-q",
            "-oDir::Etc::sourcelist=/dev/null",
            f"-oDir::Etc::sourceparts={folder / 'parts'}",
            f"-oDir::State::lists={folder / 'lists'}",
            f"-oDir::Cache={folder / 'cache'}",
            "-oAPT::Sandbox::User=root",  # else root's downloads are tried as a user who may not write here
            "-oAcquire::Retries=3",
        ]

    def update(self) -> None:
        """Read what the mirror has."""
        run(f"reading the package lists of Debian {RELEASE}", [*self._apt, "update", "--error-on=any"], self._log)

    def unpack(self, names: list[str], into: Path) -> None:
        """Download binary packages and unpack them into a folder."""
        debs = self._folder / "debs"
        run(f"downloading {', '.join(names)}", [*self._apt, "download", *names], self._log, cwd=debs)
        into.mkdir(parents=True, exist_ok=True)
        for deb in sorted(debs.glob("*.deb")):
            run(f"unpacking {deb.name.partition('_')[0]}", ["dpkg", "-x", str(deb), str(into)], self._log)
            deb.unlink()

    def original_source(self, name: str, into: Path) -> Path:
        """Download a source package; the archive of upstream's source."""
        into.mkdir(parents=True, exist_ok=True)
        run(f"downloading the source of {name}", [*self._apt, "source", "--download-only", name], self._log, cwd=into)
        found = sorted(into.glob(f"{name}_*.orig.tar.*"))
        if not found:
            raise CannotObtain(f"the source package of {name} holds no archive of upstream's source")
        return found[0]


def mirror() -> str:
    """The Debian mirror this machine is configured with, first found. Raises CannotObtain."""
    for uri in _uris():
        if "security" not in uri:
            return uri
    raise CannotObtain("no Debian mirror is configured under /etc/apt; the programs come from Debian packages")


def _uris() -> Iterator[str]:
    for file in sorted(SOURCES.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.+)$", stanza, re.MULTILINE))
            keyring = fields.get("Signed-By", str(KEYRING))
            if "main" in fields.get("Components", "").split() and keyring == str(KEYRING):
                yield from fields.get("URIs", "").split()
    for file in (SOURCES / "sources.list", *sorted(SOURCES.glob("sources.list.d/*.list"))):
        if file.exists():
            for line in file.read_text().splitlines():
                if found := re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+\S+.*\bmain\b", line):
                    yield found[1]
