"""Whom the principals of a role mean: nobody becomes somebody of an issuer by the name that they have elsewhere."""

import pytest
from dragoman.access.roles import has
from dragoman.config.roles import Role
from dragoman.model import Principal

ISSUER = "https://idp.example/team"
CAROL = Role(name="carol", principals=frozenset({f"{ISSUER}#carol"}))


@pytest.mark.parametrize(
    "principal",
    [
        Principal(name=f"{ISSUER}#carol"),
        Principal(name="ann", subject=f"{ISSUER}#carol"),
        Principal(name="ann", issuer="https://other.example", subject=f"{ISSUER}#carol"),
        Principal(name="carol", subject="carol"),
        Principal(name="carol", issuer="https://other.example", subject="carol"),
    ],
)
def test_no_name_stands_for_somebody_of_an_issuer(principal: Principal):
    assert not has(principal, CAROL)


@pytest.mark.parametrize("issuer", ["", "proxy", "https://other.example"])
def test_no_name_stands_for_somebody_whom_a_proxy_signed_in(issuer: str):
    carol = Role(name="carol", principals=frozenset({"proxy#carol"}))
    assert has(Principal(name="carol", issuer="proxy", subject="carol"), carol)
    assert not has(Principal(name="proxy#carol", issuer=issuer, subject="proxy#carol"), carol)


def test_who_the_issuer_signed_in_is_meant():
    assert has(Principal(name="x", issuer=ISSUER, subject="carol"), CAROL)


@pytest.mark.parametrize("name", ["ann", "guest#EXT#@team.example", "auth0|12#3", "proxy"])
def test_a_name_is_somebody_without_an_issuer(name: str):
    assert has(Principal(name=name), Role(name="r", principals=frozenset({name})))
