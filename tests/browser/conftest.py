"""One browser and one service for all tests of this folder, which one worker takes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from playwright.sync_api import Error, expect, sync_playwright

import lance_core
from tests.browser_pages import HOSTILE, LONG
from tests.live_server import live_server
from tests.pylance_dataset import write_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = Path(__file__).parent
_PATIENCE_MS = 60_000  # machines may be busy; nothing waits that is there
expect.set_options(timeout=_PATIENCE_MS)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items: Any) -> None:
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # as its event loop is in the way of tests that have their own
def browser() -> Iterator[Any]:
    found = [path for path in map(shutil.which, _NAMES) if path is not None]
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=found[0] if found else None, args=["--no-sandbox"]
            )
        except Error as error:
            if found:
                raise
            pytest.skip(f"no Chromium here (Debian: apt install chromium): {error.message[:90]}")
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def console_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with ``t1`` of pylance, and tables of odd names and cells in a namespace."""
    root = tmp_path_factory.mktemp("console")
    write_dataset(root / "t1.lance")
    numbers = range(len(HOSTILE))
    point = pa.array([{"x": number, "y z": "in"} for number in numbers])
    cells = pa.table(
        {"cell": HOSTILE, "long": [LONG] * len(HOSTILE), "odd `n'": numbers, "point": point}
    )
    for name in ("a <b>", "p$q", "o'; exit 9; '"):
        lance_core.write_dataset(root / "odd" / f"{name}.lance", cells)
    return root


@pytest.fixture(scope="session")
def console_url(console_root: Path) -> Iterator[Any]:
    with live_server(console_root) as url:
        yield url


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page in a session of its own, which must not have had errors when the test ends."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(_PATIENCE_MS)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
    page.on("console", lambda message: errors.extend(_policy_errors(message)))
    yield page
    context.close()
    assert errors == []


def _policy_errors(message: Any) -> list[str]:
    """Return what the console says of the page itself; answers with errors are told there too."""
    is_ours = message.type == "error" and "the server responded with" not in message.text
    return [message.text] if is_ours else []


@pytest.fixture
def t1(page: Any, console_url: Any) -> Any:
    """The page with ``t1`` in view."""
    page.goto(f"{console_url}/console/")
    page.get_by_role("heading", name="t1").wait_for()
    return page
