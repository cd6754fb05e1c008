"""What a model was told and replied is kept without keys, and gives the same answers again without a model."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from dragoman import ConfigurationError, Gateway, ModelError, Principal
from dragoman.config import Configuration, ModelSettings
from dragoman_ask.evaluation import Report, evaluate, load_cases
from dragoman_ask.models import Completion, Message, Shape, Usage
from dragoman_ask.recording import RecordingModel, ReplayedModel
from dragoman_sqlite.demo import build
from scripted import KEY, VALID, Failure, query, scripted
from test_commands import run
from test_evaluating import knowing

COUNT = "SELECT count(*) AS orders FROM orders"
PAID = query("SELECT * FROM orders WHERE status = 'PAID'")
COOKIE = "session-0123456789"
SHAPE = Shape("written", {})


@asynccontextmanager
async def replaying(path, *databases, **settings):
    """A gateway whose model is a file: it has no address and no key."""
    model = ModelSettings(name="openai:scripted", replay=path, **settings)
    named = {database.name: database for database in databases}
    async with Gateway.open(Configuration(databases=named, model=model)) as gateway:
        yield gateway


async def assess(gateway, cases):
    report = Report()
    for case in cases:
        report.outcomes.append(await evaluate(gateway, case, Principal()))
    return report


def plain(report):
    return [(each.case.question, each.why, each.sql, each.use.tokens) for each in report.outcomes]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "exchanges.jsonl"


async def test_a_ready_set_that_was_recorded_comes_out_the_same_without_a_model(asking, tmp_path, file):
    cases, databases = load_cases("demo"), build(tmp_path)
    async with asking(knowing(cases), *databases, record=file, check="always") as (gateway, model):
        live = await assess(gateway, cases)
    async with replaying(file, *databases, check="always") as gateway:
        again = await assess(gateway, cases)
    assert plain(again) == plain(live)
    assert live.accuracy == 1.0
    assert len(file.read_text().splitlines()) == len(model.requests)


async def test_no_key_header_or_cookie_reaches_the_file(asking, shop, file):
    """The server sends cookies, is refused at first, and repeats the key and the cookie in its reply."""
    busy = Failure(429, {"retry-after-ms": "1", "set-cookie": f"sid={COOKIE}", "x-request-id": "header-0123456789"})
    echo = query(COUNT, text=f"Your key is {KEY}.", assumptions=[f"Authorization: Bearer {KEY}"])
    async with asking([busy, echo], record=file) as (gateway, model):
        answer = await gateway.ask(f"How many? {KEY}")
    assert any(f"Bearer {KEY}" in head for head in model.headers)  # it did reach the server
    assert answer.result.rows == [[200]]
    kept = file.read_text().lower()
    for stripped in (KEY, COOKIE, "header-0123456789", "x-request-id", "cookie", "user-agent", model.url, "127.0.0.1"):
        assert stripped.lower() not in kept, stripped
    assert "your key is ***." in kept
    assert file.stat().st_mode & 0o077 == 0


async def test_another_request_is_an_error_that_says_where_it_differs(asking, shop, file):
    async with asking([query(COUNT)], record=file) as (gateway, _):
        await gateway.ask("How many orders?")
    async with replaying(file, shop) as gateway:
        with pytest.raises(ModelError, match=r"not recorded.*How many customers\?") as caught:
            await gateway.ask("How many customers?")
        assert "Record it again" in caught.value.suggestion
        answered = (await gateway.ask("How many orders?")).result
        assert answered is not None
        assert answered.rows == [[200]]
    async with replaying(file, replace(shop, description="All of it")) as gateway:
        with pytest.raises(ModelError, match="differs from the recorded ones at: -- All of it"):
            await gateway.ask("How many orders?")


async def test_another_model_is_another_request(asking, shop, file):
    async with asking([query(COUNT)], record=file) as (gateway, _):
        await gateway.ask("How many orders?")
    model = ReplayedModel("openai:other", file)
    with pytest.raises(ModelError, match="openai:other replies with a written"):
        await model.complete([Message("user", "x")], SHAPE, 1)


async def test_what_was_recorded_several_times_is_given_in_turn(asking, shop, file):
    replies = [query(COUNT), query("SELECT count(*) FROM customers")]
    async with asking(replies, record=file) as (gateway, _):
        live = [(await gateway.ask("How many?")).sql for _ in replies]
    async with replaying(file, shop) as gateway:
        again = [(await gateway.ask("How many?")).sql for _ in range(4)]
    assert again == live * 2


async def test_a_repair_and_a_check_are_replayed_as_they_went(asking, shop, file):
    script = [PAID, {"valid": False, "reason": "Lower case."}, query("SELECT totl FROM orders"), query(COUNT)]
    async with asking(script, record=file, send="rows") as (gateway, _):
        live = await gateway.ask("How many are paid?")
    async with replaying(file, shop, send="rows") as gateway:
        again = await gateway.ask("How many are paid?")
    assert (
        (again.sql, again.attempts, again.confidence)
        == (live.sql, live.attempts, live.confidence)
        == (COUNT, 3, "medium")
    )


async def test_a_failure_of_the_model_is_not_recorded(asking, file):
    async with asking([Failure(401)], record=file) as (gateway, _):
        with pytest.raises(ModelError):
            await gateway.ask("How many?")
    assert not file.exists()


class Slow:
    """A model whose replies come in any order."""

    async def complete(self, messages, shape, max_tokens):
        await asyncio.sleep(0)
        return Completion(f"re: {messages[0].text}", Usage(1, 1))

    async def aclose(self):
        pass


async def test_exchanges_at_once_are_whole_lines(file):
    model = RecordingModel(Slow(), "a:b", file)
    texts = [f"{number} " + "ü" * 5_000 for number in range(50)]
    await asyncio.gather(*(model.complete([Message("user", text)], SHAPE, 1) for text in texts))
    replayed = ReplayedModel("a:b", file)
    for text in texts:
        assert (await replayed.complete([Message("user", text)], SHAPE, 1)).text == f"re: {text}"


@pytest.mark.parametrize("text", ["{", '{"model": 7}', "[]\n"])
async def test_a_file_that_holds_something_else_is_named_with_its_line(file, text):
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"exchanges\.jsonl:1 is not a recorded exchange"):
        await ReplayedModel("a:b", file).complete([Message("user", "x")], SHAPE, 1)


async def test_a_file_that_is_not_there_is_named(file, tmp_path):
    with pytest.raises(ConfigurationError, match=r"exchanges\.jsonl, model\.replay, cannot be read"):
        await ReplayedModel("a:b", file).complete([Message("user", "x")], SHAPE, 1)
    with pytest.raises(ConfigurationError, match=r"model\.record, cannot be written"):
        await RecordingModel(Slow(), "a:b", tmp_path).complete([Message("user", "x")], SHAPE, 1)


async def test_the_command_of_evaluation_records_and_replays(shop):
    (shop.folder / "own.yaml").write_text(
        f"- question: How many?\n  database: shop\n  sql: {COUNT}\n"
        "- question: None?\n  database: shop\n  expect: empty\n"
    )
    script = [query(COUNT), PAID, VALID]
    async with scripted(script) as model:
        first = await run(shop.folder, model.url, "eval", "own.yaml", "--json", "--record", "kept.jsonl")
    nowhere = "http://127.0.0.1:9/v1"
    second = await run(shop.folder, nowhere, "eval", "own.yaml", "--json", "--replay", "kept.jsonl")
    assert (second[0], json.loads(second[1])) == (first[0], json.loads(first[1]))
    assert json.loads(first[1])["accuracy"] == 1.0
    assert KEY not in (shop.folder / "kept.jsonl").read_text()
    (shop.folder / "own.yaml").write_text("- question: Which?\n  database: shop\n  expect: clarify\n")
    code, out, _ = await run(shop.folder, nowhere, "eval", "own.yaml", "--replay", "kept.jsonl")
    assert code == 1
    assert "MODEL_ERROR: This request to the model was not recorded." in out


async def test_recording_and_replaying_at_once_is_told_at_the_start(tmp_path):
    from test_configuring import read

    with pytest.raises(ConfigurationError, match=r"model\.record: nothing is recorded where replies are replayed"):
        read(tmp_path, 'name = "openai:m"\nrecord = "a"\nreplay = "b"')
    model = read(tmp_path, 'name = "openai:m"\nreplay = "b"').model
    assert model is not None
    assert model.replay == tmp_path / "b"


async def test_evaluation_without_a_model_says_so(shop):
    (shop.folder / "own.yaml").write_text("- question: Which?\n  expect: refuse\n")
    code, _, err = await run(shop.folder, "", "eval", "own.yaml")
    assert code != 0
    assert "No model is configured." in err
