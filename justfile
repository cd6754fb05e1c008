# The commands of a contributor. `just` lists them.

default:
    @just --list

# A demo: a real server, a real client, a short tour.
demo:
    uv run dragoman demo

# What needs no database server.
fast:
    uv run pytest -m fast

# The run of every day.
test *arguments:
    uv run pytest {{arguments}}

# What else CI runs.
full:
    uv run pytest -m full

# Long fuzzing and generated corpora.
nightly:
    uv run pytest -m nightly

# The share of lines that the tests run, those in processes of ours included.
coverage *arguments='-m "not nightly"':
    uv run coverage erase
    # Under it some deadlines strike early: the run itself tells whether tests pass.
    -uv run coverage run -m pytest {{arguments}}
    uv run coverage combine --quiet
    uv run coverage report

# Formatting, linting, types and layers.
lint:
    uv run ruff format --check
    uv run ruff check
    uv run mypy
    uv run pyright
    uv run lint-imports

# All that decides whether a change lands.
ci:
    .ci/run

# Ratios to a bare driver and to the SDK's own floor.
bench:
    uv run python tests/benchmarks/bench.py
