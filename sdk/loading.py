"""From what a person names to the controllers in it: a file (`site.py`) or a dotted module (`shop.site`).

The module is imported once, under its own name. Its folder is put first on Python's path, so it finds what lies beside
it. All that can be wrong with it becomes one line.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from oarlock.controllers.entries import FLAG_SUFFIX
from oarlock.sdk.definitions import Definition
from oarlock.sdk.kinds import BadDefinition

NAME_MAX = 40
log = logging.getLogger(__name__)


def load(what: str | Path) -> list[Definition]:
    """The controllers of a file or a dotted module, in the order of their definition, also those that it imports from
    elsewhere by name. Raises BadDefinition, with the file and the line where they are known.
    """
    text = str(what)
    module = _from_file(text) if is_file(text) else _from_module(text)
    found: dict[str, Definition] = {}
    for each in vars(module).values():
        if not isinstance(each, Definition):
            continue
        if found.setdefault(each.name, each) is not each:
            raise BadDefinition(f"{text}: two controllers are called {each.name!r}; give one of them name=")
    for name in found:
        if name + FLAG_SUFFIX in found:
            raise BadDefinition(
                f"{text}: the controllers {name!r} and {name + FLAG_SUFFIX!r} are one to --controllers, which takes"
                f" a name with and without {FLAG_SUFFIX}; give one of them another name="
            )
    if not found:
        raise BadDefinition(f"{text}: no controllers in it; put @oarlock.desired or @oarlock.steps above a function")
    return list(found.values())


def is_file(what: str) -> bool:
    """Whether a file is meant, not a dotted module."""
    return what.endswith(".py") or "/" in what or os.path.exists(what)


def fleet_of(what: str | Path) -> str:
    """The name of the fleet that runs it, unless another is given: the file's, fit for a DNS label.

    Raises BadDefinition.
    """
    text = str(what)
    path = Path(text).absolute()
    word = (path.parent.name if path.stem == "__init__" else path.stem) if is_file(text) else text.rpartition(".")[2]
    name = re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:NAME_MAX].strip("-")
    if not re.match("[a-z]", name):
        raise BadDefinition(
            f"{text}: its name cannot name a fleet; give one that begins with a letter, with --fleet-id"
        )
    return name


def files_of(definitions: list[Definition]) -> list[Path]:
    """The files that were read for them: those of their modules, and of all that lie in the folders of these."""
    own = {_file_of(sys.modules[each.function.__module__]) for each in definitions}
    folders = {file.parent for file in own if file is not None}
    loaded = {_file_of(module) for name, module in list(sys.modules.items()) if name.partition(".")[0] != "oarlock"}
    return sorted(
        file
        for file in loaded
        if file is not None and any(folder in file.parents for folder in folders) and "site-packages" not in file.parts
    )


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file) if isinstance(file, str) and file.endswith(".py") else None


def _from_file(text: str) -> ModuleType:
    path = Path(text).absolute()
    try:
        is_folder, is_there = path.is_dir(), path.is_file()
    except OSError as error:  # it lies in a folder that may not be looked into
        raise BadDefinition(f"{text}: {error.strerror}; give a file that can be read") from None
    if is_folder:
        raise BadDefinition(f"{text}: is a folder; give a file of it, or its module by its dotted name")
    if not is_there:
        raise BadDefinition(f"{text}: no such file; give one with your controllers, or the dotted name of a module")
    _load_library(path)
    _find_in(path.parent)
    loaded = sys.modules.get(path.stem)
    if loaded is not None and _file_of(loaded) == path:
        return loaded
    name = path.stem if loaded is None else f"{path.stem} of {path.parent}"  # not to hide a library of that name
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadDefinition(f"{text}: is no Python file; its name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # types look up the names in their annotations there
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _problem(text, path, error) from error
    return module


def _from_module(text: str) -> ModuleType:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", text):
        raise BadDefinition(f"{text!r} is neither a file nor the dotted name of a module")
    _find_in(Path.cwd())
    try:
        return importlib.import_module(text)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{text}.".startswith(f"{error.name}."):
            raise BadDefinition(f"{text}: no such file, and no such module here or installed") from None
        raise _problem(text, None, error) from error
    except BaseException as error:
        raise _problem(text, None, error) from error


def _load_library(path: Path) -> None:
    """Import the library that is called as a file now: once the folder of `redis.py` is first on Python's path, whoever
    imports redis would get the file.
    """
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        return
    try:
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None and Path(found.origin).parent != path.parent:
            importlib.import_module(name)
    except Exception:
        log.debug("%s is no library that can be imported", name, exc_info=True)


def _find_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _problem(text: str, path: Path | None, error: BaseException) -> BadDefinition:
    """What went wrong while it was imported, with the last line of the user's own that led there."""
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, SyntaxError):
        where = _place(text, path, error.filename or "", error.lineno or 0)
        return BadDefinition(f"{where}: {type(error).__name__}: {error.msg}")
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and frame.filename != __file__
    ]
    folder = path.parent if path is not None else Path.cwd()
    own = [frame for frame in frames if folder in Path(frame.filename).parents] or frames
    where = _place(text, path, own[-1].filename, own[-1].lineno or 0) if own else text
    said = " ".join(str(error).split()) or "no reason given"
    match error:
        case BadDefinition():
            return BadDefinition(f"{where}: {said}")
        case ModuleNotFoundError(name=str(name)):
            return BadDefinition(f"{where}: no module {name!r}; install it where oarlock is installed")
        case ImportError() if "relative import" in said:
            return BadDefinition(f"{where}: {said}; name it by its dotted module, as shop.site")
        case SystemExit():
            return BadDefinition(f"{where}: it ends the process ({said}); keep that under if __name__ == '__main__'")
    return BadDefinition(f"{where}: {type(error).__name__}: {said}")


def _place(text: str, path: Path | None, filename: str, line: int) -> str:
    """`file:line`; the file as the person wrote it, if it is that one."""
    named = text if path is not None and Path(filename) == path else filename or text
    return f"{named}:{line}" if line else named
