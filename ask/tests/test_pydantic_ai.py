"""Models through pydantic-ai answer behind the same interface, with its own model that a function stands in for."""

import json

import pytest
from dragoman import ConfigurationError, ModelError
from dragoman.config import ModelSettings
from dragoman_ask.models import Message, Shape
from dragoman_ask.providers import make_model
from dragoman_ask.pydantic_ai_model import PydanticAIModel
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

SETTINGS = ModelSettings(name="anthropic:claude-x")
SHAPE = Shape("verdict", {"type": "object", "properties": {"valid": {"type": "boolean"}}})
ASKED = [Message("system", "Be short."), Message("user", "Is it?"), Message("assistant", "?"), Message("user", "So?")]


async def complete(function):
    return await PydanticAIModel(SETTINGS, FunctionModel(function)).complete(ASKED, SHAPE, 500)


async def test_messages_and_the_shape_reach_the_model_and_its_reply_and_usage_come_back():
    seen = []

    def reply(messages, info):
        seen.append(([part.content for each in messages for part in each.parts], info))
        return ModelResponse(parts=[TextPart('{"valid": true}')])

    completion = await complete(reply)
    assert json.loads(completion.text) == {"valid": True}
    assert completion.usage.input_tokens > 0
    assert completion.usage.output_tokens > 0
    ((texts, info),) = seen
    assert texts == ["Be short.", "Is it?", "?", "So?"]
    assert info.model_settings["max_tokens"] == 500
    assert info.model_request_parameters.output_object.json_schema["properties"] == {"valid": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("status", "words"), [(401, "refused the key"), (429, "no more requests"), (500, "status 500")]
)
async def test_what_a_provider_refuses_is_told_without_its_words(status, words):
    def fail(messages, info):
        raise ModelHTTPError(status, "claude-x", body={"key": "sk-secret"})

    with pytest.raises(ModelError, match=words) as caught:
        await complete(fail)
    assert "sk-secret" not in str(caught.value)


async def test_no_reply_is_told():
    with pytest.raises(ModelError, match="no reply"):
        await complete(lambda messages, info: ModelResponse(parts=[TextPart("")]))


async def test_a_provider_that_is_not_installed_is_told():
    with pytest.raises(ModelError, match="cannot be used"):
        await make_model(ModelSettings(name="nobody:model")).complete(ASKED, SHAPE, 500)


def test_a_provider_of_its_own_is_reached_through_pydantic_ai(monkeypatch):
    assert isinstance(make_model(SETTINGS), PydanticAIModel)
    monkeypatch.setattr("dragoman_ask.providers.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="base_url") as caught:
        make_model(SETTINGS)
    assert "dragoman-ask[pydantic-ai]" in caught.value.suggestion
