"""A real model on the ready sets, where a key is at hand: `DRAGOMAN_TEST_MODEL` (`provider:model`) and its key.

With `DRAGOMAN_TEST_MODEL_RECORD` what it is told and replies is added to that file.
"""

import os
from pathlib import Path

import pytest
from dragoman import Gateway, Principal
from dragoman.config import Configuration, ModelSettings
from dragoman.model import Secret
from dragoman_ask.evaluation import Report, evaluate, load_cases
from dragoman_sqlite.demo import build

NAME, KEY = os.environ.get("DRAGOMAN_TEST_MODEL"), os.environ.get("DRAGOMAN_TEST_MODEL_KEY")
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (NAME and KEY), reason="not run: DRAGOMAN_TEST_MODEL and DRAGOMAN_TEST_MODEL_KEY are not set"
    ),
]


async def test_a_real_model_answers_most_of_the_demo_s_questions(tmp_path):
    databases = {database.name: database for database in build(tmp_path)}
    record = os.environ.get("DRAGOMAN_TEST_MODEL_RECORD")
    model = ModelSettings(
        name=str(NAME),
        api_key=Secret(str(KEY)),
        base_url=os.environ.get("DRAGOMAN_TEST_MODEL_URL", ""),
        send="values",
        record=Path(record) if record else None,
    )
    report = Report()
    async with Gateway.open(Configuration(databases=databases, model=model)) as gateway:
        for case in load_cases("demo"):
            report.outcomes.append(await evaluate(gateway, case, Principal()))
    wrong = [(outcome.case.question, outcome.why, outcome.sql) for outcome in report.outcomes if not outcome.right]
    assert report.accuracy >= 0.7, wrong
