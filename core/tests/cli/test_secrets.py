"""`dragoman secrets`: what it prints goes into the configuration file and opens there."""

from .conftest import Dragoman


def test_a_secret_is_encrypted_for_a_setting_and_the_configuration_opens_it(dragoman: Dragoman, folder):
    made = dragoman("secrets", "init")
    assert (made.code, made.err) == (0, "")
    assert made.out.strip() == str(folder / "home" / ".config" / "dragoman" / "key")
    sealed = dragoman("secrets", "encrypt", "server.token", stdin=b"hunter2\n")
    assert sealed.code == 0
    assert "hunter2" not in sealed.out + sealed.err
    (folder / "dragoman.toml").write_text(
        f'[server]\ntoken = "{sealed.out.strip()}"\n[databases.shop]\nurl = "sqlite:///shop.db"\n'
    )
    shown = dragoman("config", "show")
    assert (shown.code, 'token = "***"' in shown.out, "hunter2" in shown.out) == (0, True, False)


def test_a_second_key_is_refused_and_without_one_nothing_is_encrypted(dragoman: Dragoman):
    assert dragoman("secrets", "encrypt", "server.token", stdin=b"x").code == 2
    assert dragoman("secrets", "init").code == 0
    again = dragoman("secrets", "init")
    assert again.code == 2
    assert "There is a key" in again.err


def test_a_setting_has_a_path(dragoman: Dragoman):
    assert dragoman("secrets", "encrypt", "token", stdin=b"x").code == 2
