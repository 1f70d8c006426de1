"""Lets every process that has this folder in its path make the random choices of small ids, whatever the ids are.

Random choices are hashes of ids, so that other ids would make others. With this, a corpus whose ids were replaced in
the same order must give the same results throughout, up to these ids. Python imports it before anything else.
"""

import sys
from importlib.machinery import PathFinder


def patch_randomness(module) -> None:
    import numpy as np
    from relabelling import back, small_ids, text_back

    small = small_ids()
    derive_seed, priorities = module.derive_seed, module.priorities
    each_back = np.vectorize(lambda number: back(number, small), otypes=[np.int64])
    module.derive_seed = lambda seed, *names: derive_seed(seed, *(text_back(str(name), small) for name in names))
    module.priorities = lambda seed, name, *ids: priorities(
        seed, name, *(each_back(column) if len(column) else column for column in ids)
    )


def patch_picking(module) -> None:
    from numba import njit
    from relabelling import back as plain_back
    from relabelling import small_ids

    small, priority_of, back = small_ids(), module.priority_of, njit(plain_back)
    module.priority_of = njit(lambda state, query, paper: priority_of(state, back(query, small), back(paper, small)))


def patch_ties(module) -> None:
    from relabelling import small_ids, text_back

    small, digest = small_ids(), module._digest
    module._digest = lambda *names: digest(*(text_back(name, small) for name in names))


PATCHES = {
    "cocite.core.randomness": patch_randomness,
    "cocite.triplets.picking": patch_picking,
    "cocite.evaluation.metrics": patch_ties,
    "cocite.evaluation.ranking": patch_ties,
}


class PatchingFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target) if name in PATCHES else None
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module) -> None:
                execute(module)
                PATCHES[name](module)

            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, PatchingFinder)
