"""Counters of calls for Prometheus, in text format 0.0.4. They name databases and tools, never callers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dragoman.telemetry.observed import ModelUse, Observed

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of durations, in seconds."""
_MOST = 1000
"""The most series of one kind; others are counted as `other`. Programs may call tools by any name."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gauge:
    """The current value of something. `name` without the prefix."""

    name: str
    help: str
    values: tuple[tuple[Labels, float], ...]


@dataclass(slots=True)
class _Series:
    """The counters of one tool on one database."""

    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0
    rows: int = 0
    bytes: int = 0


class Metrics:
    """Counts calls from the start of the process."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _Series] = {}
        self._refused: dict[str, int] = {}
        self._models: dict[str, ModelUse] = {}

    def observe(self, call: Observed) -> None:
        """Count a call that has ended."""
        key = (call.database or "", call.tool)
        series = self._series.get(key) or self._new(key)
        series.outcomes[call.outcome] = series.outcomes.get(call.outcome, 0) + 1
        seconds = call.ms / 1000
        series.buckets[bisect_left(BUCKETS, seconds)] += 1
        series.seconds += seconds
        series.rows += call.rows
        series.bytes += call.bytes
        if call.model_use is not None:
            self._models.setdefault(call.model_use.name, ModelUse(call.model_use.name)).add(call.model_use)
        if call.refused:
            self.refuse(call.outcome)

    def refuse(self, reason: str) -> None:
        """Count something that was refused: a call, or a request that never became one."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def _new(self, key: tuple[str, str]) -> _Series:
        if len(self._series) >= _MOST:
            key = (key[0], "other") if len(self._series) < 2 * _MOST else ("other", "other")
        return self._series.setdefault(key, _Series())

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Return all counters in Prometheus's text format."""
        return "\n".join([*self._lines(), *_gauges(gauges), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("calls_total", "counter", "Calls of tools.")
        for (database, tool), series in self._series.items():
            for outcome, number in series.outcomes.items():
                yield _line("calls_total", {"database": database, "tool": tool, "outcome": outcome}, number)
        yield from _head("call_duration_seconds", "histogram", "Duration of calls in seconds.")
        for (database, tool), series in self._series.items():
            yield from _histogram({"database": database, "tool": tool}, series)
        yield from _head("result_rows_total", "counter", "Rows returned.")
        for (database, tool), series in self._series.items():
            yield _line("result_rows_total", {"database": database, "tool": tool}, series.rows)
        yield from _head("result_bytes_total", "counter", "Bytes of JSON returned.")
        for (database, tool), series in self._series.items():
            yield _line("result_bytes_total", {"database": database, "tool": tool}, series.bytes)
        yield from _head("refused_total", "counter", "Calls and requests refused before anything ran.")
        for reason, number in self._refused.items():
            yield _line("refused_total", {"reason": reason}, number)
        yield from self._model_lines()

    def _model_lines(self) -> Iterator[str]:
        if not self._models:
            return
        yield from _head("model_calls_total", "counter", "Calls of a language model.")
        for name, use in self._models.items():
            yield _line("model_calls_total", {"model": name}, use.calls)
        yield from _head("model_tokens_total", "counter", "Tokens sent to and received from a language model.")
        for name, use in self._models.items():
            yield _line("model_tokens_total", {"model": name, "kind": "input"}, use.input_tokens)
            yield _line("model_tokens_total", {"model": name, "kind": "output"}, use.output_tokens)
        yield from _head("model_cost_total", "counter", "Cost of these tokens at the configured prices.")
        for name, use in self._models.items():
            yield _line("model_cost_total", {"model": name}, use.cost)


def by_worker(texts: Mapping[str, str], *gauges: Gauge) -> str:
    """Return the metrics of several processes as one text: each sample has its process as the label `worker`."""
    families: dict[str, list[str]] = {}
    for worker, text in texts.items():
        samples: list[str] = []
        for line in text.splitlines():
            if line.startswith("# HELP"):
                samples = families.setdefault(line, [])
            elif line.startswith("#"):
                samples[:] = samples or [line]
            else:
                samples.append(_add_label(line, worker))
    lines = [line for head, samples in families.items() for line in (head, *samples)]
    return "\n".join([*lines, *_gauges(gauges), ""])


def _add_label(line: str, worker: str) -> str:
    """Return a sample with one more label. A name has no brace, and a value no blank."""
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{worker="{worker}",{rest}'
    name, _, value = line.rpartition(" ")
    return f'{name}{{worker="{worker}"}} {value}'


def _histogram(labels: Labels, series: _Series) -> Iterator[str]:
    total = 0
    for bound, number in zip((*BUCKETS, float("inf")), series.buckets, strict=True):
        total += number
        le = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield _line("call_duration_seconds_bucket", {**labels, "le": le}, total)
    yield _line("call_duration_seconds_sum", labels, series.seconds)
    yield _line("call_duration_seconds_count", labels, total)


def _gauges(gauges: Iterable[Gauge]) -> Iterator[str]:
    for gauge in gauges:
        yield from _head(gauge.name, "gauge", gauge.help)
        for labels, value in gauge.values:
            yield _line(gauge.name, labels, value)


def _head(name: str, kind: str, words: str) -> Iterator[str]:
    yield f"# HELP dragoman_{name} {words}"
    yield f"# TYPE dragoman_{name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    told = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    return f"dragoman_{name}{{{told}}} {value!r}" if told else f"dragoman_{name} {value!r}"
