"""Every exception the driver can raise becomes one of ours."""

import asyncpg
import pytest
from asyncpg import exceptions
from dragoman import ConnectionFailed, DragomanError, QueryError
from dragoman_postgres.failures import translate_errors


def exception_types(kind):
    for each in kind.__subclasses__():
        yield each
        yield from exception_types(each)


@pytest.mark.parametrize(
    "kind",
    sorted({*exception_types(exceptions.PostgresError), *exception_types(exceptions.InterfaceError)}, key=str),
    ids=lambda kind: kind.__name__,
)
def test_no_exception_of_the_driver_is_forgotten(kind):
    if issubclass(kind, asyncpg.PostgresError) and not kind.sqlstate:
        return
    error = kind("secret place /var/lib and postgresql://u:pw@h")
    with pytest.raises(DragomanError) as raised, translate_errors("shop"):
        raise error
    assert raised.value.suggestion
    if isinstance(raised.value, ConnectionFailed):
        assert "secret place" not in raised.value.message
        assert "'shop'" in raised.value.message


def test_a_message_that_is_no_text_is_an_error_of_the_query():
    with pytest.raises(QueryError, match="UTF-8"), translate_errors("shop"):
        b'"a\xcc" <-- parse error'.decode()
