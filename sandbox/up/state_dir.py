"""The directory of one `oarlock up`: fixed names, so that scripts and chaos tools find everything.

::

    kubeconfig      for kubectl
    redis-url       the admin user's URL, one line; redis-url-metrics: of the user that may only read
    audit.log       audit.k8s.io/v1 events of the API server, one JSON line each
    processes.json  [{"role", "pid", "name", "rq_worker", "started_ms"}, ...], rewritten whenever one comes or goes;
                    roles: redis, api, ingestor, supervisor, worker; rq_worker is "" for all but workers
    up.json         {"pid", "state", "api_url", "redis_port", "started_ms", ...}; state: starting, ready, stopping
    logs/           one file a process
    redis/          the private Redis: socket, users, log

Every file is written beside its place and moved there, so a reader never sees half of one. A directory that was given
is found by a link among the temporary ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oarlock.sandbox.host import write_file

PREFIX = "oarlock-up-"
SWEEP_AFTER_S = 60.0
SAME_WITHIN_MS = 5_000
"""A process that began so much later than noted is another one with the same pid."""
_KEPT = ("audit.log", "logs")
_FLOCK = "hhqqi0q"  # struct flock: l_type, l_whence, l_start, l_len, l_pid


class StateDirUnusable(Exception):
    """The directory cannot be used; one line with the mend."""


@dataclass(frozen=True, slots=True)
class Process:
    """One line of processes.json."""

    role: str
    pid: int
    name: str
    rq_worker: str = ""
    started_ms: int = 0


class StateDir:
    """One such directory. Reading needs nothing; an `oarlock up` first takes it with ``take``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.temporary = root.name.startswith(PREFIX) and root.parent == Path(tempfile.gettempdir())
        self.kubeconfig = root / "kubeconfig"
        self.redis_url = root / "redis-url"
        self.metrics_redis_url = root / "redis-url-metrics"
        self.audit_log = root / "audit.log"
        self.processes_json = root / "processes.json"
        self.up_json = root / "up.json"
        self.logs = root / "logs"
        self.redis = root / "redis"
        self._lock, self._lock_fd = root / "up.lock", -1

    @property
    def _link(self) -> Path:
        """Stands among the temporary directories and leads to one that is none."""
        root = os.fsencode(self.root.absolute())
        return Path(tempfile.gettempdir()) / f"{PREFIX}at-{hashlib.sha256(root).hexdigest()[:16]}"

    # -- whose it is ------------------------------------------------------------------------------------------------

    @classmethod
    def take(cls, path: Path | None) -> StateDir:
        """Make the directory (None: a temporary one) and hold it until this process ends. Raises StateDirUnusable."""
        sweep_temporary()
        try:
            if path is None:
                state = cls(Path(tempfile.mkdtemp(prefix=PREFIX)))
            else:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                state = cls(path.absolute())
                state.temporary = False
            state._hold()
            state._show()
        except FileExistsError:
            raise StateDirUnusable(f"--state-dir {path}: there is a file of that name; give a directory") from None
        except OSError as error:
            raise StateDirUnusable(f"--state-dir {path}: {error.strerror}; give a directory you may write to") from None
        return state

    def _hold(self) -> None:
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise StateDirUnusable(
                f"--state-dir {self.root}: an `oarlock up` runs here already (pid {self.owner_pid()});"
                f" stop it with: oarlock down --state-dir {self.root}"
            ) from None
        self._lock_fd = fd  # never opened a second time here: closing any descriptor of it would give the lock away
        urls = (self.redis_url, self.metrics_redis_url)
        for leftover in (self.kubeconfig, *urls, self.processes_json, self.up_json, self.audit_log):
            leftover.unlink(missing_ok=True)
        for log in self.logs.glob("*.log"):
            log.unlink()
        self.logs.mkdir(mode=0o700, exist_ok=True)

    def _show(self) -> None:
        """Have it found by `running`. Where another user has taken the name of the link it is not, and works on."""
        if not self.temporary:
            with contextlib.suppress(OSError):
                self._link.unlink(missing_ok=True)
                self._link.symlink_to(self.root, target_is_directory=True)

    def owner_pid(self) -> int:
        """Pid of the `oarlock up` that holds it now; 0 if there is none."""
        if self._lock_fd >= 0:
            return os.getpid()
        try:
            fd = os.open(self._lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            asked = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
            return 0 if kind == fcntl.F_UNLCK else int(pid)
        finally:
            os.close(fd)

    def clear(self) -> None:
        """Leave nothing behind: all of a temporary directory; of a given one all but the audit log and the logs."""
        with contextlib.suppress(OSError):
            self._link.unlink(missing_ok=True)
        for entry in list(self.root.iterdir()):
            if not self.temporary and entry.name in _KEPT:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if self.temporary:
            shutil.rmtree(self.root, ignore_errors=True)
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    # -- what is in it ----------------------------------------------------------------------------------------------

    def write_processes(self, processes: Sequence[Process]) -> None:
        """Replace processes.json."""
        write_file(self.processes_json, json.dumps([asdict(each) for each in processes], indent=1) + "\n")

    def write_redis_url(self, url: str, metrics_url: str = "") -> None:
        write_file(self.redis_url, url + "\n")
        write_file(self.metrics_redis_url, (metrics_url or url) + "\n")

    def write_up(self, facts: dict[str, Any]) -> None:
        """Replace up.json."""
        write_file(self.up_json, json.dumps(facts, indent=1) + "\n")

    def read_processes(self) -> list[Process]:
        """What processes.json says; [] where there is none."""
        try:
            return [Process(**each) for each in json.loads(self.processes_json.read_text())]
        except FileNotFoundError:
            return []

    def read_up(self) -> dict[str, Any]:
        """What up.json says; {} where there is none."""
        try:
            facts: dict[str, Any] = json.loads(self.up_json.read_text())
        except FileNotFoundError:
            return {}
        return facts

    def read_redis_url(self, *, only_read: bool = False) -> str:
        """The admin's URL, or that of the user that may only read. Raises StateDirUnusable where no `oarlock up` wrote
        one.
        """
        try:
            return (self.metrics_redis_url if only_read else self.redis_url).read_text().strip()
        except OSError as error:
            raise StateDirUnusable(
                f"--state-dir {self.root}: no `oarlock up` runs here ({error.strerror}: redis-url)"
            ) from None


def running() -> list[StateDir]:
    """The state directory of every `oarlock up` of this user that runs, temporary or given."""
    found = {state.root: state for _, state in _noted() if state.owner_pid()}
    return list(found.values())


def sweep_temporary() -> None:
    """Remove temporary directories, and links to others, whose `oarlock up` was killed before it could."""
    for path, state in _noted():
        with contextlib.suppress(OSError):
            if state.owner_pid() == 0 and time.time() - path.lstat().st_mtime > SWEEP_AFTER_S:
                if path.is_symlink():
                    path.unlink()
                else:
                    shutil.rmtree(path, ignore_errors=True)


def _noted() -> Iterator[tuple[Path, StateDir]]:
    """This user's temporary directories and links, each with the state directory it is or leads to."""
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.getuid():
                continue
            if path.is_symlink():
                yield path, StateDir(path.readlink())
            elif path.is_dir():
                yield path, StateDir(path)


def is_alive(process: Process) -> bool:
    """Whether this very process still runs: its pid may have been given to another since; a zombie is gone."""
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
        since_boot_s = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    began_ms = time.time() * 1000 - (since_boot_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")) * 1000
    return fields[0] not in "ZX" and began_ms < process.started_ms + SAME_WITHIN_MS
