"""The page about the tools says what the code says."""

from pathlib import Path

import pytest
from dragoman.tools.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "tools.md"


@pytest.mark.skipif(not PAGE.parent.is_dir(), reason="the distribution stands alone, without the docs")
def test_the_page_is_made_from_the_code():
    assert PAGE.read_text(encoding="utf-8") == page()
