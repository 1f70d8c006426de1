"""Trainings, embeddings and probes beside sentence-transformers' own trainer and `encode`, on two threads.

Encoders have MiniLM's size, texts are as long as those of hci.
"""

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.benchmarks.made_triplets import PER_QUERY, paper_text, write_documents, write_encoder, write_triplets
from tests.benchmarks.measuring import Command, Cost, answer, cocite, compare, in_turn, median_ratio, python, run, say

from cocite.core.tables.files import read_table, vector_column, write_table

ROUNDS, THREADS = 3, 2
TRIPLETS_OF = {"training": 24, "validation": 8}
"""Queries of either set."""
BATCH, LR = 16, 2e-5

STATIC_PAPERS, PAIRS, STATIC_BATCH, STATIC_LR = 6000, 245_760, 1024, 5e-3
"""240 batches of pairs; a training on all links of hci has 390."""
FIELDS = ("title", "abstract")

EXAMPLES, POSITIVES, OTHERS = 12, 5, 11
EPOCHS = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "triplets": {"batch_size": 18, "epochs": EPOCHS},
    "examples": {"batch_size": 3, "epochs": EPOCHS, "objectives": [{"loss": "supcon", "space": "aspects"}]},
}

PROBED_PAPERS = 30_000
"""Papers that documents of triplets are drawn from."""
PROBED = {"losses": ["triplet", {"kind": "mnrl", "scale": 10.0}], "seeds": [1, 2, 3]}
PROBED_QUERIES, DIMENSION = 3000, 384

DOCUMENTS, MANY = 1000, (20_000, 80_000)


def training(folder: Path) -> None:
    """Training beside sentence-transformers' own trainer: five triplets a query.

    Both train the same encoder on the same triplets, with the same batches, learning rate and validation at the end.
    The seconds are those without imports, but with opening the encoder, tokenising, validating and saving.
    """
    _write_tuned(folder, TRIPLETS_OF)
    ways = list(product(("ours", "rival"), answer(precisions)[1]))
    measured = in_turn({way: partial(answer, train, folder, *way) for way in ways}, ROUNDS)
    triplets = TRIPLETS_OF["training"] * PER_QUERY
    for (who, precision), rounds in measured.items():
        seconds = statistics.median(taken for _, taken in rounds)
        say(
            f"{who} in {precision}: {triplets / seconds:.2f} triplets a second ({seconds:.1f} s for {triplets}, "
            f"validation included), {statistics.median(cost.cpu for cost, _ in rounds):.0f} s of the processors, "
            f"peak {_peak(cost for cost, _ in rounds):.0f} MB"
        )
    for ours, rival in product(*([way for way in ways if way[0] == who] for who in ("ours", "rival"))):
        mine, theirs = ((taken for _, taken in measured[way]) for way in (ours, rival))
        say(f"ours in {ours[1]} to the rival in {rival[1]}, triplets a second: {median_ratio(theirs, mine)}")


def _write_tuned(folder: Path, queries: dict[str, int]) -> None:
    write_encoder(folder / "encoder")
    for seed, (name, number) in enumerate(queries.items()):
        write_triplets(folder / name, number, seed, folder / "encoder")


def _peak(costs: Iterable[Cost]) -> float:
    return max(cost.peak_mb for cost in costs)


def precisions() -> list[str]:
    """What to train in: in bfloat16 as well where the CPU has instructions for it."""
    import torch

    from cocite.core.gpus import computes_in

    return ["float32", *(["bfloat16"] if computes_in("auto", torch.device("cpu")) == torch.bfloat16 else [])]


def train(folder: Path, way: str, precision: str) -> float:
    output = folder / "work" / way
    shutil.rmtree(output.parent, ignore_errors=True)
    if way == "ours":
        return _seconds_of_ours(folder, output, precision, batch_size=BATCH, lr=LR)
    more = {"eval_strategy": "epoch", "save_strategy": "epoch", "bf16": precision == "bfloat16"}
    roles = ("query", "positive", "negative")
    return _seconds_of_rival(folder, output, _triplet_loss, batch_size=BATCH, lr=LR, roles=roles, **more)


