"""The judgement of the soak (soak_kit.py) on made-up samples, and on a process that leaks."""

import os
import random

import pytest
import soak_kit
from soak_kit import Sample


def series(count: int = 50, **leak: float) -> list[Sample]:
    """Return samples with the noise of an allocator, which grow by `leak` over the run."""
    noise = random.Random(3)
    made = []
    for i in range(count):
        part = i / (count - 1)
        grown = {name: value * part for name, value in leak.items()}
        memory = 9000 + noise.randint(-200, 200) + grown.get("memory_kib", 0)
        made.append(Sample(memory, int(12 + grown.get("descriptors", 0)), int(4 + grown.get("threads", 0))))
    return made


def test_noise_is_no_leak():
    assert soak_kit.leaks(series()) == []


def test_what_grows_in_the_warm_up_is_no_leak():
    samples = series()
    for i in range(10):
        samples[i] = Sample(100 * i, i, i)
    assert soak_kit.leaks(samples) == []


@pytest.mark.parametrize(("name", "grown"), [("memory_kib", 3000), ("descriptors", 2), ("threads", 2)])
def test_a_slow_leak_is_found(name: str, grown: float):
    (leak,) = soak_kit.leaks(series(**{name: grown}))
    assert leak.startswith(name)


def test_one_descriptor_that_stays_is_found():
    samples = series()
    for later in samples[30:]:
        later.descriptors += 1
    assert len(soak_kit.leaks(samples)) == 1


def test_growth_is_that_of_the_whole_run():
    assert soak_kit.growth([10.0 * i for i in range(101)]) == pytest.approx(1000)


def test_a_watch_finds_the_descriptors_of_a_process():
    watch = soak_kit.Watch({"self": os.getpid()}, 1000)
    kept = []
    try:
        for i in range(1001):
            watch.after(i)
            if i % 100 == 0:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        assert len(watch.taken["self"]) == 51
        with pytest.raises(AssertionError, match="self: descriptors"):
            watch.judge()
    finally:
        for descriptor in kept:
            os.close(descriptor)
