"""Tokens and money are counted for each question and each caller, and end where the configuration says."""

import asyncio
import json

import pytest
from dragoman import DragomanError, ModelError, Principal, QuotaExceeded
from dragoman.config import Audit, ModelSettings
from dragoman.gateway.asking import Question
from dragoman_ask.budgets import Budgets
from dragoman_ask.models import Usage
from scripted import Failure, Never, Text, query

COUNT = "SELECT count(*) AS orders FROM orders"
ADA, BEN = Principal("ada", subject="ada"), Principal("ben", subject="ben")


def budgets(**settings) -> Budgets:
    return Budgets(ModelSettings(name="openai:m", **settings), clock=lambda: 86_400.0 * 100 + 80_000)


async def test_a_question_that_needs_too_much_is_not_sent(asking):
    async with asking([], max_tokens_per_call=300) as (gateway, model):
        with pytest.raises(QuotaExceeded, match="one question"):
            await gateway.ask("How many?")
    assert model.requests == []


async def test_a_caller_whose_day_is_used_up_waits_and_others_do_not(asking):
    dear = Text(json.dumps(query(COUNT)), usage={"prompt_tokens": 9_000, "completion_tokens": 900})
    async with asking(lambda _: dear, max_tokens_per_day=10_000) as (gateway, _):
        await gateway.ask(Question(text="How many?", principal=ADA))
        with pytest.raises(QuotaExceeded) as caught:
            await gateway.ask(Question(text="How many?", principal=ADA))
        assert 0 < caught.value.context["retry_after"] <= 86_400
        await gateway.ask(Question(text="How many?", principal=BEN))


def test_the_wait_ends_with_the_day():
    spending = budgets(max_tokens_per_day=250).begin(ADA)
    with pytest.raises(QuotaExceeded) as caught:
        spending.reserve(100)
    assert caught.value.context == {"retry_after": 6_400}


def test_a_clock_that_is_set_back_over_midnight_gives_no_second_day():
    now = 86_400.0 * 100 + 10
    kept = Budgets(ModelSettings(name="openai:m", max_tokens_per_day=2_000), clock=lambda: now)

    def ask() -> None:
        spending = kept.begin(ADA)
        spending.settle(100, spending.reserve(100), Usage(1_000, 900))

    ask()
    for step in (-20, 20, -20, -80_000, 10, 70_000):
        now += step
        with pytest.raises(QuotaExceeded):
            ask()
    now += 86_400 * 2
    ask()
    now -= 86_400 * 30
    ask()


def test_questions_at_once_cannot_use_more_than_there_is():
    kept = budgets(max_tokens_per_day=2_000, max_tokens=800)
    first, second = kept.begin(ADA), kept.begin(ADA)
    assert first.reserve(100) == 800
    assert second.reserve(100) == 800
    with pytest.raises(QuotaExceeded, match="reserved") as caught:
        kept.begin(ADA).reserve(100)
    assert caught.value.context == {"retry_after": 60}, "by then the others are answered"
    first.settle(100, 800, Usage(100, 20))
    assert kept.begin(ADA).reserve(100) == 800


def test_a_reply_is_as_long_as_what_is_left():
    spending = budgets(max_tokens_per_call=1_000, max_tokens=4_000).begin(ADA)
    assert spending.reserve(400) == 600


def test_money_is_counted_at_the_configured_prices():
    kept = budgets(input_price=2.0, output_price=10.0, max_cost_per_day=0.05)
    spending = kept.begin(ADA)
    reply = spending.reserve(1_000)
    spending.settle(1_000, reply, Usage(1_000, 300))
    assert spending.use.cost == pytest.approx(0.005)
    with pytest.raises(QuotaExceeded):
        kept.begin(ADA).reserve(10_000)


def test_money_that_a_running_question_reserved_may_be_free_soon():
    kept = budgets(input_price=1_000.0, output_price=0.0, max_cost_per_day=1.5)
    first = kept.begin(ADA)
    reply = first.reserve(1_000)
    with pytest.raises(QuotaExceeded, match="reserved"):
        kept.begin(ADA).reserve(1_000)
    first.settle(1_000, reply, Usage(1_000, 1))
    with pytest.raises(QuotaExceeded, match="used up") as caught:
        kept.begin(ADA).reserve(1_000)
    assert caught.value.context == {"retry_after": 6_400}


USED = {"prompt_tokens": 4_000, "completion_tokens": 900}


def completion(message) -> Failure:
    """Return a completion without a usable text, as after a refusal or too much thinking."""
    choices = [] if message is None else [{"index": 0, "finish_reason": "stop", "message": message}]
    return Failure(200, body=json.dumps({"id": "x", "choices": choices, "usage": USED}).encode())


