"""A random choice depends on the seed, the step and what is chosen, and on nothing else."""

import numpy as np

from cocite.core.randomness import derive_seed, generator, priorities


def test_each_use_has_its_own_seed_and_generators_repeat():
    seeds = {derive_seed(seed, name) for seed in range(10) for name in ("a", "b", "ab")}
    assert len(seeds) == 30
    assert derive_seed(1, "a", "b") != derive_seed(1, "ab")
    assert generator(1, "step").integers(1 << 60) == generator(1, "step").integers(1 << 60)


def test_a_paper_keeps_its_priority_whoever_is_beside_it_and_a_pair_in_another_order_has_another():
    together = priorities(1, "step", np.array([5, 6, 7]))
    assert priorities(1, "step", np.array([6]))[0] == together[1]
    assert priorities(1, "step", np.array([1]), np.array([2])) != priorities(1, "step", np.array([2]), np.array([1]))


def test_priorities_are_uniform():
    drawn = priorities(3, "step", np.arange(100_000)) / 2.0**64
    assert abs(drawn.mean() - 0.5) < 0.005
    shares = np.histogram(drawn, bins=10, range=(0, 1))[0] / 100_000
    assert np.abs(shares - 0.1).max() < 0.006
