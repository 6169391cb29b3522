"""From a file or a dotted module to its controllers, and one line for all that can be wrong with it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import files_of, fleet_of, load

SITE = """\
import oarlock

@oarlock.desired("example.com/v1 Website", children=["apps/v1 Deployment"])
def website(site, children):
    return oarlock.Result()
"""


@pytest.fixture(autouse=True)
def as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules and paths that a test adds are forgotten after it."""
    path, modules = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        module_file = getattr(sys.modules[name], "__file__", None) or ""
        if module_file.startswith(str(tmp_path)):
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "site_of_test.py") -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return name


def test_the_controllers_of_a_file_are_in_the_order_of_their_definition(tmp_path: Path) -> None:
    more = '\n@oarlock.steps("example.com/v1 Record", name="a-record")\nasync def record(obj, ctx): ...\n'
    file = write(tmp_path, SITE + more)
    assert [each.name for each in load(file)] == ["website", "a-record"]
    assert [each.name for each in load(tmp_path / file)] == ["website", "a-record"]


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    file = write(tmp_path, SITE)
    assert load(file)[0] is load(file)[0]


def test_a_file_finds_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path, 'IMAGE = "nginx"\n', "apart/parts_of_test.py")
    file = write(tmp_path, "from parts_of_test import IMAGE\n" + SITE, "apart/site_of_test.py")
    definitions = load(file)
    assert [path.name for path in files_of(definitions)] == ["parts_of_test.py", "site_of_test.py"]


def test_a_controller_that_is_imported_from_elsewhere_is_one_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, SITE, "parts_of_test.py")
    assert [each.name for each in load(write(tmp_path, "from parts_of_test import website\n"))] == ["website"]
    assert load(write(tmp_path, "from parts_of_test import website\nsame = website\n", "twice_of_test.py"))


def test_a_file_with_the_name_of_a_library_does_not_hide_it(tmp_path: Path) -> None:
    import json

    assert load(write(tmp_path, SITE, "json.py"))
    assert sys.modules["json"] is json


def test_a_file_does_not_hide_a_library_that_is_imported_later(tmp_path: Path) -> None:
    """As an operator of Redis in redis.py hid the client of Redis. Here another library, as that one is loaded."""
    write(tmp_path, 'WHOSE = "a library"\n', "libraries/library_of_test.py")
    sys.path.append(str(tmp_path / "libraries"))
    (definition,) = load(write(tmp_path, SITE, "own/library_of_test.py"))
    assert definition.name == "website"
    assert importlib.import_module("library_of_test").WHOSE == "a library"


def test_a_dotted_module(tmp_path: Path) -> None:
    write(tmp_path, "", "shop_of_test/__init__.py")
    write(tmp_path, "IMAGE = 'nginx'", "shop_of_test/parts.py")
    write(tmp_path, "from .parts import IMAGE\n" + SITE, "shop_of_test/site.py")
    assert [each.name for each in load("shop_of_test.site")] == ["website"]


WRONG = {
    "nothing there": (None, "site_of_test.py", "site_of_test.py: no such file; give one with your controllers,"),
    "no module": (None, "nowhere.site", "nowhere.site: no such file, and no such module here or installed"),
    "neither": (None, "what is this", "'what is this' is neither a file nor the dotted name of a module"),
    "a folder": (None, ".", ".: is a folder; give a file of it"),
    "no Python": ("a: 1", "site.yaml", "site.yaml: is no Python file; its name ends with .py"),
    "syntax": ("x = 1\ndef website(:\n", "", "site_of_test.py:2: SyntaxError: invalid syntax"),
    "indentation": ("if 1:\nx = 1\n", "", "site_of_test.py:2: IndentationError: expected an indented block"),
    "an import": ("\nimport nowhere.parts\n", "", "site_of_test.py:2: no module 'nowhere'; install it where oarlock"),
    "a name": (
        "from oarlock import Wish\n",
        "",
        "site_of_test.py:1: ImportError: cannot import name 'Wish' from 'oarlock'",
    ),
    "relative": ("from . import parts\n", "", "site_of_test.py:1: attempted relative import with no known parent"),
    "raises": ("def f():\n  return 1 / 0\nf()\n", "", "site_of_test.py:2: ZeroDivisionError: division by zero"),
    "raises nothing said": ("raise ValueError\n", "", "site_of_test.py:1: ValueError: no reason given"),
    "ends the process": ("raise SystemExit(3)\n", "", "site_of_test.py:1: it ends the process (3); keep that under"),
    "no controllers": ("import oarlock\n", "", "site_of_test.py: no controllers in it; put @oarlock.desired or"),
    "one name twice": (
        SITE + "\nsecond = oarlock.desired('v1 Pod', name='website')(lambda pod, children: None)\n",
        "",
        "site_of_test.py: two controllers are called 'website'; give one of them name=",
    ),
    "one name to --controllers": (
        SITE + "\nsecond = oarlock.desired('v1 Pod', name='website-controller')(lambda pod, children: None)\n",
        "",
        "site_of_test.py: the controllers 'website' and 'website-controller' are one to --controllers, which takes a",
    ),
    "a bad definition": (
        "import oarlock\n\n@oarlock.desired('Website')\ndef website(site, children): ...\n",
        "",
        "site_of_test.py:3: 'Website' is no kind: write it as",
    ),
}


@pytest.mark.parametrize(("text", "name", "line"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str | None, name: str, line: str) -> None:
    name = name or "site_of_test.py"
    if text is not None:
        write(tmp_path, text, name)
    with pytest.raises(BadDefinition) as told:
        load(name if "." in name or " " in name else f"./{name}")
    assert str(told.value).startswith(line)
    assert "\n" not in str(told.value)


NAMES = {
    "site.py": "site",
    "./operators/My_Site.py": "my-site",
    "shop.operators.site": "site",
    "/somewhere/shop/__init__.py": "shop",
    "a" * 50 + ".py": "a" * 40,
}


@pytest.mark.parametrize(("what", "name"), NAMES.items(), ids=list(NAMES.values()))
def test_a_fleet_is_called_as_the_file(what: str, name: str) -> None:
    assert fleet_of(what) == name


def test_a_file_whose_name_names_no_fleet() -> None:
    with pytest.raises(BadDefinition, match="give one that begins with a letter, with --fleet-id"):
        fleet_of("2nd.py")
