"""What the rights of a key let its holder see."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from service.api.callers import ANYONE, Caller, Rights
from service.catalog.errors import PermissionDeniedError
from service.catalog.names import Namespace, TableName


def caller(**rights: Any) -> Caller:
    return Caller.of("somebody", Rights.model_validate(rights))


def table(name: str) -> TableName:
    *above, own = name.split("$")
    return TableName(Namespace(tuple(above)), own)


@pytest.mark.parametrize(
    ("tables", "readable", "hidden"),
    [
        (None, ["t", "a$t"], []),
        ([], [], ["t", "a$t"]),
        (["t"], ["t"], ["t2", "a$t", "T"]),
        (["a$*"], ["a$t", "a$b$t"], ["a", "t", "ab$t"]),
        (["*"], ["t", "a$t"], []),
        (["a$t", "b$x*"], ["a$t", "b$x", "b$xy$z"], ["a$u", "b$y"]),
    ],
)
def test_tables_are_named_whole_or_by_their_beginning(
    tables: Any, readable: Any, hidden: Any
) -> None:
    somebody = caller(tables=tables)
    assert all(somebody.may_read(None, table(each)) for each in readable)
    assert not any(somebody.may_read(None, table(each)) for each in hidden)
    for each in hidden:
        with pytest.raises(PermissionDeniedError, match="no right"):
            somebody.require_table(None, table(each))


@pytest.mark.parametrize(
    ("tables", "entered", "closed"),
    [
        (None, ["", "a", "a$b"], []),
        (["a$b$t"], ["", "a", "a$b"], ["b", "a$c", "a$b$t", "a$b$c"]),
        (["a$b*"], ["", "a", "a$b", "a$bc", "a$b$c"], ["a$c", "b"]),
        (["t"], [""], ["t", "a"]),
    ],
)
def test_namespaces_are_entered_that_may_hold_a_readable_table(
    tables: Any, entered: Any, closed: Any
) -> None:
    somebody = caller(tables=tables)

    def may_enter(name: str) -> bool:
        return somebody.may_enter(None, Namespace(() if name == "" else tuple(name.split("$"))))

    assert all(map(may_enter, entered))
    assert not any(map(may_enter, closed))


def test_rights_for_named_databases_open_no_other() -> None:
    somebody = caller(databases=["one"], tables=["one$t"])
    assert somebody.may_read("one", table("t"))
    assert somebody.may_enter("one")
    for other in ("two", None):
        assert not somebody.may_read(other, table("t"))
        assert not somebody.may_enter(other)


def test_the_first_part_of_a_name_is_the_database_where_there_are_several() -> None:
    somebody = caller(tables=["sales$*", "web$a$t"])
    assert somebody.may_read("sales", table("t"))
    assert somebody.may_read("sales", table("a$t"))
    assert somebody.may_read("web", table("a$t"))
    for database, name in (("web", "t"), ("web", "sales$t"), ("a", "t"), ("salesman", "t")):
        assert not somebody.may_read(database, table(name))
    assert somebody.may_enter("sales")
    assert somebody.may_enter("web")
    assert somebody.may_enter("web", Namespace(("a",)))
    assert not somebody.may_enter("web", Namespace(("sales",)))
    assert not somebody.may_enter("other")
    with pytest.raises(PermissionDeniedError, match=r"table 'web\$sales\$t'"):
        somebody.require_table("web", table("sales$t"))
    with pytest.raises(PermissionDeniedError, match="namespace 'other'"):
        somebody.require_namespace("other")


def test_nothing_is_bounded_where_nobody_is_asked_who_they_are() -> None:
    assert ANYONE.may_read("one", table("a$t"))
    assert ANYONE.can_write
    assert not caller().can_write
    assert caller(write=True).can_write


@pytest.mark.parametrize("wrong", [{"table": ["t"]}, {"tables": "t"}, {"write": "perhaps"}])
def test_rights_that_are_misspelt_are_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Rights.model_validate(wrong)
