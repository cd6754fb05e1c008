"""Questions in plain words: a language model writes the query, the gateway judges and runs it.

The gateway loads it at the first question; see `dragoman.gateway.asking`.
"""
