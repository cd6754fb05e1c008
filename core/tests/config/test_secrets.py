"""Secrets in a configuration: from files, from stores, encrypted; and that none of them is ever shown."""

import base64
import json
import os
from pathlib import Path

import pytest
from dragoman.config import Configuration, load, show
from dragoman.config.secrets import SecretError, decrypt, encrypt, make_key, read_key
from dragoman.errors import ConfigurationError

KEY = os.urandom(32)
STORES = "[dragoman.secrets]\nvault = dragoman_vault:read\nbroken = dragoman_gone:x\n"
ENVIRON = {"DRAGOMAN_KEY": base64.b64encode(KEY).decode()}
SECRET = "hunter2-ü ${x}"


def configured(folder: Path, text: str, environ: dict[str, str] | None = None) -> Configuration:
    (folder / "dragoman.toml").write_text(text)
    (folder / "dragoman.toml").chmod(0o600)
    return load(folder=folder, environ={"HOME": str(folder), **(environ or {})})


def shop(password: str) -> str:
    return f"[databases.shop]\ndialect = 'postgres'\nhost = 'db'\npassword = '{password}'\n"


def password_of(configuration: Configuration) -> str:
    password = configuration.databases["shop"].password
    assert password is not None
    return password.reveal()


def hidden(configuration: Configuration) -> bool:
    return SECRET not in f"{configuration!r}{json.dumps(show(configuration), ensure_ascii=False)}"


# Files


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_file_s_text_is_the_value_without_the_line_s_end(tmp_path: Path, ending: str) -> None:
    (tmp_path / "secret").write_bytes(SECRET.encode() + ending.encode())
    for path in ("secret", tmp_path / "secret"):
        configuration = configured(tmp_path, shop(f"${{file:{path}}}"))
        assert password_of(configuration) == SECRET
        assert hidden(configuration)
        assert configuration.warnings == ()


@pytest.mark.parametrize("content", [None, b"\xff", b"x" * 70_000])
def test_a_file_that_cannot_be_read_is_told_with_the_key(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"dragoman.toml:4: databases.shop.password: the file secret"):
        configured(tmp_path, shop("${file:secret}"))


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    """A reload would wait for its writer, and with several processes nothing would end the server."""
    os.mkfifo(tmp_path / "secret")
    with pytest.raises(ConfigurationError, match=r"databases.shop.password: secret is a pipe"):
        configured(tmp_path, shop("${file:secret}"))


def test_a_default_is_still_a_default(tmp_path: Path) -> None:
    assert password_of(configured(tmp_path, shop("${file:-x}"))) == "x"
    assert password_of(configured(tmp_path, shop("${file:-x}"), {"file": "y"})) == "y"


# Encrypted


def test_an_encrypted_secret_opens_for_its_setting_alone(tmp_path: Path) -> None:
    sealed = encrypt(SECRET, "databases.shop.password", KEY)
    configuration = configured(tmp_path, shop(sealed), ENVIRON)
    assert password_of(configuration) == SECRET
    assert hidden(configuration)
    assert configuration.warnings == ()
    with pytest.raises(ConfigurationError, match="for another setting") as error:
        configured(tmp_path, shop(sealed).replace("shop", "other"), ENVIRON)
    assert "dragoman secrets encrypt databases.other.password" in str(error.value.suggestion)


def test_what_is_encrypted_differs_each_time_and_every_change_is_noticed() -> None:
    one, other = (encrypt(SECRET, "a.b", KEY) for _ in range(2))
    assert one != other
    assert decrypt(one, "a.b", KEY) == decrypt(other, "a.b", KEY) == SECRET
    data = base64.urlsafe_b64decode(one[7:])
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(SecretError):
            decrypt("ENC:v1:" + base64.urlsafe_b64encode(changed).decode(), "a.b", KEY)
    for broken in ("ENC:v1:", "ENC:v1:AAAA", one[:-4], one + "AAAA", one.replace("ENC:v1:", "ENC:v1: ")):
        with pytest.raises(SecretError):
            decrypt(broken, "a.b", KEY)
    with pytest.raises(SecretError):
        decrypt(one, "a.b", os.urandom(32))


@pytest.mark.parametrize("prefix", ["ENC:v2:", "ENC:v10:", "enc:v1:"])
def test_what_another_version_encrypted_is_no_password(tmp_path: Path, prefix: str) -> None:
    sealed = encrypt(SECRET, "databases.shop.password", KEY).replace("ENC:v1:", prefix)
    with pytest.raises(ConfigurationError, match=r"databases\.shop\.password.*encrypted") as error:
        configured(tmp_path, shop(sealed), ENVIRON)
    assert "dragoman secrets encrypt databases.shop.password" in str(error.value.suggestion)


@pytest.mark.parametrize("key", ["", "x", "AAAA", base64.b64encode(b"x" * 16).decode()])
def test_without_a_key_it_is_told_how_to_get_one(tmp_path: Path, key: str) -> None:
    sealed = encrypt(SECRET, "databases.shop.password", KEY)
    with pytest.raises(ConfigurationError, match=r"databases\.shop\.password") as error:
        configured(tmp_path, shop(sealed), {"DRAGOMAN_KEY": key})
    assert "dragoman secrets init" in str(error.value.suggestion)


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "dragoman" / "key"
    make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    key = read_key({}, path)
    assert len(key) == 32
    with pytest.raises(SecretError, match="there is a key"):
        make_key(path)
    assert read_key({}, path) == key
    path.chmod(0o640)
    with pytest.raises(SecretError, match="read by others"):
        read_key({}, path)


# Stores


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "dragoman_vault-1.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "site" / "dragoman_vault.py").write_text(
        f"def read(reference):\n    return {{'db/pass': {SECRET!r}, 'number': 1}}[reference]\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-vault\nVersion: 1\n")
    (info / "entry_points.txt").write_text(STORES)
    monkeypatch.syspath_prepend(tmp_path / "site")


@pytest.mark.usefixtures("vault")
def test_a_store_of_a_plugin_is_asked_by_its_scheme(tmp_path: Path) -> None:
    configuration = configured(tmp_path, shop("${vault:db/pass}") + "description = '${vault:db/pass}'\n")
    assert password_of(configuration) == SECRET
    assert hidden_in_show(configuration)


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("${vault:gone}", r"the secret store vault failed \(KeyError\)"),
        ("${vault:number}", "the secret store vault did not return text"),
        ("${broken:x}", r"the secret store broken cannot be loaded \(ModuleNotFoundError\)"),
        ("${valut:x}", "no installed distribution has the secret store valut"),
    ],
)
def test_a_store_that_fails_is_told_with_the_key(tmp_path: Path, reference: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=f"databases.shop.password: {told}"):
        configured(tmp_path, shop(reference))


def test_defaults_and_lists_are_masked_too(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    text = "[defaults]\ndescription = '${file:secret}'\n[server]\nallowed_hosts = ['a', '${file:secret}']\n"
    assert hidden_in_show(configured(tmp_path, text + shop("x")))


def hidden_in_show(configuration: Configuration) -> bool:
    return SECRET not in json.dumps(show(configuration), ensure_ascii=False)


def test_an_audit_in_a_database_is_shown_without_its_password(tmp_path: Path):
    text = '[audit]\nurl = "postgresql://writer:sesame@db.example/audit"\n'
    shown = show(configured(tmp_path, text + shop("x")))
    assert shown["audit"]["url"] == "postgresql://writer:***@db.example/audit"
    assert "sesame" not in json.dumps(shown)
