"""Frameworks for agents, each in an environment of its own, against the real server."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.clients.test_clients import STANDARD

PROGRAM = Path(__file__).with_name("frameworks.py")
PROJECT = tomllib.loads((PROGRAM.parents[2] / "pyproject.toml").read_text())
PACKAGES = {
    "gemini": ["google-genai", "mcp<2"],
    "langchain": ["langchain-mcp-adapters"],
    "openai_agents": ["openai-agents"],
    "llama_index": ["llama-index-tools-mcp"],
    "mcp_use": ["mcp-use"],
}

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture(scope="session", params=PACKAGES)
def framework(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs the program in the framework's environment; the packages are those of the project's day."""
    uv = shutil.which("uv")
    assert uv is not None, "uv installs the frameworks"
    options = ["--no-project", "--isolated", "--python", sys.executable]
    options += [f"--with={package}" for package in PACKAGES[request.param]]
    until = PROJECT["tool"]["uv"]["exclude-newer"]
    return [uv, "run", "--quiet", "--exclude-newer", until, *options, "python", str(PROGRAM), request.param]


@pytest.mark.parametrize("way", ["hot"], scope="session")
@pytest.mark.parametrize("transport", ["serve", "url"])
def test_a_framework_finds_the_tools_and_gets_answers(
    framework: list[str], transport: str, way: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    target: Any = request.getfixturevalue(transport)
    environment = os.environ | {"MCP_USE_ANONYMIZED_TELEMETRY": "false"}
    command = [*framework, json.dumps(target)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    found, refused = answer["told"]
    assert set(answer["tools"]) == STANDARD - _not_strict(framework)
    assert json.loads(found)["rows"] == [[3]]
    assert json.loads(refused)["error"]["code"] == "WRITE_OPERATION_DENIED"


def _not_strict(framework: list[str]) -> set[str]:
    """A tool without arguments has no schema that the OpenAI SDK could make strict."""
    return {"list_databases"} if framework[-1] == "openai_agents" else set()
