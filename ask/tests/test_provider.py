"""Whatever the model's server does, a question ends in bounded time with an answer or an error that says so."""

import asyncio
import gzip
import json
import sqlite3
import time

import pytest
from dragoman import ModelError
from dragoman.gateway.asking import Question
from dragoman.tools import Toolbox
from dragoman_ask.bounded import MOST_BYTES
from scripted import KEY, Endless, Failure, Never, Text, query, scripted

COUNT = "SELECT count(*) AS orders FROM orders"
BUSY = Failure(429, {"retry-after-ms": "1"})


async def test_a_busy_server_is_asked_again_when_it_says(asking):
    async with asking([BUSY, BUSY, query(COUNT)]) as (gateway, model):
        answer = await gateway.ask("How many?")
    assert answer.result.rows == [[200]]
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure(401), "refused the key"),
        (Failure(404), "does not know the model"),
        (Failure(500, {"retry-after-ms": "1"}), "failed with status 500"),
        (BUSY, "no more requests"),
        (Failure(200, body=b'{"choices": [{"mess'), "not a completion"),
        (Failure(200, body=b'{"choices": []}'), "no reply"),
        (Failure(200, body=b'{"choices": 7}'), "not a completion"),
        (Failure(200, body=b'{"choices": {"0": 1}}'), "not a completion"),
        (Failure(200, body=b"[]"), "not a completion"),
        (Failure(200, body=b'{"choices": [{"message": {"content": [1]}}]}'), "no reply"),
        (Failure(200, body=b'{"choices": [{"message": {"content": "\\ud800"}}]}'), "not a completion"),
        (Failure(200, body=b"[" * 100_000), "not a completion"),
        (Text(""), "no reply"),
        (Text("I would rather not."), "not reply in the requested form"),
        (Text('{"sql": "SELECT 1"}'), "not reply in the requested form"),
        (Text(json.dumps({**query(COUNT), "tools": [{"name": "run"}]})), "not reply in the requested form"),
        (Text("[" * 100_000), "not reply in the requested form"),
    ],
)
async def test_a_failure_is_a_model_error_in_words(asking, failure, words):
    async with asking(lambda request: failure) as (gateway, model):
        with pytest.raises(ModelError, match=words) as caught:
            await gateway.ask("How many?")
        told = json.dumps(caught.value.as_dict())
        assert model.url not in told
        assert KEY not in told
        assert (await gateway.query("shop", COUNT)).rows == [[200]]


@pytest.mark.parametrize("kind", ["query", "clarify", "refuse"])
async def test_no_answer_has_a_key_that_the_server_repeats(asking, kind):
    echo = {**query(COUNT, text=f"Your key is {KEY}.", assumptions=[f"Bearer {KEY}"]), "kind": kind}
    async with asking([echo]) as (gateway, _):
        answer = await Toolbox(gateway, profile="full").call("ask", {"question": "How many?", "database": "shop"})
    assert KEY not in answer.text
    assert "Your key is ***." in answer.text


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_question_is_sent_to_no_other_host(asking, status):
    async with scripted([query(COUNT)]) as other:
        moved = Failure(status, {"location": f"{other.url}/chat/completions"})
        async with asking(lambda request: moved) as (gateway, _):
            with pytest.raises(ModelError, match="redirects"):
                await gateway.ask("How many?")
        assert not other.requests


async def test_a_response_without_an_end_is_not_kept(asking, monkeypatch):
    monkeypatch.setattr("dragoman_ask.openai_model.RETRIES", 1)
    endless = Endless(b" " * 100_000)
    async with asking(lambda request: endless, timeout=30) as (gateway, model):
        with pytest.raises(ModelError, match="cannot be reached, or its reply was cut off"):
            await gateway.ask("How many?")
        assert (await gateway.query("shop", COUNT)).rows == [[200]]
    assert len(model.requests) == 2
    assert endless.sent < 2 * (MOST_BYTES + 10_000_000)  # what is in the buffers of the sockets


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "x-unknown"])
async def test_a_compressed_response_is_not_unpacked(asking, monkeypatch, encoding):
    monkeypatch.setattr("dragoman_ask.openai_model.RETRIES", 0)
    bomb = Failure(200, {"content-encoding": encoding}, gzip.compress(b" " * 50_000_000))
    async with asking(lambda request: bomb) as (gateway, model):
        with pytest.raises(ModelError, match="cannot be reached, or its reply was cut off"):
            await gateway.ask("How many?")
    assert "accept-encoding: identity" in model.headers[0].lower()


async def test_a_response_of_many_choices_takes_no_time(asking):
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": json.dumps(query(COUNT))},
    }
    many = Failure(200, body=json.dumps({"choices": [choice] * 30_000, "usage": [1]}).encode())
    async with asking(lambda request: many if len(model.requests) > 1 else query(COUNT)) as (gateway, model):
        await gateway.ask("How many?")  # imports the library
        before = time.process_time()
        assert (await gateway.ask("How many?")).result.rows == [[200]]
    assert time.process_time() - before < 2


