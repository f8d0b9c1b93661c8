"""Packages from npm, installed once into a folder outside of the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_FOLDER = Path(__file__).with_name("node")
_INSTALL_S = 300


def node_modules() -> Path:
    """Return the folder of what ``tests/node/package.json`` names, or skip the test.

    It is kept in the user's cache folder, by what is asked for.
    """
    for command in ("node", "npm"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed (Debian: apt-get install nodejs npm)")
    asked = (_FOLDER / "package.json").read_bytes()
    place = _cache() / hashlib.sha256(asked).hexdigest()[:16]
    if not place.exists():
        _install(asked, place)
    return place / "node_modules"


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given != "" else Path.home() / ".cache"
    return base / "lance-serve" / "node"


def _install(asked: bytes, place: Path) -> None:
    """Install beside the place and move it there, so that it is there as a whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / "fresh"
        fresh.mkdir()
        (fresh / "package.json").write_bytes(asked)
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        try:
            done = subprocess.run(  # noqa: S603 - what we ask for ourselves
                command, cwd=fresh, capture_output=True, text=True, timeout=_INSTALL_S, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm could not install the Node client within {_INSTALL_S} s")
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()
            pytest.skip(f"npm could not install the Node client: {reason[:3]}")
        if not place.exists():  # another test run may have been quicker
            fresh.rename(place)
