"""The table of docs/flags.md, from the settings themselves. `python -m tests.docs.flag_table` writes it anew."""

from __future__ import annotations

from oarlock.cli.options.setting_options import SETTINGS, flag, told, variable
from oarlock.workers.process.settings import Settings, setting_names
from tests import ROOT

PAGE = ROOT / "docs/flags.md"
MARK = "<!-- the table is made from cli/options/setting_options.py: python -m tests.docs.flag_table -->\n"


def table() -> str:
    """A line for each setting."""
    lines = ["| flag | variable | default | kube-controller-manager | meaning |", "|---|---|---|---|---|"]
    told_of, bounds = list(SETTINGS), [name for name in setting_names() if name not in SETTINGS]
    for name in [*told_of[:1], *bounds, *told_of[1:]]:  # --controllers, what bounds each of them, all else
        about, default = told(name), Settings().value(name)
        text = str(default).lower() if isinstance(default, bool) else str(default)
        shown = about.default or (f"`{text}`" if text else "")
        upstream = f"`{about.upstream}`" if about.upstream else ""
        lines.append(
            f"| `{flag(name)}` | `{variable(name)}` | {shown} | {upstream} | {about.help.replace('|', '&#124;')} |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page as it should be."""
    head, _, _ = PAGE.read_text().partition(MARK)
    return head + MARK + table()


if __name__ == "__main__":
    PAGE.write_text(page())
