"""Embed the documents of a benchmark: table documents in, table document_embeddings out, both streamed.

A document without any text gets no vector: it is counted here, and as missing where it is asked for.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import torch

from cocite.encoder.embedding import embed
from cocite.encoder.folder import open_encoder
from cocite.encoder.texts import joined_text, separator_of, tokenise
from cocite.files import scan_table, vector_column, write_table
from cocite.progress import progress_bar, report

CHUNK = 2048
"""Documents that are in memory at once."""


def embed_documents(model: Path, documents: Path, output: Path, *, threads: int, chunk: int = CHUNK) -> None:
    """Write one vector for each document that has a text, in order of document."""
    torch.set_num_threads(threads)
    table = scan_table(documents, "documents")
    total = table.count_rows()
    encoder = open_encoder(model)
    separator, length = separator_of(encoder.tokenizer), encoder.max_seq_length

    def embedded() -> Iterator[pa.RecordBatch]:
        with progress_bar(of="Embedding", unit="documents", total=total) as bar:
            for batch in table.to_batches(columns=["document", "title", "abstract", "more"], batch_size=chunk):
                rows = batch.to_pylist()
                parts = {row["document"]: (row["title"], row["abstract"], *row["more"]) for row in rows}
                texts = {document: joined_text(texts, separator) for document, texts in parts.items()}
                texts = {document: text for document, text in texts.items() if text}
                vectors = embed(encoder, tokenise(list(texts.values()), encoder.tokenizer, length))
                yield pa.record_batch(
                    {"document": pa.array(list(texts), pa.string()), "vector": vector_column(vectors)}
                )
                bar.update(len(rows))

    written = write_table(output, "document_embeddings", embedded())
    report(f"Embedded {written} of {total} documents; {total - written} have no text.")