def _triplet_loss(losses: Any, model: Any) -> Any:
    """The triplet loss as sentence-transformers' manual has it."""
    return losses.TripletLoss(model, distance_metric=losses.TripletDistanceMetric.EUCLIDEAN, triplet_margin=1.0)


def _seconds_of_ours(folder: Path, output: Path, precision: str, **settings: Any) -> float:
    """Seconds of a training of the encoder in a folder on the examples there, from their texts on."""
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import torch._dynamo  # of the optimiser, and loaded by then in the rival as well
    import torch.utils.tensorboard  # noqa: F401
    from tests.encoder.building import outputs_in
    from tests.examples import files_in

    from cocite.config.models import TrainingSettings
    from cocite.encoder.tokens import tokenise_table
    from cocite.encoder.trainer import Inputs, train_encoder

    sets = {name: files_in(folder / name) for name in ("training", "validation")}
    inputs = Inputs(encoder=folder / "encoder", training=[sets["training"]], validation=[sets["validation"]])
    given = TrainingSettings(**settings, warmup=0.0, validations=1)
    start = time.perf_counter()
    for name, files in sets.items():
        shutil.rmtree(files.tokens)
        where = {"encoder": folder / "encoder", "threads": THREADS, "output": files.tokens}
        tokenise_table(folder / name / "documents", **where)
    where = {"threads": THREADS, "state": output / "state", "precision": precision}
    train_encoder(inputs, outputs_in(output), given, seed=1, training_seed=1, **where)
    return time.perf_counter() - start


def _seconds_of_rival(
    folder: Path,
    output: Path,
    loss: Callable[[Any, Any], Any],
    *,
    batch_size: int,
    lr: float,
    roles: Sequence[str],
    separator: str = "[SEP]",
    of: str = "",
    **more: Any,
) -> float:
    """Seconds of a training with sentence-transformers' trainer on the same texts, which lie in the subfolder `of`."""
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )
    from tests.examples import files_in, texts_of_examples

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    model, sets = SentenceTransformer(str(folder / "encoder"), device="cpu"), []
    for name in ("training", "validation"):
        texts = zip(*texts_of_examples(files_in(folder / of / name), separator), strict=True)
        sets.append(Dataset.from_dict(dict(zip(roles, map(list, texts), strict=False))))
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output / "checkpoints"),
        **{"num_train_epochs": 1, "per_device_train_batch_size": batch_size, "per_device_eval_batch_size": batch_size},
        **{"learning_rate": lr, "report_to": "none", "use_cpu": True, **more},
    )
    with redirect_stdout(sys.stderr):  # what it logs there would be taken for the answer
        SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=sets[0], eval_dataset=sets[1], loss=loss(losses, model)
        ).train()
    model.save_pretrained(str(output / "model"), create_model_card=False)
    return time.perf_counter() - start


