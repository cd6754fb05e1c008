"""The model is configured like everything else, and nothing of it is there without."""

import subprocess
import sys

import pytest
from dragoman import ConfigurationError, Gateway
from dragoman.config import load, show
from dragoman.tools import Toolbox

MODEL = '[databases.shop]\nurl = "sqlite:///shop.db"\n[model]\n'


def read(tmp_path, text):
    file = tmp_path / "dragoman.toml"
    file.write_text(MODEL + text)
    file.chmod(0o600)
    return load(file, environ={}, folder=tmp_path)


def test_the_key_is_a_secret_and_never_shown(tmp_path):
    shown = show(read(tmp_path, 'name = "openai:m"\napi_key = "sk-secret"\nsend = "rows"'))["model"]
    assert (shown["api_key"], shown["name"], shown["send"]) == ("***", "openai:m", "rows")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "model.name: expected provider:model"),
        ('name = "gpt"', "model.name: expected provider:model"),
        ('name = "openai:m"\nsend = "all"', "model.send"),
        ('name = "openai:m"\nmax_attempts = 0', "model.max_attempts"),
        ('name = "openai:m"\nkey = "x"', "model.key: unknown key"),
    ],
)
def test_what_cannot_be_meant_is_told_by_its_key(tmp_path, text, words):
    with pytest.raises(ConfigurationError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "words"), [('name = "openai:m"', "api_key is missing"), ('name = "ollama:m"', "base_url is missing")]
)
async def test_a_provider_needs_what_it_needs(tmp_path, monkeypatch, text, words):
    monkeypatch.setattr("dragoman_ask.providers.find_spec", lambda name: None)  # pydantic-ai, which an extra brings
    async with Gateway.open(read(tmp_path, text)) as gateway:
        with pytest.raises(ConfigurationError, match=words):
            await gateway.ask("How many?")


async def test_without_a_model_there_is_no_tool_and_a_question_says_so(shop):
    async with Gateway.open([shop]) as gateway:
        assert "ask" not in {tool.name for tool in Toolbox(gateway, profile="full").tools}
        with pytest.raises(ConfigurationError, match="No model is configured"):
            await gateway.ask("How many?")


def test_nothing_of_it_is_imported_without_a_question():
    program = (
        "import sys, dragoman.mcp, dragoman.cli.serve, dragoman.tools.toolbox\n"
        "print([name for name in sys.modules if name.startswith(('openai', 'dragoman_ask'))])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[]"
