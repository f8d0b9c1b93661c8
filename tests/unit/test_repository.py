"""Laws of the repository itself: what is generated, exported, imported, documented and tracked."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest

import lance_core
from service.settings import ENV_PREFIX, Settings
from service.settings_sources import CONFIG_VARIABLE

ROOT = Path(__file__).parents[2]
WEB_FRAMEWORKS = {"fastapi", "starlette", "uvicorn", "pydantic", "prometheus_client"}
NEVER_SHIPPED = {"lance", "lancedb", "pyspark"}
MACHINE_PATH = re.compile(rb"(?<![\w./~-])/(?:home/\w+/|Users/\w+/|root/\.|work/(?:main|shared)\b)")
ADDRESS_OF_A_REGISTRY = re.compile(
    rb"--(?:extra-)?index-url|pypi\.org|files\.pythonhosted|/simple/"
)


def run(*command: str | Path) -> str:
    """Run a command at the root of the repository; return what it printed."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked_files() -> list[Path]:
    paths = [ROOT / name for name in run("git", "ls-files", "-z").split("\0") if name]
    return [path for path in paths if path.is_file()]


def modules_loaded_by(module: str) -> set[str]:
    """Import a module in a fresh interpreter; return the top-level names that it brought in."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(run(sys.executable, "-c", program).split())


def packages_imported_by(folder: Path) -> set[str]:
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"lance_core", "pipeline", "service"}


def test_the_generated_messages_are_what_protos_says(tmp_path: Path) -> None:
    (tmp_path / "lance_core" / "proto").mkdir(parents=True)
    run(sys.executable, ROOT / "protos" / "generate.py", "--target", tmp_path)
    fresh = {p.name: p.read_bytes() for p in (tmp_path / "lance_core" / "proto").iterdir()}
    committed = (ROOT / "lance_core" / "proto").glob("*_pb2.py*")
    assert fresh == {path.name: path.read_bytes() for path in committed}


def test_the_public_names_are_those_of_all() -> None:
    public = {
        name
        for name, value in vars(lance_core).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert public == set(lance_core.__all__)
    assert list(lance_core.__all__) == sorted(lance_core.__all__)


def test_importing_the_core_loads_no_web_framework_and_no_oracle() -> None:
    assert modules_loaded_by("lance_core").isdisjoint(WEB_FRAMEWORKS | NEVER_SHIPPED)


def test_importing_the_service_loads_no_spark_and_no_oracle() -> None:
    assert modules_loaded_by("service.app").isdisjoint(NEVER_SHIPPED)


@pytest.mark.parametrize("package", ["lance_core", "pipeline", "service"])
def test_shipped_code_imports_only_packages_that_the_runtime_lock_file_names(package: str) -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    # Those of an extra are imported where they are used, and whoever lacks them is told.
    extras = ("spark", "s3") if package == "pipeline" else ("demo", "s3", "tracing")
    needs = [re.split("[=>]", line)[0] for name in extras for line in extra[name]]
    optional = "".join(f"{name}==\n" for name in [*needs, "botocore", "opentelemetry-api", "py4j"])
    lock = (ROOT / "requirements.lock").read_text() + optional
    locked = {
        name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)
    }
    distributions = packages_distributions()
    unlocked = {
        name
        for name in packages_imported_by(ROOT / package)
        if locked.isdisjoint(d.lower().replace("_", "-") for d in distributions.get(name, []))
    }
    assert unlocked == set()


def test_no_tracked_file_names_a_path_of_some_machine() -> None:
    found = {
        str(path.relative_to(ROOT)): match.group().decode()
        for path in tracked_files()
        if path != Path(__file__) and (match := MACHINE_PATH.search(path.read_bytes())) is not None
    }
    assert found == {}


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements-demo.lock", "requirements-dev.lock"]
)
def test_a_lock_file_has_hashes_and_names_no_registry(name: str) -> None:
    text = (ROOT / name).read_bytes()
    assert ADDRESS_OF_A_REGISTRY.search(text) is None
    pinned = re.split(rb"\n(?=\S)", text.strip())
    assert [part for part in pinned if b"--hash=sha256:" not in part] == []


def test_every_setting_is_documented() -> None:
    readme = (ROOT / "README.md").read_text()
    expected = {f"`{ENV_PREFIX}{name.upper()}`" for name in Settings.model_fields}
    assert {name for name in expected if name not in readme} == set()


def test_the_documentation_names_no_setting_that_does_not_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    known = {ENV_PREFIX + name.upper() for name in Settings.model_fields} | {CONFIG_VARIABLE}
    assert set(re.findall(rf"{ENV_PREFIX}[A-Z_]+", readme)) - known == set()


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    listing = run("make", "-s", "help")
    assert re.findall(r"^  make ([a-z]+) ", listing, re.MULTILINE) == phony[1].split()


def test_every_make_target_named_in_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"(?:^|`)make ([a-z]+)\b", (ROOT / "README.md").read_text(), re.MULTILINE)
    )
    assert named - targets == set()