def static_encoder(folder: Path, *, papers: str = "") -> None:
    """Static encoders beside sentence-transformers' StaticEmbedding: pairs a second in training, documents a second.

    Both start from the same table of 30,000 pieces, and train by MNRL on the same pairs in batches of 1,024. The
    seconds are those without imports, with opening the encoder, tokenising and saving. Papers are generated (few
    distinct words, few of which occur twice in a text) or those of a run: `--papers results/NAME/corpus/papers`.
    """
    from tests.benchmarks.training_memory import write_start
    from tests.examples import written_examples, written_pairs

    random = np.random.default_rng(1)
    texts: dict[int, Any] = {paper: paper_text(random) for paper in range(STATIC_PAPERS)}
    if papers:
        texts = dict(enumerate(zip(*read_table(Path(papers), "papers", FIELDS).to_pydict().values(), strict=True)))
    write_start(folder / "encoder", "static", 512, texts=texts)
    for name, number in (("training", PAIRS), ("validation", STATIC_BATCH)):
        query, other = random.integers(0, len(texts), (2, number))
        rows = np.column_stack([query, (query + 1 + other % (len(texts) - 1)) % len(texts), query])
        with_negatives = written_examples(folder / "triplets" / name, rows, texts, folder / "encoder")
        written_pairs(folder / name, with_negatives, folder / "encoder")
    for what, way, count in (("train", train_static, PAIRS), ("embed", embed_static, len(texts))):
        measured = in_turn({who: partial(answer, way, folder, who) for who in ("ours", "rival")}, ROUNDS)
        for who, rounds in measured.items():
            seconds, cpu = statistics.median(taken for _, taken in rounds), [cost.cpu for cost, _ in rounds]
            took = (
                f"{statistics.median(cpu):.1f} s of processors with imports, {_peak(cost for cost, _ in rounds):.0f} MB"
            )
            say(f"{what}, {who}: {count / seconds:,.0f} a second, {took}")
        mine, theirs = ((taken for _, taken in rounds) for rounds in measured.values())
        say(f"{what}: {median_ratio(theirs, mine)} as fast")


def train_static(folder: Path, who: str) -> float:
    """Seconds of a training; sentence-transformers' is as its manual has it for static embeddings."""
    if who == "ours":
        shutil.rmtree(folder / "ours", ignore_errors=True)
        settings = {"loss": "mnrl", "batch_size": STATIC_BATCH, "lr": STATIC_LR}
        return _seconds_of_ours(folder, folder / "ours", "float32", **settings)

    def in_batch_loss(losses: Any, model: Any) -> Any:
        return losses.MultipleNegativesRankingLoss(model)

    how: dict[str, Any] = {"batch_size": STATIC_BATCH, "lr": STATIC_LR, "roles": ("anchor", "positive")}
    how |= {"separator": " ", "of": "triplets", "eval_strategy": "epoch", "save_strategy": "no"}
    return _seconds_of_rival(folder, folder / "rival", in_batch_loss, **how)


def embed_static(folder: Path, who: str) -> float:
    from cocite.encoder import work_offline

    if who == "ours":
        from cocite.cli import hide_pandas_from_pyarrow

        hide_pandas_from_pyarrow()  # as the command does; the rival imports it before it starts
        work_offline(THREADS)
        from cocite.encoder.embedding import embed_tables

        start = time.perf_counter()
        where = {"threads": THREADS, "state": folder / "state", "output": folder / "vectors"}
        embed_tables(folder / "encoder", [folder / "papers.parquet"], table="papers", **where)
        return time.perf_counter() - start
    work_offline(THREADS)
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(THREADS)
    start = time.perf_counter()
    rows = pq.read_table(folder / "papers.parquet", columns=list(FIELDS)).to_pylist()
    model = SentenceTransformer(str(folder / "encoder"), device="cpu")
    np.save(folder / "vectors.npy", model.encode([f"{row['title']} {row['abstract'] or ''}" for row in rows]))
    return time.perf_counter() - start


def examples(folder: Path) -> None:
    """Examples of one positive and ten negatives beside triplets: a training's time for each document of a batch.

    Both have the same documents: an example is a query with its eleven others, of which the triplets pair five
    positives with six negatives. Triplets have the triplet loss, examples SupCon in the spaces of three aspects;
    batches have about as many documents, each of which is embedded once. The steps of two epochs are measured, after
    one in which memory is taken, without opening, validating and saving.
    """
    write_encoder(folder / "encoder")
    _write_sets(folder)
    measured = in_turn({name: partial(answer, step, name, folder) for name in SETTINGS}, ROUNDS)
    for name, rounds in measured.items():
        milliseconds, documents = statistics.median(taken for _, (taken, _) in rounds), rounds[0][1][1]
        peak = _peak(cost for cost, _ in rounds)
        say(f"{name}: {milliseconds:.1f} ms for each of {documents:.1f} distinct documents a batch, peak {peak:.0f} MB")
    theirs, ours = ((taken for _, (taken, _) in rounds) for rounds in measured.values())
    say(f"examples to triplets, the time for each document: {median_ratio(ours, theirs)}")


