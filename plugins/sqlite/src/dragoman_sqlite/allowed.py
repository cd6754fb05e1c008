"""What a query may use in SQLite, as plain data. The core's rules and the worker's authorizer are built from it.

Everything is an allow list: whatever a later SQLite adds is refused until it is added here.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Pure functions of their arguments. printf, format, zeroblob, randomblob, replace and instr can take long or return
# large values: the length limit and the killable worker bound them.
SCALAR = _names(
    "abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim"
    " max min nullif octet_length printf quote randomblob replace round rtrim sign soundex substr substring subtype"
    " trim typeof unhex unicode unistr unistr_quote unlikely upper zeroblob"
)
# Functions about the library or the connection, which change nothing. A connection has never written anything here.
SESSION = _names(
    "changes last_insert_rowid random sqlite_compileoption_get sqlite_compileoption_used sqlite_source_id"
    " sqlite_version total_changes"
)
MATH = _names(
    "acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power"
    " radians sin sinh sqrt tan tanh trunc"
)
DATE = _names("current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch")
AGGREGATE = _names(
    "avg count group_concat max median min percentile percentile_cont percentile_disc string_agg sum total"
)
WINDOW = _names("cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number")
JSON = _names(
    "json json_array json_array_insert json_array_length json_error_position json_extract json_group_array"
    " json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set"
    " json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object"
    " jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set"
)
# Auxiliary functions of full-text and spatial tables, which read the row they are called on. fts3's optimize() is
# missing, since it writes.
SEARCH = _names("bm25 highlight snippet offsets matchinfo match regexp")
SPATIAL = _names(
    "geopoly_area geopoly_bbox geopoly_blob geopoly_ccw geopoly_contains_point geopoly_group_bbox geopoly_json"
    " geopoly_overlap geopoly_regular geopoly_svg geopoly_within geopoly_xform rtreedepth rtreenode"
)
# SQLite reports its JSON operators to an authorizer as functions.
OPERATORS = _names("-> ->>")

FUNCTIONS = SCALAR | SESSION | MATH | DATE | AGGREGATE | WINDOW | JSON | SEARCH | SPATIAL | OPERATORS
"""Functions by name, in lower case.

Missing on purpose: load_extension and fts3_tokenizer run native code; readfile, writefile, edit and other functions of
the shell reach files; sqlite_log writes to the host's log; optimize writes; fts5 and geopoly_debug expose internals.
"""

# PRAGMAs that take a name or a number of errors, and read the catalog, or the file like a query over every table.
_NAMED_PRAGMAS = _names(
    "foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check table_info"
    " table_list table_xinfo"
)
# PRAGMAs that read a fact about the file, the connection or the library if they get no value.
_PLAIN_PRAGMAS = _names(
    "analysis_limit application_id auto_vacuum automatic_index busy_timeout cache_size cache_spill cell_size_check"
    " checkpoint_fullfsync collation_list compile_options data_version defer_foreign_keys encoding"
    " foreign_keys freelist_count fullfsync function_list hard_heap_limit ignore_check_constraints journal_mode"
    " journal_size_limit legacy_alter_table locking_mode max_page_count mmap_size module_list page_count page_size"
    " pragma_list query_only read_uncommitted recursive_triggers reverse_unordered_selects schema_version secure_delete"
    " soft_heap_limit synchronous temp_store threads trusted_schema user_version wal_autocheckpoint writable_schema"
)
PRAGMAS = {name: name in _NAMED_PRAGMAS for name in _NAMED_PRAGMAS | _PLAIN_PRAGMAS}
"""PRAGMAs by name, in lower case, and whether they may have an argument: for the others an argument is a write.

Missing on purpose: optimize, incremental_vacuum, wal_checkpoint and shrink_memory act when they are read;
case_sensitive_like changes a function; database_list, temp_store_directory and data_store_directory show paths of the
host.
"""

TABLE_FUNCTIONS = _names("json_each json_tree jsonb_each jsonb_tree generate_series") | {
    f"pragma_{name}" for name in PRAGMAS
}
"""Table-valued functions by name, in lower case. They can also be named as tables, without an argument."""