async def test_a_reply_that_breaks_off_is_asked_for_again(asking):
    cut = Failure(200, {}, b'{"choices": [{"message": ' + b" " * 1000, cut=True)
    async with asking([cut, query(COUNT)]) as (gateway, _):
        assert (await gateway.ask("How many?")).result.rows == [[200]]


async def test_one_reply_in_a_wrong_form_is_asked_for_again(asking):
    async with asking([Text("SELECT 1"), Text(f"```json\n{json.dumps(query(COUNT))}\n```")]) as (gateway, model):
        assert (await gateway.ask("How many?")).result.rows == [[200]]
    assert "not the JSON object" in model.last()


async def test_a_server_without_structured_replies_is_asked_plainly(asking):
    def script(request):
        if request.get("response_format", {}).get("type") in ("json_schema", "json_object"):
            return Failure(400, {}, b'{"error": {"message": "response_format is not supported"}}')
        return query(COUNT)

    async with asking(script) as (gateway, model):
        await gateway.ask("How many?")
        await gateway.ask("How many?")
    assert len(model.requests) == 4  # the second question knows


async def test_questions_at_once_agree_on_the_form_that_a_server_takes(asking):
    def script(request):
        if request["response_format"]["type"] == "json_schema":
            return Failure(400, {}, b'{"error": {"message": "response_format json_schema is not supported"}}')
        return query(COUNT)

    async with asking(script) as (gateway, model):
        answers = await asyncio.gather(*(gateway.ask("How many?") for _ in range(6)))
        before = len(model.requests)
        await gateway.ask("How many?")
    assert [answer.result.rows for answer in answers] == [[[200]]] * 6
    assert [request["response_format"]["type"] for request in model.requests[before:]] == ["json_object"]


async def test_a_silent_server_is_given_up_in_time(asking):
    async with asking([Never()], timeout=0.05) as (gateway, _):
        with pytest.raises(ModelError, match="did not reply within"):
            await gateway.ask("How many?")


async def test_cancelling_ends_the_request_to_the_model(asking):
    async with asking([Never()]) as (gateway, model):
        asked = asyncio.create_task(gateway.ask("How many?"))
        await model.waiting.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        async with asyncio.timeout(30):
            await model.left.wait()


def is_read_by_nobody(database):
    connection = sqlite3.connect(database.folder / database.database, timeout=0, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


async def test_cancelling_ends_the_query_in_the_database(asking, shop):
    endless = "SELECT count(*) AS n FROM orders a, orders b, orders c, orders d, orders e, orders f"
    runs = asyncio.Event()

    async def note(step, steps, message):
        if message == "running the query":
            runs.set()

    async with asking([query(endless)]) as (gateway, _), asyncio.timeout(60):
        asked = asyncio.create_task(gateway.ask(Question(text="How many?", report=note)))
        await runs.wait()
        while is_read_by_nobody(shop):
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        while not is_read_by_nobody(shop):
            await asyncio.sleep(0)


async def test_queries_go_on_while_questions_wait_for_the_model(asking):
    from dragoman.config import Server

    async with asking([Never()], server=Server(max_concurrent=1)) as (gateway, model):
        asked = asyncio.create_task(gateway.ask("How many?"))
        await model.waiting.wait()
        answer = await Toolbox(gateway).call("execute_query", {"sql": COUNT})
        assert not answer.is_error
        asked.cancel()
        await asyncio.wait([asked])


async def test_a_server_that_is_not_there_is_a_model_error(asking):
    async with asking([], base_url="http://127.0.0.1:9/v1", timeout=5.0) as (gateway, _):
        with pytest.raises(ModelError):
            await gateway.ask("How many?")


async def test_tokens_are_estimated_where_the_server_counts_none(asking):
    async with asking([Text(json.dumps(query(COUNT)), usage=None)]) as (gateway, _), gateway.call("ask") as record:
        await gateway.ask("How many?")
    assert record.model_use.input_tokens > 100
    assert record.model_use.output_tokens > 10


NO_NUMBERS = [-1, 0, 10**12, 1.5, True, "12", None, [3], {}]


@pytest.mark.parametrize(
    "usage",
    [
        "many",
        {},
        [],
        *({"prompt_tokens": number, "completion_tokens": 20} for number in NO_NUMBERS),
        *({"prompt_tokens": 100, "completion_tokens": number} for number in NO_NUMBERS),
    ],
    ids=repr,
)
async def test_a_count_that_cannot_be_is_not_believed(asking, usage):
    reply = Text(json.dumps(query(COUNT)), usage=usage)
    async with asking([reply], max_tokens_per_day=60_000) as (gateway, _), gateway.call("ask") as record:
        await gateway.ask("How many?")
    assert 99 < record.model_use.input_tokens < 5_000
    assert 9 < record.model_use.output_tokens < 200