def _write_sets(folder: Path) -> None:
    from tests.examples import Row, written_aspects, written_examples

    from cocite.config.graphs import ASPECTS

    random = np.random.default_rng(1)
    texts = dict(enumerate(paper_text(random) for _ in range(EXAMPLES * (1 + OTHERS))))
    examples: list[Row] = []
    triplets = []
    for number in range(EXAMPLES):
        query, *others = range(number * (1 + OTHERS), (number + 1) * (1 + OTHERS))
        kinds = ["linked"] * (OTHERS - 1)
        examples.append((query, others[:1], others[1:], ASPECTS[number % len(ASPECTS)], kinds))
        positives, negatives = others[:POSITIVES], others[POSITIVES:]
        triplets += [(query, positives[place % POSITIVES], negative) for place, negative in enumerate(negatives)]
    written_aspects(folder / "examples", examples, texts, folder / "encoder")
    written_examples(folder / "triplets", triplets, texts, folder / "encoder")


def step(name: str, folder: Path) -> tuple[float, float]:
    """Milliseconds of a step for each distinct document of its batch, and the documents of a batch."""
    from cocite.encoder import work_offline

    work_offline(THREADS)
    import torch
    from tests.examples import files_in

    from cocite.config.graphs import ASPECTS
    from cocite.config.models import TrainingSettings
    from cocite.encoder.examples import open_examples
    from cocite.encoder.measuring import KEEP_FREED, set_memory
    from cocite.encoder.model import open_encoder
    from cocite.encoder.objective import new_learner
    from cocite.encoder.trainer import Trainer

    torch.set_num_threads(THREADS)
    set_memory(KEEP_FREED)
    settings, examples = TrainingSettings(**SETTINGS[name]), open_examples(files_in(folder / name))
    encoder = open_encoder(folder / "encoder")
    learner = new_learner(encoder, settings, 1, () if examples.aspects is None else ASPECTS)
    training = Trainer(learner, examples, [examples], settings, seed=1, state=folder / "state")
    epochs = list(training.steps())
    warming = len(epochs) // EPOCHS
    for number, (step, batches) in enumerate(epochs):
        if number == warming:
            start = time.perf_counter()
        training.step(step, batches)
    seconds = time.perf_counter() - start
    documents = [len(batch.documents) for _, batches in epochs[warming:] for batch in batches]
    return 1000 * seconds / sum(documents), sum(documents) / len(documents)


def probing(folder: Path) -> None:
    """A probe of a set beside one fine-tuning on it, and the memory of a probe as the papers become more.

    The set has 15,000 triplets of 3,000 queries, and vectors of 384 dimensions. A probe trains six maps: two losses
    with three seeds. The fine-tuning is that of an encoder on the texts of a part of such a set, by the triplet loss;
    its time for all triplets is reckoned from it.
    """
    seconds = {}
    for papers in (PROBED_PAPERS, 10 * PROBED_PAPERS, 30 * PROBED_PAPERS):
        part = folder / str(papers)
        run(python(write_probed, part, papers))
        options = {"vectors": part / "papers", "settings": PROBED, "seed": 1, "threads": THREADS}
        probe = cocite("encoder", "probe", part / "examples.parquet", **options, output=part / "maps.safetensors")
        costs = [run(probe) for _ in range(ROUNDS)]
        seconds[papers] = statistics.median(cost.wall for cost in costs)
        say(
            f"Six maps of {PROBED_QUERIES * PER_QUERY:,} triplets among {papers:,} papers: {seconds[papers]:.1f} s, "
            f"{statistics.median(cost.cpu for cost in costs):.1f} s of the processors, peak "
            f"{_peak(costs):.0f} MB (medians of {ROUNDS}, start included)"
        )
    tuned = {**TRIPLETS_OF, "validation": 4}
    _write_tuned(folder, tuned)
    cost, taken = answer(train, folder, "ours", "float32")
    triplets, wanted = tuned["training"] * PER_QUERY, PROBED_QUERIES * PER_QUERY
    whole = taken / triplets * wanted
    say(
        f"One fine-tuning by the triplet loss: {taken:.0f} s for {triplets} triplets, peak {cost.peak_mb:.0f} MB; an "
        f"epoch of {wanted:,} would take {whole / 60:.0f} minutes, {whole / seconds[PROBED_PAPERS]:.0f} × the "
        "time of the six maps."
    )


