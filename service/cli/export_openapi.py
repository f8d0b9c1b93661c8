"""``lance-serve openapi``: print the OpenAPI document."""

from __future__ import annotations

import sys

import yaml

from service.app import create_app
from service.settings import Settings


def export_openapi() -> None:
    """Print the OpenAPI document of this release as YAML."""
    app = create_app(Settings(root="."))
    yaml.safe_dump(app.openapi(), sys.stdout, sort_keys=False, allow_unicode=True, width=100)
