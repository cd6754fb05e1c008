"""Who calls, as policies and logs see it."""

from __future__ import annotations

import pytest
from dragoman import Claims, Principal


def test_principals_with_other_claims_are_other_principals() -> None:
    one, other = (Principal("ada", claims=Claims({"tenant": tenant, "at": [1, {"x": 2}]})) for tenant in "ab")
    again = Principal("ada", claims=Claims({"at": [1, {"x": 2}], "tenant": "a"}))
    assert len({one, other, again}) == 2
    assert one == again


def test_claims_cannot_be_changed() -> None:
    values = {"tenant": "a"}
    claims = Claims(values)
    values["tenant"] = "b"
    assert dict(claims) == {"tenant": "a"}
    with pytest.raises(TypeError):
        claims["tenant"] = "b"  # type: ignore[index]


def test_the_values_of_claims_are_not_shown() -> None:
    assert repr(Principal("ada", claims=Claims({"phone": "123456"}))).count("123456") == 0
