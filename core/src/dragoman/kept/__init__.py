"""Kept results: rows stored in files as they were encoded, and read again in pages."""

from dragoman.kept.files import OpenFile
from dragoman.kept.pages import Pages
from dragoman.kept.store import SOON, Bounds, HasRoom, Kept, Owner, Source, Store, size_of

__all__ = ["SOON", "Bounds", "HasRoom", "Kept", "OpenFile", "Owner", "Pages", "Source", "Store", "size_of"]
