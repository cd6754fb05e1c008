"""Which check constraints list values."""

import pytest
from dragoman_postgres.checks import allowed_values

CASES = [
    ("CHECK (a = ANY (ARRAY['x'::text, 'y'::text]))", ("a", ("x", "y"))),
    ("CHECK (a::text = ANY (ARRAY['x'::character varying, 'y, z'::character varying]::text[]))", ("a", ("x", "y, z"))),
    ("CHECK (a::text = ANY (ARRAY['x'::character varying::text]))", ("a", ("x",))),
    ("CHECK (a = ANY (ARRAY['it''s'::bpchar, ']'::bpchar]))", ("a", ("it's", "]"))),
    ("CHECK (VALUE = ANY (ARRAY[1, 2, '-3'::integer]))", ("VALUE", ("1", "2", "-3"))),
    ("CHECK (a = ANY (ARRAY[1.5, (-2)::numeric]))", ("a", ("1.5", "-2"))),
    ('CHECK ("Odd ""a""" = \'x\'::text)', ('Odd "a"', ("x",))),
    ("CHECK (a = ''::text)", ("a", ("",))),
    ("CHECK (a = ANY (ARRAY['x'::text])) NOT VALID", None),
    ("CHECK (a = ANY (ARRAY['x'::text]) OR b = 1)", None),
    ("CHECK (a <> ANY (ARRAY['x'::text]))", None),
    ("CHECK (a = ANY (ARRAY[lower('x'::text)]))", None),
    ("CHECK (a = b)", None),
    ("CHECK (lower(a) = 'x'::text)", None),
    ("CHECK (a = 'x'::text AND b = 'y'::text)", None),
    ("CHECK (a = E'x\\\\y'::text)", None),
    ("CHECK (a > 0)", None),
]


@pytest.mark.parametrize(("definition", "found"), CASES)
def test_a_check_lists_values_only_where_it_says_nothing_else(definition, found):
    assert allowed_values(definition) == found
