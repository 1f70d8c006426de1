"""Optimisers of torch without its compiler."""

from torch.optim import Optimizer


def leave_out_compiler() -> None:
    """Let optimisers work without `torch._dynamo`, whose import takes longer than that of torch.

    Their methods import it when they are first called, only to tell it not to compile them. They look first for a
    version that it has marked (`torch._compile`), so each is its own. Without this, all works as well, and later.
    """
    for method in (Optimizer.__init__, Optimizer.add_param_group, Optimizer.zero_grad):
        plain = getattr(method, "__wrapped__", None)
        if plain is not None:
            plain.__dynamo_disable = plain
