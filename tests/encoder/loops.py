"""The losses as loops that follow their definitions, in plain Python: of vectors `v` and examples of their rows."""

import math


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def complex_similarity(x, y):
    half = len(x) // 2
    norms = math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))
    total = 0.0
    for a, b, c, d in zip(x[:half], x[half:], y[:half], y[half:], strict=True):
        quotient = complex(a, b) * complex(c, d).conjugate() / norms
        total += quotient.real + quotient.imag
    return abs(total)


def pairs(examples, role):
    return [(example[0], document) for example in examples for document in example[role]]


def of_query(examples, query, role):
    return [document for other, document in pairs(examples, role) if other == query]


def pairwise_ranking(similarity, v, examples, scale):
    near = [similarity(v[query], v[document]) for query, document in pairs(examples, 1)]
    far = [similarity(v[query], v[document]) for query, document in pairs(examples, 2)]
    return math.log(1 + sum(math.exp(scale * (f - s)) for f in far for s in near))


def loop_triplet(v, examples):
    def distance(x, y):
        return math.sqrt(sum((a - b + 1e-6) ** 2 for a, b in zip(x, y, strict=True)))

    losses = [
        max(0.0, distance(v[query], v[positive]) - distance(v[query], v[negative]) + 0.5)
        for query, near, far in examples
        for positive in near
        for negative in far
    ]
    return sum(losses) / len(losses)


def loop_infonce(v, examples, *, temperature):
    losses = []
    for query, positive in pairs(examples, 1):
        own = math.exp(cosine(v[query], v[positive]) / temperature)
        far = of_query(examples, query, 2)
        against = sum(math.exp(cosine(v[query], v[negative]) / temperature) for negative in far)
        losses.append(-math.log(own / (own + against)))
    return sum(losses) / len(losses)


def loop_mnrl(v, examples, *, sampled_negatives=True, log_q=0.0):
    """Document d occurs d + 1 times."""

    def compared(query, document):
        return math.exp(4.0 * cosine(v[query], v[document])) / (document + 1) ** log_q

    losses = []
    drawn = [document for role in (1, 2)[: 1 + sampled_negatives] for _, document in pairs(examples, role)]
    for query, positive in pairs(examples, 1):
        known = {query, *of_query(examples, query, 1)}
        own = compared(query, positive)
        others = sum(compared(query, document) for document in drawn if document not in known)
        losses.append(-math.log(own / (own + others)))
    return sum(losses) / len(losses)


def loop_supcon(v, examples, *, temperature):
    losses = []
    for query, positive in pairs(examples, 1):
        every = of_query(examples, query, 1) + of_query(examples, query, 2)
        total = sum(math.exp(cosine(v[query], v[document]) / temperature) for document in every)
        losses.append(-math.log(math.exp(cosine(v[query], v[positive]) / temperature) / total))
    return sum(losses) / len(losses)
