"""What this interface has and this release does not: refused with 406, never ignored.

Each later feature removes its line here. Paths that are listed nowhere answer 404.
"""

from __future__ import annotations

LATER_PATHS: tuple[tuple[str, str], ...] = (
    # indices, tags, branches
    ("POST", "/v1/table/{id}/index/{name}/drop"),
    ("POST", "/v1/table/{id}/create_index"),
    ("POST", "/v1/table/{id}/create_scalar_index"),
    ("POST", "/v1/table/{id}/tags/create"),
    ("POST", "/v1/table/{id}/tags/update"),
    ("POST", "/v1/table/{id}/tags/delete"),
    ("POST", "/v1/table/{id}/branches/create"),
    ("POST", "/v1/table/{id}/branches/delete"),
    ("POST", "/v1/table/{id}/branches/diff"),
    ("POST", "/v1/table/{id}/branches/cherry_pick"),
    # writes
    ("POST", "/v1/table/{id}/create"),
    ("POST", "/v1/table/{id}/insert"),
    ("POST", "/v1/table/{id}/merge_insert"),
    ("POST", "/v1/table/{id}/update"),
    ("POST", "/v1/table/{id}/delete"),
    ("POST", "/v1/table/{id}/add_columns"),
    ("POST", "/v1/table/{id}/alter_columns"),
    ("POST", "/v1/table/{id}/drop_columns"),
    ("POST", "/v1/table/{id}/update_field_metadata"),
    ("POST", "/v1/table/{id}/schema_metadata/update"),
    ("POST", "/v1/table/{id}/restore"),
    ("POST", "/v1/table/{id}/drop"),
    ("POST", "/v1/table/{id}/rename"),
    ("POST", "/v1/table/{id}/multipart_write/create"),
    ("POST", "/v1/table/{id}/multipart_write/complete"),
    ("POST", "/v1/table/{id}/multipart_write/abort"),
    ("POST", "/v1/namespace/{id}/create"),
    ("POST", "/v1/namespace/{id}/drop"),
    # catalogue
    ("POST", "/v1/table/{id}/clone"),
    ("POST", "/v1/table/{id}/register"),
    ("POST", "/v1/table/{id}/deregister"),
    ("POST", "/v1/table/{id}/declare"),
    ("POST", "/v1/table/{id}/version/describe"),
    ("POST", "/v1/table/{id}/version/create"),
    ("POST", "/v1/table/{id}/version/delete"),
    ("POST", "/v1/table/version/batch-create"),
    ("POST", "/v1/table/batch-commit"),
    ("POST", "/v1/transaction/{id}/describe"),
    ("POST", "/v1/transaction/{id}/alter"),
    # jobs and managed features
    ("POST", "/v1/jobs/describe"),
    ("POST", "/v1/jobs/list"),
    ("POST", "/v1/jobs/cancel"),
    ("POST", "/v1/jobs/pause"),
    ("POST", "/v1/jobs/resume"),
    ("POST", "/v1/jobs/query_events"),
    ("POST", "/v1/table/{id}/fetch_blobs"),
    ("POST", "/v1/table/{id}/backfill_column"),
    ("POST", "/v1/table/{id}/errors"),
    ("POST", "/v1/table/{id}/flush_lsm"),
    ("POST", "/v1/table/{id}/compact_lsm"),
    ("POST", "/v1/table/{id}/get_lsm_stats"),
    ("POST", "/v1/table/{id}/get_lsm_write_spec"),
    ("POST", "/v1/table/{id}/set_lsm_write_spec"),
    ("POST", "/v1/table/{id}/unset_lsm_write_spec"),
    ("GET", "/v1/namespace/{id}/function/list"),
    ("GET", "/v1/namespace/{id}/secret/list"),
    ("GET", "/v1/namespace/{id}/view/list"),
    ("GET", "/v1/namespace/{id}/materialized_view/list"),
    ("POST", "/v1/materialized_view/{id}/create"),
    ("POST", "/v1/view/{id}/describe"),
)
"""Method and path of everything that later releases serve."""
