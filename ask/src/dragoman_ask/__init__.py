"""Questions in plain words: a language model writes the query, the gateway judges and runs it.

Loaded by the gateway when the first question comes; see `dragoman.gateway.asking`.
"""
