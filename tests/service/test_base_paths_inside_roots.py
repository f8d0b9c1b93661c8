from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.catalog.confinement import Confinement
from service.catalog.errors import PermissionDeniedError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "a.lance").mkdir(parents=True)
    return root


def test_bases_inside_the_roots_may_be_read(root: Path) -> None:
    confinement = Confinement(str(root), ("s3://bucket/more",))
    confinement.check_base(str(root / "a.lance"))
    confinement.check_base(f"file://{root}/a.lance")
    confinement.check_base("s3://bucket/more/b.lance")
    confinement.check_base("s3://bucket/more")


@pytest.mark.parametrize(
    "uri",
    [
        "/etc",
        "{root}/../secret.lance",
        "{root}x/a.lance",
        "file:///etc",
        "file://localhost/etc",
        "file://{root}/%2e%2e/secret.lance",
        "file://{root}/../secret.lance",
        "FILE:///etc",
        "s3://bucket/other",
        "s3://bucket/more/../other",
        "s3://bucket/more/%2e%2e/other",
        "s3://bucket/moreover",
        "gs://bucket/more",
        "memory:///",
        "{root}/out",
    ],
)
def test_bases_outside_the_roots_are_refused(root: Path, uri: str) -> None:
    (root / "out").symlink_to("/etc")
    with pytest.raises(PermissionDeniedError, match="allowed_roots"):
        Confinement(str(root), ("s3://bucket/more",)).check_base(uri.format(root=root))
