"""An error is told differently by another one, and stays as it is."""

import traceback

import pytest
from dragoman import ColumnNotFound, DragomanError, errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DragomanError)]


class Narrow(DragomanError):
    """An error of a plugin's, made of something else than its message."""

    def __init__(self, most: int) -> None:
        super().__init__(f"More than {most}.", suggestion="Send less.")


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_any_kind_is_told_in_other_words_by_another_one(kind: type[DragomanError]) -> None:
    error = kind("No.", suggestion="Look.", identifier="x", offset=3, context={"sqlstate": "42"})
    other = error.replace(suggestion="Look there.", context={**error.context, "position": "^"})
    assert type(other) is kind
    assert (str(other), other.message, other.identifier, other.offset) == ("No.", "No.", "x", 3)
    assert (other.suggestion, other.context) == ("Look there.", {"sqlstate": "42", "position": "^"})
    assert (error.suggestion, error.context) == ("Look.", {"sqlstate": "42"})


def test_an_error_that_is_made_of_something_else_keeps_what_it_says() -> None:
    other = Narrow(7).replace(context={"sql": "SELECT 1"})
    assert (str(other), other.suggestion, other.context) == ("More than 7.", "Send less.", {"sql": "SELECT 1"})


def test_another_message_is_the_one_that_is_printed() -> None:
    other = ColumnNotFound("There is no secret.x.", identifier="x").replace(message="There is no column.")
    assert str(other) == other.message == "There is no column."


def test_another_error_tells_where_the_first_was_raised() -> None:
    def fail() -> None:
        raise ColumnNotFound("No.")

    with pytest.raises(ColumnNotFound) as caught:
        fail()
    frames = traceback.extract_tb(caught.value.replace(suggestion="Look.").__traceback__)
    assert "fail" in [frame.name for frame in frames]
