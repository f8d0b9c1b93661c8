"""What is under deploy/ fits together and fits the service, as far as no cluster is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import ENV_PREFIX, Settings
from service.telemetry.metrics import FAMILIES

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "lance-serve"
TEMPLATES = sorted((CHART / "templates").iterdir())
HELPERS = (CHART / "templates" / "_helpers.tpl").read_text()
USED_VALUE = re.compile(r"\.Values((?:\.\w+)+)")


def values() -> Any:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def templates_text() -> str:
    return "\n".join(path.read_text() for path in TEMPLATES)


def lookup(tree: Any, path: str) -> Any:
    for name in path.strip(".").split("."):
        tree = tree[name]
    return tree


def leaves(tree: Any, path: str = "") -> list[str]:
    if isinstance(tree, dict) and len(tree) > 0:
        return [leaf for name, value in tree.items() for leaf in leaves(value, f"{path}.{name}")]
    return [path]


def files(*suffixes: str) -> list[Path]:
    found = [path for path in DEPLOY.rglob("*") if path.suffix in suffixes]
    return sorted(path for path in found if path.parent != CHART / "templates")


@pytest.mark.parametrize(
    "path", files(".yaml", ".yml", ".json"), ids=lambda path: str(path.relative_to(DEPLOY))
)
def test_files_parse(path):
    text = path.read_text()
    assert (json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)) is not None


def test_every_value_that_a_template_uses_is_in_the_values():
    used = set(USED_VALUE.findall(templates_text()))
    assert len(used) > 30
    for path in used:
        lookup(values(), path)


def test_every_value_is_used_by_a_template():
    used = set(USED_VALUE.findall(templates_text()))
    for leaf in leaves(values()):
        assert any(leaf == path or leaf.startswith(f"{path}.") for path in used), leaf


def test_every_helper_and_file_that_a_template_uses_is_there():
    defined = set(re.findall(r'{{- define "([^"]+)"', HELPERS))
    included = set(re.findall(r'include "([^"]+)"', templates_text()))
    assert included == defined
    for name in re.findall(r'\.Files\.Get "([^"]+)"', templates_text()):
        assert (CHART / name).is_file()


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_blocks_of_templates_are_closed(path):
    text = path.read_text()
    opened = len(re.findall(r"{{-? *(?:if|with|range|define) ", text))
    assert opened == len(re.findall(r"{{-? *end *-?}}", text))


def test_settings_named_in_deploy_are_settings():
    settings = set(Settings.model_fields)
    assert set(values()["settings"]) <= settings
    paths = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = [path.read_text() for path in paths]
    named = {name for text in texts for name in re.findall(rf"\b{ENV_PREFIX}([A-Z_]+)\b", text)}
    assert named - {"DATA"} <= {name.upper() for name in settings}  # DATA: compose's own
    config = (CHART / "templates" / "configmap.yaml").read_text()
    assert set(re.findall(r"^    (\w+): ", config, re.MULTILINE)) <= settings


def test_the_image_copies_what_the_build_keeps():
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE
    )
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    named = {name for each in copied for name in each.split()}
    assert named == {line.removeprefix("!") for line in kept if line.startswith("!")}
    for name in named:
        assert (DEPLOY.parent / name).exists(), name


def test_compose_mounts_files_that_are_there():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    mounts = [each for service in compose["services"].values() for each in service["volumes"]]
    places = [each.split(":")[0] for each in mounts if each.startswith("./")]
    assert len(places) > 3
    for place in places:
        assert (DEPLOY / place).exists(), place


def exported_metrics() -> set[str]:
    names = set()
    for family in FAMILIES:
        names.add(family.name)
        if family.kind == "histogram":
            names |= {f"{family.name}_{part}" for part in ("bucket", "count", "sum")}
    return names


@pytest.mark.parametrize(
    "path", [CHART / "rules.yml", DEPLOY / "grafana" / "dashboards" / "lance-serve.json"]
)
def test_metrics_that_are_asked_for_are_exported(path):
    asked = set(re.findall(r"lance_serve_\w+", path.read_text()))
    assert len(asked) > 5
    assert asked <= exported_metrics()


def test_the_dashboard_shows_every_metric():
    shown = (DEPLOY / "grafana" / "dashboards" / "lance-serve.json").read_text()
    for family in FAMILIES:
        assert family.name in shown, family.name


def test_labels_that_are_asked_for_are_labels_of_their_metric():
    labels = {family.name: {*family.labels, "instance", "le"} for family in FAMILIES}
    texts = [(CHART / "rules.yml").read_text()]
    texts.append((DEPLOY / "grafana" / "dashboards" / "lance-serve.json").read_text())
    for text in texts:
        for name, selector in re.findall(
            r"(lance_serve_\w+?)(?:_bucket|_sum|_count)?{([^}]*)}", text
        ):
            asked = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", selector))
            assert asked <= labels[name], name


def test_prometheus_accepts_the_rules():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here (Debian: apt install prometheus)")
    command = [promtool, "check", "rules", str(CHART / "rules.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr


def test_systemd_accepts_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here (Debian: apt install systemd)")
    unit = tmp_path / "lance-serve.service"
    text = (DEPLOY / "systemd" / "lance-serve.service").read_text()
    # The command is not installed where the tests run.
    unit.write_text(text.replace("/opt/lance-serve/bin/lance-serve", shutil.which("true") or ""))
    command = [analyze, "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert "lance-serve.service" not in done.stderr
