"""The configuration: resolves defaults and checks every key and name before any job starts.

`resolve` takes the configuration as written and returns it complete, or raises one sentence per mistake that names the
key. Each section is declared in its own module; here they are combined.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from cocite.config import entries
from cocite.config.benchmarks import AnyBenchmark
from cocite.config.cuts import first_day, last_day
from cocite.config.embeddings import Embedding, Walks
from cocite.config.encoders import AnyEncoder
from cocite.config.entries import Entry, GivenPath, Name, Natural, Refers, Text, Whole, as_json, one_of
from cocite.config.explained import explain
from cocite.config.folders import OF_PATTERNS, folders_of, is_literal
from cocite.config.graphs import Graph
from cocite.config.index import Index
from cocite.config.map import MapSettings
from cocite.config.models import Model
from cocite.config.probes import Probe, with_grids
from cocite.config.queries import DrawnQueries, Queries
from cocite.config.runs import METHODS, AnyBaseline
from cocite.config.sampler import Sampler
from cocite.config.settings import validated
from cocite.config.source import Link, Source, link_between
from cocite.config.yaml_files import as_written, extended, written_configuration
from cocite.core.errors import InputError, os_error_hint
from cocite.core.gpus import Precision

OMISSIONS = "omissions"  # the folder of omission reports, a sibling of the entries' folders in a section
NAMED_FOLDERS = ("graphs", "embeddings", "walks", "triplets", "models", "indexes", "baselines", "benchmarks", "probes")
SAMPLERS = "cocite.triplets.samplers"

if TYPE_CHECKING:
    Corpus = Source
    Map = MapSettings
    TripletSet = Sampler
else:
    Corpus = one_of("cocite.corpus.sources", "source")
    Map = one_of("cocite.report.map_methods", "method", default="tsne")
    TripletSet = one_of(SAMPLERS, "sampler")
_methods: Any = entries.plugins(METHODS, "kind")


def _literal(path: str) -> str:
    if not is_literal(entries.check_characters(path)):  # steps may take it for another one
        raise entries.unsuitable(
            f"; it must be a literal path to a folder, as results/mine: no ~ or variables, none of {OF_PATTERNS}, no "
            "hyphen or ./ in front, no extra slashes"
        )
    return path


Folder = Annotated[Text, AfterValidator(_literal)]
USUAL_BASELINES = ("bm25", "popularity", "random")  # the kinds of baselines scored by default, each under its own name


class PathVariables(Entry):
    """Folder of results, logs and benchmarks of jobs (Snakemake's own key)."""

    results: Folder | None = None
    """Folder of results."""
    logs: Folder | None = None
    """Folder of logs."""
    benchmarks: Folder | None = None
    """Folder of run times and memory of jobs."""


class Configuration(Entry):
    """A configuration names things: graphs, embeddings, walks, triplets, encoders, models, indexes, baselines,
    benchmarks, probes and maps. An entry refers to others by name and writes its results to the folder of its name.
    Editing an entry reruns only what depends on it."""

    extends: str | None = None
    """The file of another configuration, whose keys this one has where it does not write its own: mappings entry by
    entry, anything else as a whole. A key without a value drops that of the other. `pathvars` must be its own."""
    run_seed: Natural = 1
    """The run's seed; every random choice derives its own generator from it."""
    release: str
    """Release of the Semantic Scholar datasets, or day of a copy of OpenAlex: a date such as 2024-07-16. `latest` works
    with the sources s2, semantic-scholar-api and openalex, and is pinned in the manifest when the shards are listed. A
    release in a folder has any name of letters from a to z, capitals as well, digits, dots, hyphens and underscores
    that starts with a letter or digit."""
    gpu: bool = False
    """Whether fine-tuning, embedding and `engine: torch` request GPUs from a cluster: one per process of a training,
    one per embedding, `gpus` of a graph embedding. Without a cluster they use the machine's GPUs, if any, and wait for
    each other."""
    precision: Precision = "auto"
    """The number format in which encoders compute in training and embedding; weights are always updated in float32.
    auto means float32 when what is scored is embedded, so that scores hold on every machine: benchmarks, and papers if
    a hold-out searches the corpus. When models are trained and other papers are embedded, auto means bfloat16 on GPUs
    and CPUs with hardware support for it (on CPUs, AMX or AVX-512 BF16), float32 elsewhere."""
    corpus: Corpus
    """Source of the release, and how it is split for processing."""
    queries: Queries = DrawnQueries()
    """Papers that anchor the triplets, and papers held out of training."""
    exclude: tuple[GivenPath, ...] = ()
    """Papers to exclude from every graph, index, triplet and vocabulary, as held-out papers are. Each item is the name
    of an external benchmark (all its documents that match papers by id or text are excluded) or a text file with one
    corpus id per line (environment variables are expanded; write ./name for a file named like a benchmark)."""
    graphs: dict[Name, Graph] = Field(default={})
    """Graphs over papers, by name."""
    embeddings: dict[Name, Embedding] = Field(default={})
    """Graph embeddings, by name."""
    walks: dict[Name, Walks] = Field(default={})
    """Random walks on graphs that rank the papers around each query, by name: neighbours without an embedding. What
    names an embedding for its neighbours can name walks instead, so no embedding has the same name."""
    triplets: dict[Name, TripletSet] = Field(default={})
    """Sets of triplets, by name."""
    encoders: dict[Name, AnyEncoder] = Field(default={})
    """Text encoders before fine-tuning, by name."""
    models: dict[Name, Model] = Field(default={})
    """Encoders that are fine-tuned on triplets, by name."""
    indexes: dict[Name, Index] = Field(default={})
    """What finds papers for a text, by what it says and by who cites whom, by name (docs/retrieval.md)."""
    baselines: dict[Name, AnyBaseline] = Field(default={kind: _methods[kind](kind=kind) for kind in USUAL_BASELINES})
    """What every model is compared with, by name. Left out, they are bm25, popularity and random; given, exactly
    what is named is scored, which may be nothing ({})."""
    benchmarks: dict[Name, AnyBenchmark] = Field(default={})
    """Benchmarks that every model and baseline is scored on, by name."""
    probes: dict[Name, Probe] = Field(default={})
    """Which triplets and losses are worth a training, by linear maps of ready vectors, by name."""
    maps: dict[Name, Map] = Field(default={})
    """Maps of documents of a benchmark in the report, by name. Left out, there is one of the first benchmark about
    held-out papers, named after it; with {} there is none."""
    pathvars: PathVariables | None = None
    """Folder of results, logs and benchmarks of jobs (Snakemake's own key)."""

    @property
    def folders(self) -> dict[str, Path]:
        """The folders that the run writes to, by their keys."""
        return folders_of(as_json(self))

    def check_environment(self, key: str, config: Whole) -> Iterator[str]:
        """Files and folders that cannot be what they are named for."""
        yield from self.corpus.faults_of_paper_ids("corpus.paper_ids")
        cut, until = self.queries.holdout_from, self.corpus.until
        if cut is not None and until is not None and first_day(cut) > last_day(until):
            yield f"queries.holdout_from ({cut}) must not be after corpus.until ({until}), the end of the corpus."
        for number, entry in enumerate(self.exclude):
            at, declared = f"exclude[{number}]", self.benchmarks
            if entry in declared:
                if declared[entry].made_by is not None:
                    yield f"{at}: the papers of the benchmark {entry} are already held out."
            elif entry.lower().endswith(".parquet"):
                yield f"{at}: {entry} is a table; list the papers to exclude in a text file, one id per line."
            elif not Path(entry).is_file():
                yield f"{at}: {entry} is neither a file nor a benchmark (declared: {', '.join(declared) or 'none'})."
        for section in NAMED_FOLDERS:
            if OMISSIONS in getattr(self, section):
                yield f"{section}.{OMISSIONS}: the folder of that name is taken; give it another."
        for name in filter(self.embeddings.__contains__, self.walks):
            yield f"walks.{name}: embeddings has an entry of that name, which a sampler could mean; give it another."

    def base_encoder(self, model: str) -> str:
        """The encoder that a model starts from, directly or through the models it continues; empty in a circle."""
        chain = (model, *entries.all_parts(model, lambda each: filter(None, [self.models[each].from_])))
        return next((encoder for each in chain if (encoder := self.models[each].encoder) is not None), "")

    def set_with_parts(self, name: str) -> dict[str, TripletSet]:
        """A set of triplets or examples, and those that it is made of, by name."""
        sets = self.triplets
        return {each: sets[each] for each in (name, *entries.all_parts(name, lambda part: sets[part].parts))}

    def link_of(self, benchmark: str) -> Link:
        """How the documents of a benchmark are known to be papers of the corpus."""
        entry, has_match = self.benchmarks[benchmark], self.corpus.matched_with is not None
        return link_between(entry.document_ids, self.corpus.whose_ids, has_match=has_match, has_hashes=entry.has_hashes)


def configure(written: Mapping[str, Any]) -> Configuration:
    """The complete configuration. Raises `InputError`, one sentence that names the key, if it cannot be run."""
    config, faults = _checked(as_written(extended(written)))
    if config is None or faults:
        raise InputError(faults[0])
    return config


def resolve(written: Mapping[str, Any]) -> dict[str, Any]:
    """The complete configuration as plain values. Raises `InputError` as `configure` does."""
    return dict(as_json(configure(written)))


def resolve_or_explain(written: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The configuration as far as it is complete, and a sentence on each thing that is wrong with it."""
    try:
        given = as_written(extended(written))
    except InputError as error:
        return {}, [str(error)]
    config, faults = _checked(given)
    return given if config is None else as_json(config), faults


def _checked(given: Mapping[str, Any]) -> tuple[Configuration | None, list[str]]:
    """The configuration, None if a key is wrong by itself, and what is wrong: only then what does not fit together."""
    try:
        config = validated(Configuration, given)
    except ValidationError as error:
        return None, explain(error, Configuration, given)
    if "maps" not in config.model_fields_set:
        held_out = [name for name, entry in config.benchmarks.items() if entry.made_by is not None]
        maps = {name: validated(Map, {"benchmark": name}) for name in held_out[:1]}
        config = config.model_copy(update={"maps": maps})
    config, faults = with_grids(config)
    return config, faults or _inconsistencies(config)


def recorded_configuration(values: Mapping[str, Any]) -> Configuration:
    """The configuration that a run recorded. Raises `InputError` if it is none of this version."""
    try:
        return validated(Configuration, values)
    except ValidationError as error:
        [fault, *_] = explain(error, Configuration, values)
        raise InputError(
            f"The recorded configuration is of another version of CoCite: {fault} Run the workflow again with this one."
        ) from None


def read_configuration(path: Path, keys: Collection[str] | None = None) -> dict[str, Any]:
    """The configuration in a YAML file, resolved; only what `keys` need, if given. Raises `InputError`."""
    written = written_configuration(path)
    return resolve({key: entry for key, entry in written.items() if keys is None or key in keys})


def _inconsistencies(config: Configuration) -> list[str]:
    """What does not fit together, the first thing of each entry; references only where all names are declared."""
    checked: list[tuple[str, Entry]] = [("", config)]
    for section in type(config).model_fields:
        match getattr(config, section):
            case Entry() as entry:
                checked.append((section, entry))
            case dict() as named:
                checked += [(f"{section}.{name}", entry) for name, entry in named.items()]
    undeclared = (f"Configuration key {fault}" for fault in _undeclared("", config, config))
    faults = [*undeclared, *_first_faults(entry.check_environment(key, config) for key, entry in checked)]
    return faults or list(_first_faults(entry.check_references(key, config) for key, entry in checked))


def results_folder(config: Mapping[str, Any]) -> Path:
    """The folder of results of a run with this configuration, resolved or not."""
    return folders_of(config)["results"]


def _first_faults(found: Iterable[Iterator[str]]) -> Iterator[str]:
    for faults in found:
        try:
            yield from (f"Configuration key {fault}" for fault in islice(faults, 1))
        except OSError as error:
            said = os_error_hint(error)
            if said is None:
                raise
            yield said


def _undeclared(key: str, value: Any, config: Configuration) -> Iterator[str]:
    """Names that an entry, and the entries within it, refer to, and that no section declares."""
    match value:
        case Entry():
            for attribute, field in type(value).model_fields.items():
                at, given = f"{key}.{field.alias or attribute}".lstrip("."), getattr(value, attribute)
                for marked in field.metadata:
                    if isinstance(marked, Refers) and given is not None:
                        yield from _undeclared_names(at, marked, [given] if isinstance(given, str) else given, config)
                yield from _undeclared(at, given, config)
        case dict():
            for name, each in value.items():
                yield from _undeclared(f"{key}.{name}", each, config)
        case tuple():
            for number, each in enumerate(value):
                yield from _undeclared(f"{key}[{number}]", each, config)


def _undeclared_names(key: str, marked: Refers, names: Iterable[str], config: Configuration) -> Iterator[str]:
    sections = [marked.section, *filter(None, [marked.or_in])]
    declared = dict.fromkeys(name for section in sections for name in getattr(config, section))
    deny = f"neither {' nor '.join(sections)} declares" if marked.or_in else f"{marked.section} does not declare"
    for name in names:
        if name not in declared:
            yield f"{key} names {name!r}, which {deny} (declared: {', '.join(declared) or 'none'})."