def write_probed(folder: Path, papers: int) -> None:
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((papers, DIMENSION), dtype=np.float32)
    table = pa.table({"corpusid": np.arange(papers), "vector": vector_column(vectors)})
    write_table(folder / "papers/0.parquet", "paper_embeddings", table)
    query = np.repeat(np.arange(PROBED_QUERIES), PER_QUERY)
    others = draw.integers(PROBED_QUERIES, PROBED_PAPERS, (2, len(query), 1))
    columns = {"query": query, "positives": others[0].tolist(), "negatives": others[1].tolist()}
    write_table(folder / "examples.parquet", "training_examples", pa.table(columns))


def embedding(folder: Path) -> None:
    """Embedding documents beside sentence-transformers' own `encode`, both as whole processes.

    Time is measured with an encoder of MiniLM's size. Memory is measured with a small one over more documents than a
    window holds, and over four times as many.
    """
    run(python(write_embedded, folder, DOCUMENTS, *MANY))
    for precision in ("float32", "auto"):
        title = f"embedding {DOCUMENTS} documents in {precision}, beside sentence-transformers in float32"
        ways = _embed(folder, "encoder", DOCUMENTS, precision), _encode(folder, "encoder", DOCUMENTS)
        cost, _ = compare(title, *ways, "wall", ROUNDS)
        say(f"{DOCUMENTS / cost.wall:.1f} documents a second, start included; peak {cost.peak_mb:.0f} MB")
    for documents in MANY:
        peaks = [run(way(folder, "small", documents)).peak_mb for way in (_embed, _encode)]
        say(f"{documents} documents: peak {peaks[0]:.0f} MB, sentence-transformers {peaks[1]:.0f} MB")


def write_embedded(folder: Path, *counts: int) -> None:
    """Write tables of so many documents, an encoder of MiniLM's size, and one of a layer of width 128."""
    write_encoder(folder / "encoder")
    write_encoder(folder / "small", layers=1, hidden=128, heads=2)
    for documents in counts:
        write_documents(folder / f"{documents}.parquet", documents)


def _embed(folder: Path, encoder: str, documents: int, precision: str = "float32") -> Command:
    options = {"model": folder / encoder, "state": folder / "state", "output": folder / "ours", "threads": THREADS}
    return cocite("encoder", "embed", folder / f"{documents}.parquet", **options, precision=precision)


def _encode(folder: Path, encoder: str, documents: int) -> Command:
    return python(encode, folder / encoder, folder / f"{documents}.parquet", folder / "rival.parquet")


def encode(encoder: str, documents: str, output: str) -> None:
    """Write the vectors of all documents, in batches of the library's own size and sorting."""
    os.environ.update(OMP_NUM_THREADS=f"{THREADS}", RAYON_NUM_THREADS=f"{THREADS}", TOKENIZERS_PARALLELISM="true")
    from sentence_transformers import SentenceTransformer

    table = pq.read_table(documents)
    titles, abstracts = (table.column(name).to_pylist() for name in FIELDS)
    texts = [f"{title}[SEP]{abstract}" for title, abstract in zip(titles, abstracts, strict=True)]
    vectors = SentenceTransformer(encoder).encode(texts)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    pq.write_table(pa.table({"document": table.column("document"), "vector": column}), output, compression="zstd")
