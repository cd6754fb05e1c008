"""Functions that nearly every engine has and that only compute, and words that nearly every engine reserves."""

from __future__ import annotations

from typing import Final

_OF_VALUES = """
    abs acos asin atan atan2 cast ceil ceiling coalesce cos cot degrees exp extract floor greatest if ifnull iif least
    ln log log10 log2 mod nullif pi power pow radians round sign sin sqrt tan trunc truncate try_cast
"""
_OF_TEXTS = """
    ascii bit_length char_length character_length chr concat concat_ws left length lower ltrim octet_length overlay
    position replace reverse right rtrim split_part starts_with strpos substr substring translate trim upper
"""
_OF_TIMES = """
    current_date current_time current_timestamp date date_part date_trunc day hour localtime localtimestamp minute month
    now quarter second week year
"""
_OF_GROUPS = """
    any_value array_agg avg bool_and bool_or corr count covar_pop covar_samp every grouping listagg max median min
    percentile_cont percentile_disc stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance
"""
_OF_WINDOWS = """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_RESERVED = """
    all analyse analyze and any array as asc asymmetric authorization between binary both case cast check collate
    column constraint create cross current_date current_role current_time current_timestamp current_user default
    deferrable desc distinct do else end except false for foreign freeze from full grant group having ilike in
    initially inner intersect into is isnull join leading left like limit localtime localtimestamp natural new not
    notnull null off offset old on only or order outer overlaps placing primary references right select session_user
    set similar some symmetric table then to trailing true union unique user using verbose when where
"""

STANDARD_FUNCTIONS: Final = frozenset(f"{_OF_VALUES} {_OF_TEXTS} {_OF_TIMES} {_OF_GROUPS} {_OF_WINDOWS}".split())
"""For `Rules.functions` of a dialect, in lower case.

Add the engine's own functions, each known to touch no file, network, setting or other session. Add functions that make
long texts of short ones (`lpad`) only where memory is bounded. Take out those that the engine lacks, if its users can
define functions: one of theirs could have such a name, and do anything.
"""

STANDARD_RESERVED: Final = frozenset(_RESERVED.split())
"""Words that need quotes as names, for `Dialect.reserved`, in lower case. Add the engine's own."""
