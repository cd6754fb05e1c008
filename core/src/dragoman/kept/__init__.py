"""Results that live on: rows kept in files as they were encoded, read again in pages."""

from dragoman.kept.pages import Pages
from dragoman.kept.store import SOON, Bounds, Kept, Owner, Source, Store

__all__ = ["SOON", "Bounds", "Kept", "Owner", "Pages", "Source", "Store"]
