"""Near words: the same ones, in the same order, in every process."""

from dragoman.words import nearest


def test_of_a_set_s_equally_near_words_the_first_in_order_are_told():
    known = {f"abc{letter}" for letter in "defghijklmnopq"}
    assert nearest("abcz", known, 3) == ["abcd", "abce", "abcf"]


def test_the_nearest_word_comes_first_whatever_the_order():
    assert nearest("customer", {"customers", "costumer", "zebra"}, 2) == ["customers", "costumer"]
