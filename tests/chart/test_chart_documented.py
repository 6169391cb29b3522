"""docs/chart.md names every example there is, and what it tells people to type is what the chart takes."""

from __future__ import annotations

import re

import yaml

from tests.chart.engine import CHART, CI_VALUES, ROOT, render

TEXT = (ROOT / "docs" / "chart.md").read_text()


def test_every_example_is_named_and_there_is_no_other() -> None:
    named = set(re.findall(r"`([\w-]+-values\.yaml)`", TEXT))
    assert named == {path.name for path in CI_VALUES}


def test_the_secrets_it_makes_are_those_that_are_read() -> None:
    made = set(re.findall(r"--from-literal=([\w.-]+)=", TEXT))
    values = {"redis": {"existingSecret": "oarlock-redis"}, "signing": {"existingSecret": "oarlock-signing"}}
    for name in ("redis.existingSecret=oarlock-redis", "signing.existingSecret=oarlock-signing"):
        assert f"--set {name}" in TEXT
    read: set[str] = set()
    for each in render(values).of("StatefulSet"):
        pod = each["spec"]["template"]["spec"]
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            read |= {entry["valueFrom"]["secretKeyRef"]["key"] for entry in container["env"] if "valueFrom" in entry}
        read |= {item["key"] for volume in pod["volumes"] for item in volume.get("secret", {}).get("items", [])}
    assert made == read


def test_values_it_speaks_of_exist() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in set(re.findall(r"`((?:[a-z]\w*\.)+\w+|shards|priorityClassName)(?:=[^`]*)?`", TEXT)):
        if path == "settings.NAME" or path.partition(".")[0] not in values:
            continue
        found = values
        for part in path.split("."):
            assert part in found, path
            found = found[part]


def test_the_way_back_is_that_of_the_notes() -> None:
    """Word for word, but for the blanks before a comment."""
    told = TEXT[TEXT.index("## Going back") :].split("\n\n")[2]
    commands = [re.sub(r"\s+#.*", "", line.strip()) for line in told.splitlines()]
    notes = [re.sub(r"\s+#.*", "", line.strip()) for line in render().notes.splitlines()]
    assert [line for line in commands if line and not line.startswith("#")]
    assert all(line in notes for line in commands)
