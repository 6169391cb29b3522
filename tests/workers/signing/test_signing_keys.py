"""Key files: what is a key, what is refused with one line, and what a signature binds."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from oarlock.broker.values.objects import Cached
from oarlock.workers.signing.signature import KEYS_MAX, BadKeyFile, Keyring, Signer, load_keyring
from tests.e2e.e2e_helpers import oarlock

SECRET = bytes(range(7, 39))
OTHER = bytes(range(100, 164))


def file_of(tmp_path: Path, *lines: str | bytes) -> str:
    path = tmp_path / "signing.key"
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    path.chmod(0o600)
    return str(path)


def text_of(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def ring(tmp_path: Path, *secrets: bytes) -> Keyring:
    return load_keyring(file_of(tmp_path, *map(text_of, secrets)))


def test_base64_and_hex_are_the_same_key(tmp_path: Path) -> None:
    (plain,) = load_keyring(file_of(tmp_path, "# made today", "", text_of(SECRET), ""))
    (spelled,) = load_keyring(file_of(tmp_path, f"  {SECRET.hex().upper()}  "))
    assert plain == spelled
    assert plain.secret == SECRET
    assert SECRET.hex() not in repr(plain)
    assert text_of(SECRET) not in repr(plain)
    assert plain.id in repr(plain)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param((), "has no key", id="empty"),
        pytest.param(("# nothing",), "has no key", id="only a comment"),
        pytest.param((text_of(SECRET[:31]),), "line 1: 31 bytes are too few, a key has 32 or more", id="short"),
        pytest.param((text_of(b"a" * 64),), "line 1: these are no random bytes", id="one byte again and again"),
        pytest.param(("correct horse battery staple",), "line 1: is neither base64 nor hex", id="words"),
        pytest.param((text_of(SECRET), "x" * 7), "line 2: is neither base64 nor hex", id="the second"),
        pytest.param((os.urandom(32) + b"\xff",), "is not text", id="raw bytes"),
        pytest.param((text_of(SECRET), SECRET.hex()), "two of its keys are the same", id="twice"),
        pytest.param([text_of(os.urandom(32)) for _ in range(KEYS_MAX + 1)], "has 5 keys", id="too many"),
        pytest.param(("x" * 5_000,), "is longer than 4096 bytes", id="another file"),
    ],
)
def test_what_is_no_key_file_is_refused_with_one_line(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    path = file_of(tmp_path, *lines)
    with pytest.raises(BadKeyFile) as refused:
        load_keyring(path)
    text = str(refused.value)
    assert text.startswith(f"--signing-key-file {path}: ")
    assert said in text
    assert "\n" not in text
    assert not any(line in text for line in lines if isinstance(line, str) and line), "it repeats what is in the file"


def test_a_file_that_cannot_be_read_or_that_all_may_write(tmp_path: Path) -> None:
    with pytest.raises(BadKeyFile, match=r"none: cannot be read \(No such file or directory\); make one with: openssl"):
        load_keyring(str(tmp_path / "none"))
    with pytest.raises(BadKeyFile, match="cannot be read"):
        load_keyring(str(tmp_path))
    path = file_of(tmp_path, text_of(SECRET))
    Path(path).chmod(0o606)
    with pytest.raises(BadKeyFile, match="everybody may write to it"):
        load_keyring(path)


@pytest.mark.parametrize("command", ["ingest", "worker"])
def test_the_commands_end_with_2_and_that_line(tmp_path: Path, command: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
    )
    wrong = file_of(tmp_path, "short")
    given = {"OARLOCK_SIGNING_KEY_FILE": wrong} if command == "worker" else {}
    flags = () if given else ("--signing-key-file", wrong)
    done = oarlock(command, "--kubeconfig", str(kubeconfig), "--redis", "redis://127.0.0.1:1/0", *flags, **given)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"--signing-key-file {wrong}: line 1: " in line
    assert done.stdout == ""


# -- signatures --------------------------------------------------------------------------------------------------------


SCOPE = "oarlock oarlock:7:{0}:"


def signed(keyring: Keyring, scope: str = SCOPE, resource: str = "pods", **other: object) -> Cached:
    rv, uid, blob = "12", "u-1", b"blob"
    made = Cached(rv, uid, blob, Signer(keyring, scope).sign(resource, rv, uid, blob))
    return made._replace(**other)


def test_a_signature_is_good_where_it_was_made_for(tmp_path: Path) -> None:
    keyring = ring(tmp_path, SECRET)
    signer = Signer(keyring, SCOPE)
    assert signer.fault("pods", signed(keyring)) == ""
    assert signer.fault("pods", signed(keyring)) == "", "a second look"
    assert " " not in signed(keyring).signature
    assert signed(keyring).signature.isascii()


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"rv": "13"}, id="a later resourceVersion"),
        pytest.param({"uid": "u-2"}, id="another object"),
        pytest.param({"blob": b"blot"}, id="another projection"),
        pytest.param({"blob": b"blob\n"}, id="a longer one"),
        pytest.param({"rv": "1", "uid": "2 u-1"}, id="the border between words moved"),
        pytest.param({"resource": "replicasets"}, id="another resource"),
        pytest.param({"scope": "oarlock oarlock:8:{0}:"}, id="another epoch"),
        pytest.param({"scope": "oarlock oarlock:7:{1}:"}, id="another shard"),
        pytest.param({"scope": "other oarlock:7:{0}:"}, id="another fleet"),
    ],
)
def test_a_signature_binds(tmp_path: Path, changed: dict[str, object]) -> None:
    keyring = ring(tmp_path, SECRET)
    fault = Signer(keyring, SCOPE).fault("pods", signed(keyring, **changed))  # type: ignore[arg-type]
    assert "is not that of its content" in fault
    assert "blo" not in fault, "it says what is in it"


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        ("", "it has no signature"),
        ("1234", "it has no signature"),
        ("1234.", "it has no signature"),
        ("ffff.00", "it is signed with key 'ffff', which is not in our key file"),
        ("\u00e9\u00e9.00", "which is not in our key file"),
    ],
)
def test_what_is_no_signature_of_ours(tmp_path: Path, signature: str, said: str) -> None:
    keyring = ring(tmp_path, SECRET)
    assert keyring[0].id != "ffff"
    assert said in Signer(keyring, SCOPE).fault("pods", signed(keyring, signature=signature))


def test_a_mac_that_is_not_text_of_ours_is_refused_and_no_error(tmp_path: Path) -> None:
    keyring = ring(tmp_path, SECRET)
    for mac in ("\u00e9" * 32, "0" * 1_000_000, "00"):
        fault = Signer(keyring, SCOPE).fault("pods", signed(keyring, signature=f"{keyring[0].id}.{mac}"))
        assert "is not that of its content" in fault


def test_keys_are_exchanged_in_three_steps(tmp_path: Path) -> None:
    old, both, swapped, new = (
        ring(tmp_path, *secrets) for secrets in ((SECRET,), (SECRET, OTHER), (OTHER, SECRET), (OTHER,))
    )
    for makes, checks in ((old, both), (both, old), (both, swapped), (swapped, both), (swapped, new)):
        assert Signer(checks, SCOPE).fault("pods", signed(makes)) == ""
    assert "which is not in our key file" in Signer(new, SCOPE).fault("pods", signed(both))
