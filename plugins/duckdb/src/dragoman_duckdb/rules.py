"""The read-only policy as data: functions that use no file, network, setting, sequence or other session.

Left out on purpose:

- read_*, glob, sniff_csv, parquet_* and query_table read what a text names.
- nextval, setseed, write_log and enable_* change something.
- json_execute_serialized_sql and json_deserialize_sql run SQL that nobody judged.
- sleep_ms only waits.
- current_setting, getvariable and duckdb_* show facts about the host.

The views of the same names, and those of pg_catalog, show settings, paths, and relations outside `schemas`, so they are
closed.
"""

import re

from dragoman import Rules

_OF_NUMBERS = """
    abs acos acosh asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
    factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least
    least_common_multiple lgamma ln log log10 log2 mod nextafter pi pow power radians random round round_even
    roundbankers sign signbit sin sinh sqrt tan tanh trunc xor
"""
_OF_TEXTS = """
    ascii bar base64 bin bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein
    decode editdist3 encode ends_with format format_bytes formatreadabledecimalsize formatreadablesize from_base64
    from_binary from_hex hamming hash hex instr jaccard jaro_similarity jaro_winkler_similarity lcase left
    left_grapheme len length length_grapheme levenshtein lower lpad ltrim md5 md5_number mismatches nfc_normalize
    octet_length ord overlay parse_filename position prefix printf regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right right_grapheme
    rpad rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split string_split_regex
    string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base to_base64 to_binary
    to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode
"""
_OF_TIMES = """
    age ago century current_date current_localtime current_localtimestamp current_time current_timestamp date date_add
    date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek
    dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era extract get_current_time get_current_timestamp
    hour isodow isoyear julian last_day localtime localtimestamp make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month monthname nanosecond
    normalized_interval now quarter second strftime strptime time_bucket timezone timezone_hour timezone_minute
    to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months
    to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp try_strptime week weekday
    weekofyear year yearweek
"""
_OF_LISTS = """
    array_append array_apply array_cat array_concat array_contains array_cosine_distance array_cosine_similarity
    array_distance array_distinct array_dot_product array_extract array_filter array_has array_has_all array_has_any
    array_indexof array_inner_product array_intersect array_length array_position array_prepend array_reduce
    array_reverse array_reverse_sort array_slice array_sort array_to_string array_transform array_unique array_value
    array_zip cardinality element_at flatten generate_series list_aggregate list_any_value list_append list_apply
    list_avg list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance list_cosine_similarity
    list_count list_distance list_distinct list_dot_product list_element list_extract list_filter list_first list_has
    list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect list_last list_max
    list_median list_min list_mode list_pack list_position list_prepend list_product list_reduce list_reverse
    list_reverse_sort list_select list_slice list_sort list_string_agg list_sum list_transform list_unique list_value
    list_where list_zip map map_concat map_contains map_entries map_extract map_extract_value map_from_entries map_keys
    map_values range row struct_concat struct_extract struct_extract_at struct_insert struct_keys struct_pack
    struct_values union_extract union_tag union_value unnest
"""
_OF_JSON = """
    array_to_json from_json from_json_strict json json_array json_array_length json_contains json_exists json_extract
    json_extract_path json_extract_path_text json_extract_string json_group_array json_group_object
    json_group_structure json_keys json_merge_patch json_object json_pretty json_quote json_structure json_transform
    json_transform_strict json_type json_valid json_value row_to_json to_json
"""
_OF_GROUPS = """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min arg_min_null
    argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if countif covar_pop covar_samp
    entropy favg first fsum geomean group_concat grouping grouping_id histogram kahan_sum kurtosis kurtosis_pop last
    list listagg mad max max_by mean median min min_by mode percentile_cont percentile_disc product quantile
    quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg sum sumkahan var_pop var_samp
    variance wavg weighted_avg
"""
_OF_WINDOWS = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
_OF_TYPES = """
    cast coalesce columns constant_or_null enum_code enum_first enum_last enum_range gen_random_uuid if ifnull
    nullif try_cast typeof uuid uuidv4 uuidv7
"""
_TYPES = """
    array bigint bignum binary bit bitstring blob bool boolean bpchar bytea char date datetime dec decimal double enum
    float float4 float8 geometry guid hugeint int int1 int128 int16 int2 int32 int4 int64 int8 integer integral interval
    json list logical long map null numeric nvarchar oid real row short signed smallint string struct text time time_ns
    timestamp timestamp_ms timestamp_ns timestamp_s timestamp_us timestamptz timestamptz_ns timetz tinyint tuple ubigint
    uhugeint uint128 uint16 uint32 uint64 uint8 uinteger union usmallint utinyint uuid varbinary varchar variant varint
"""
# Not `views`: a definition names the files that it reads.
_LISTS = """
    character_sets check_constraints columns constraint_column_usage constraint_table_usage key_column_usage
    referential_constraints schemata table_constraints tables
"""
_ALL = " ".join((_OF_NUMBERS, _OF_TEXTS, _OF_TIMES, _OF_LISTS, _OF_JSON, _OF_GROUPS, _OF_WINDOWS, _OF_TYPES))

RULES = Rules(
    functions=frozenset(_ALL.split()),
    substitutes={
        **dict.fromkeys(("isnull", "nvl"), "COALESCE(a, b)"),
        **dict.fromkeys(("getdate", "sysdate"), "now()"),
        **dict.fromkeys(("date_format", "to_char"), "strftime(x, '%Y-%m-%d')"),
        **dict.fromkeys(("str_to_date", "to_date", "date_parse"), "strptime(x, '%Y-%m-%d')"),
        **dict.fromkeys(("charindex", "locate"), "instr(x, 'part')"),
        **dict.fromkeys(("dateadd", "adddate"), "x + INTERVAL 1 DAY"),
        "timestampdiff": "date_diff('day', earlier, later)",
        "curdate": "current_date",
        "iif": "IF(condition, a, b)",
        "convert": "CAST(x AS type)",
        "rand": "random()",
    },
    table_functions=frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"}),
    refused_relations=(
        # DuckDB reads a file in place of a table of that name. It may not, and is not asked.
        re.compile(r".*\.(csv|tsv|json|ndjson|parquet|db|duckdb|sqlite|xlsx|gz|zst)"),
        # Facts about the engine itself are in the schema of users' tables, or have a name that is found without its
        # schema.
        re.compile(r"(.*\.)?(duckdb_\w+|pragma_\w+|sqlite_(temp_)?(master|schema))"),
        re.compile(r"pg_\w+"),
    ),
    types=frozenset(_TYPES.split()),
    system_schemas=frozenset({"information_schema", "pg_catalog"}),
    system_relations=frozenset(f"information_schema.{name}" for name in _LISTS.split()),
)
RESERVED = frozenset(
    """
    all analyse analyze and anti any array as asc asof asymmetric at authorization binary both by case cast check
    collate collation column concurrently constraint create cross default deferrable desc describe distinct do else end
    except false fetch for foreign freeze from full glob group having ilike in initially inner intersect into is isnull
    join lambda lateral leading left like limit natural not notnull null offset on only or order outer overlaps pivot
    pivot_longer pivot_wider placing positional primary qualify references returning right select semi show similar some
    summarize symmetric table tablesample then to trailing true union unique unpack unpivot using variadic verbose when
    where window with
    """.split()
)
# sqlglot reads these otherwise where a column or a relation may stand.
MISREAD = frozenset(
    """
    alter between connect_by_root drop explain force grant insert install map partitioned_by pragma regexp revoke rlike
    rollback uncache values xor
    """.split()
)
