"""Signatures of cached objects: ingestors make them, workers check them. So whoever can only write to Redis cannot make
workers believe in an object that the API never sent. The broker stores a signature beside its object, unread.

A signature is ``<key id>.<MAC>``: keyed BLAKE2b over the place of the object (fleet, epoch and shard, resource) and its
content (resourceVersion, uid, projection). The projection holds namespace and name.
"""

from __future__ import annotations

import base64
import binascii
import re
import stat
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any

from oarlock.broker.values.objects import Cached
from oarlock.cluster.access.credentials import ConfigError

KEY_BYTES_MIN = 32
KEYS_MAX = 4
FILE_BYTES_MAX = 4_096
MAC_BYTES = 16
DISTINCT_MIN = 8
"""32 random bytes never have fewer distinct values than this; typed text does."""
MAKE_ONE = "make one with: openssl rand -base64 32 > FILE"

_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){32,}")
_MAC_PURPOSE, _ID_PURPOSE = b"oarlock.seal.1", b"oarlock.key-id.1"


class BadKeyFile(ConfigError):
    """One line that names the file and the remedy. It never shows what is in the file."""


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """``id``: four hex digits computed from the secret; logs show it. ``secret`` is never shown."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id})"


Keyring = tuple[Key, ...]
"""The first key signs; all keys check."""


def load_keyring(path: str) -> Keyring:
    """The keys of a file: one a line, base64 or hex, at least 32 random bytes each. Raises BadKeyFile.

    Empty lines and lines that begin with # are ignored.
    """
    what = f"--signing-key-file {path}"
    try:
        with Path(path).open("rb") as file:
            if stat.S_IMODE(Path(path).stat().st_mode) & stat.S_IWOTH:
                raise BadKeyFile(f"{what}: everybody may write to it; chmod o-w it, and make a new key")
            raw = file.read(FILE_BYTES_MAX + 1)
        lines = [line.strip() for line in raw.decode("ascii").splitlines()]
    except OSError as error:
        raise BadKeyFile(f"{what}: cannot be read ({error.strerror or error}); {MAKE_ONE}") from None
    except UnicodeDecodeError:
        raise BadKeyFile(f"{what}: is not text; one key a line in base64 or hex: {MAKE_ONE}") from None
    if len(raw) > FILE_BYTES_MAX:
        raise BadKeyFile(f"{what}: is longer than {FILE_BYTES_MAX} bytes and so no file of keys; {MAKE_ONE}")
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if not numbered:
        raise BadKeyFile(f"{what}: has no key; {MAKE_ONE}")
    if len(numbered) > KEYS_MAX:
        raise BadKeyFile(f"{what}: has {len(numbered)} keys; keep the one that signs and those it follows: {KEYS_MAX}")
    keys = tuple(_key(line, f"{what}: line {number}") for number, line in numbered)
    if len({key.id for key in keys}) < len(keys):
        raise BadKeyFile(f"{what}: two of its keys are the same, or have the same id; leave one out")
    return keys


def _key(text: str, where: str) -> Key:
    try:
        secret = bytes.fromhex(text) if _HEX.fullmatch(text) else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise BadKeyFile(f"{where}: is neither base64 nor hex; {MAKE_ONE}") from None
    if len(secret) < KEY_BYTES_MIN:
        raise BadKeyFile(f"{where}: {len(secret)} bytes are too few, a key has {KEY_BYTES_MIN} or more; {MAKE_ONE}")
    if len(set(secret)) < DISTINCT_MIN:
        raise BadKeyFile(f"{where}: these are no random bytes; {MAKE_ONE}")
    return Key(blake2b(secret, digest_size=2, person=_ID_PURPOSE).hexdigest(), secret)


class Signer:
    """Makes and checks signatures. ``scope`` names fleet, epoch and shard. Not for several threads at once."""

    def __init__(self, keyring: Keyring, scope: str) -> None:
        assert keyring
        assert "\n" not in scope
        self._scope, self._signing = scope, keyring[0].id
        self._secrets = {key.id: blake2b(key.secret, digest_size=32).digest() for key in keyring}
        self._begun: dict[tuple[str, str], Any] = {}

    def sign(self, resource: str, rv: str, uid: str, blob: bytes) -> str:
        """The signature of an object about to be cached."""
        return f"{self._signing}.{self._mac(resource, self._signing, rv, uid, blob)}"

    def fault(self, resource: str, cached: Cached) -> str:
        """Why the object is refused; "" where its signature is good. Shows nothing of its content."""
        key_id, _, mac = cached.signature.partition(".")
        if not mac:
            return "it has no signature: whoever wrote it has no signing key"
        if key_id not in self._secrets:
            return f"it is signed with key {key_id[:4]!r}, which is not in our key file"
        good = self._mac(resource, key_id, cached.rv, cached.uid, cached.blob)
        if not compare_digest(good, mac if mac.isascii() else ""):
            return f"its signature with key {key_id} is not that of its content: it was changed, or moved here"
        return ""

    def _mac(self, resource: str, key_id: str, rv: str, uid: str, blob: bytes) -> str:
        begun = self._begun.get((resource, key_id))
        if begun is None:
            begun = blake2b(key=self._secrets[key_id], digest_size=MAC_BYTES, person=_MAC_PURPOSE)
            begun.update(f"{self._scope}\n{resource}\n".encode())
            self._begun[resource, key_id] = begun
        state = begun.copy()  # a third cheaper than starting from the key each time
        state.update(f"{rv} {uid}\n".encode() + blob)  # neither rv nor uid holds white space: the parser cut them there
        mac: str = state.hexdigest()
        return mac