UNANSWERED = {
    "a refusal": completion({"role": "assistant", "content": None, "refusal": "I cannot help with that."}),
    "an empty text": completion({"role": "assistant", "content": ""}),
    "thinking that used all the tokens": completion({"role": "assistant", "content": None, "reasoning": "Hm."}),
    "a list in place of a text": completion({"role": "assistant", "content": [{"type": "text", "text": "x"}]}),
    "no choice": completion(None),
    "a text of another form": Text("I would rather not.", usage=USED),
    "no answer in time": Never(),
}


@pytest.mark.parametrize("kind", UNANSWERED)
async def test_what_the_provider_counts_counts_for_the_caller(asking, kind):
    async with asking(lambda _: UNANSWERED[kind], max_tokens_per_day=10_000, max_tokens=2_000, timeout=0.5) as made:
        gateway, model = made
        for _ in range(40):
            with pytest.raises(DragomanError) as caught:
                await gateway.ask(Question(text="How many? " * 300, principal=ADA))
            if isinstance(caught.value, QuotaExceeded):
                break
        else:
            pytest.fail(f"{len(model.requests)} requests of a caller with 10,000 tokens reached the model")


async def test_the_audit_tells_what_a_refused_question_used(asking, tmp_path):
    audit = Audit(path=tmp_path / "audit.jsonl")
    async with asking([UNANSWERED["a refusal"]], audit=audit) as (gateway, _):
        with pytest.raises(ModelError, match="no reply"):
            await gateway.ask("How many?")
    (file,) = tmp_path.glob("audit-*.jsonl")
    (record,) = [each for each in map(json.loads, file.read_text().splitlines()) if each.get("tool") == "ask"]
    assert (record["model"]["input_tokens"], record["model"]["output_tokens"]) == (4_000, 900)


def test_a_call_that_failed_costs_nothing():
    spending = budgets(max_tokens_per_day=1_000).begin(ADA)
    spending.settle(100, spending.reserve(100), None)
    assert spending.day.tokens == 0
    assert spending.use.calls == 1


async def test_who_cancels_has_used_what_was_sent(asking):
    async with asking([Never()]) as (gateway, model):
        async with gateway.call("ask") as record:
            asked = asyncio.create_task(gateway.ask("How many?"))
            await model.waiting.wait()
            asked.cancel()
            await asyncio.wait([asked])
    assert record.model_use.input_tokens > 100


async def test_one_record_of_the_audit_tells_the_whole(asking, tmp_path):
    bad = "SELECT totl FROM orders"
    async with asking([query(bad), query(COUNT)], audit=Audit(path=tmp_path / "audit.jsonl")) as (gateway, _):
        await gateway.ask("How many?")
    records = [json.loads(line) for file in tmp_path.glob("audit-*.jsonl") for line in file.read_text().splitlines()]
    (record,) = [each for each in records if each.get("tool") == "ask"]
    assert record["sql"] == COUNT
    assert record["rows"] == 1
    assert record["model"]["calls"] == 2
    assert [(each["sql"], each["outcome"]) for each in record["model"]["attempts"]] == [
        (bad, "COLUMN_NOT_FOUND"),
        (COUNT, "ok"),
    ]


@pytest.mark.parametrize("end", [Failure(401), Never()], ids=["failed", "cancelled"])
async def test_rows_of_tries_without_an_answer_do_not_count(asking, end):
    """The rows of the tried query went to the gateway only."""
    async with asking([query("SELECT * FROM orders"), end], check="always") as (gateway, model):
        async with gateway.call("ask") as record:
            asked = asyncio.create_task(gateway.ask("Which orders?"))
            if isinstance(end, Never):
                await model.waiting.wait()
                asked.cancel()
            await asyncio.wait([asked])
    assert asked.cancelled() or isinstance(asked.exception(), DragomanError)
    assert len(model.requests) == 2
    assert (record.rows, record.bytes) == (0, 0)


async def test_the_audit_keeps_no_text_where_it_must_not(asking, tmp_path):
    async with asking([query(COUNT)], audit=Audit(path=tmp_path / "audit.jsonl", text="hash")) as (gateway, _):
        await gateway.ask("How many?")
    text = "".join(file.read_text() for file in tmp_path.glob("audit-*.jsonl"))
    assert COUNT not in text
    assert '"attempts":[{"hash":' in text


async def test_the_metrics_count_what_models_used(asking):
    async with asking([query(COUNT), Failure(401)]) as (gateway, _):
        await gateway.ask("How many?")
        text = gateway.metrics()
    assert 'dragoman_model_calls_total{model="openai:scripted"} 1' in text
    assert 'dragoman_model_tokens_total{model="openai:scripted",kind="input"} 100' in text
    assert 'dragoman_calls_total{database="shop",tool="ask",outcome="ok"} 1' in text
