"""Trino for dragoman. Start reading in `plugin.py`."""
