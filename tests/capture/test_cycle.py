"""The search for a program's iterations, beside sequences that are made of known ones."""

import numpy as np
import pytest
from hocket.capture.cycle import find_cycle


def tokens(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_iterations_are_found_between_a_beginning_and_an_end() -> None:
    found = find_cycle(tokens(9, 8, *([1, 2, 2] * 10), 7))
    assert found is not None
    assert (found.period, found.repeats, found.start) == (3, 10, 2)


def test_the_shortest_period_is_an_iteration() -> None:
    found = find_cycle(tokens(*([1, 1, 1, 1] * 10)))
    assert found is not None
    assert (found.period, found.repeats) == (1, 40)


@pytest.mark.parametrize("values", [(), (1,), (1, 2), (1, 2, 3, 4, 5, 6)])
def test_what_does_not_repeat_has_no_iterations(values: tuple[int, ...]) -> None:
    assert find_cycle(tokens(*values)) is None


@pytest.mark.parametrize("seed", range(50))
def test_a_random_iteration_is_found(seed: int) -> None:
    draw = np.random.default_rng(seed)
    body = draw.integers(0, 5, draw.integers(2, 30))
    repeats = int(draw.integers(5, 40))
    before, after = draw.integers(5, 9, draw.integers(0, 20)), draw.integers(5, 9, draw.integers(0, 20))
    found = find_cycle(np.concatenate([before, np.tile(body, repeats), after]))
    assert found is not None
    # A body may consist of repetitions itself; then their period is found.
    assert found.period <= len(body)
    assert found.period * found.repeats >= len(body) * (repeats - 1)
    assert found.start <= len(before) + len(body)
