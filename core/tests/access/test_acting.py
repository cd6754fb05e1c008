"""As whom a database acts for its callers."""

import pytest
from dragoman.access.delegation import Delegation
from dragoman.model import Acting, Claims, Database, Principal


@pytest.mark.parametrize("act_as", ["{user}", "{claims.login}", "gate{claims.end}"])
def test_nobody_acts_as_the_user_who_signs_in(act_as: str):
    database = Database(name="lake", dialect="trino", user="gateway", identity="user", act_as=act_as)
    delegation = Delegation(database)
    named = Principal("x", subject="gateway", claims=Claims({"login": "gateway", "end": "way"}))
    other = Principal("x", subject="ann", claims=Claims({"login": "ann", "end": "s"}))
    assert delegation.whose_catalog(named, ()) is None
    assert delegation.whose_catalog(other, ()) in (Acting(user="ann"), Acting(user="gates"))
