"""Papers by their ids, from a file as people have it: text, CSV, BibTeX, RIS or CSL JSON.

Formats are known by their content, since EndNote's RIS ends in .txt; only CSV needs its suffix. Of an entry only its
ids are read: its DOI, and those of OpenAlex, Semantic Scholar, PubMed and arXiv. Titles are not compared. An entry is
looked up in an API by its first id, and by the next one only if the API has no work with it.
"""

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from cocite.core.errors import InputError, explain_unreadable, printable
from cocite.core.progress import progress, report
from cocite.core.tables import TABLES, empty_schema
from cocite.core.tables.files import write_omissions, write_table
from cocite.core.tables.places import path_of
from cocite.corpus.release.query import Gathered, Work

Id = tuple[str, str]
"""A filter of OpenAlex's API and its value, such as ("doi", "10.1000/a"); or "s2" and an id of Semantic Scholar."""

NO_ID = "no DOI, OpenAlex, Semantic Scholar, PubMed or arXiv id"
MALFORMED = "malformed BibTeX"
FORMS = "text with one id per line, CSV with a column doi, openalex, pmid or arxiv, BibTeX, RIS, or CSL JSON"

DOI = re.compile(
    r"^[^\w\n]*(?:doi\b\W*)?(?:https?://)?(?:www\.|dx\.)?(?:doi\.org/)?(?:doi:)?(10\.\d{4,9}(?:\.\d+)*/[\w(]\S*)",
    re.I | re.M,
)
OPENALEX = re.compile(
    r"(?:openalex\.org/(?:works/)?(?=W\d+\b)|^[^\w\n]*(?:openalex\W+)?(?=W\d+\W*$))(W\d{1,18})", re.I | re.M
)
S2 = re.compile(
    r"(?:semanticscholar\.org/\S*?|\bS2:)([0-9a-f]{40})\b|\b(?:corpus ?id|S2CID)\W{0,3}([1-9]\d{0,11})\b", re.I
)
PUBMED = re.compile(r"\b(?:pmid\W{0,3}|pubmed(?:\.ncbi\.nlm\.nih\.gov/|\W{1,3}))0*([1-9]\d{0,7})\b", re.I)
ARXIV_ID = r"\d{4}\.\d{4,5}|[a-z-]+(?:\.[a-z]{2})?/\d{7}"
ARXIV = re.compile(rf"arxiv(?:\.org/(?:abs|pdf|html)/|\W{{1,3}})({ARXIV_ID})(?!\d)", re.I)
FIELDS = (
    *("doi", "openalex", "openalexid", "id", "pmid", "pubmed", "pubmedid", "arxiv", "arxivid", "url", "eprint"),
    *("corpusid", "s2cid", "paperid", "semanticscholar"),
    *("do", "ur", "l2", "l3", "lk", "an", "m3"),  # RIS
    *("note", "notes", "n1", "extra", "annote", "howpublished", "number"),
    *("journal", "jo", "jf", "ja", "t2", "publication", "publicationtitle", "containertitle"),  # of Google Scholar
)
"""Names of fields with an entry's ids, the surest first. Others, such as references, may have those of other papers."""
LABELS = dict.fromkeys(("pmid", "pubmed", "pubmedid"), "PMID:") | dict.fromkeys(("arxiv", "arxivid"), "arXiv:")
LABELS |= {"corpusid": "CorpusId:", "s2cid": "CorpusId:", "paperid": "S2:"}
LATEX = (
    (r"\\url\b", ""),
    (r"\\textless\b\s?|\$<\$", "<"),
    (r"\\textgreater\b\s?|\$>\$", ">"),
    (r"\\textunderscore\b\s?", "_"),
    (r"\\(?=[\W_])|[{}]", ""),
)
"""What programs write in place of characters of an id."""
NEXT_ID = re.compile(
    r"(?<![:\s,;])[\s,;]+(?=\W{0,2}(?:doi\b|https?:|10\.\d{4}|W\d|PMID|arxiv|openalex|corpusid))", re.I
)
BRACKETS = {")": "(", "]": "[", ">": "<", "}": "{"}

KINDS = {"ids.openalex": "OpenAlex id", "doi": "DOI", "ids.pmid": "PubMed id", "s2": "id of Semantic Scholar"}
SAME_WORK = "the work of an earlier entry"

Works = dict[Id, str]
"""Id → the work that has it."""
Found = tuple[Work, str, Sequence[Id]]
"""A work, its own id, and all ids that name it."""


@dataclass(frozen=True, kw_only=True)
class ListedPaper:
    """An entry of a list."""

    place: str
    """Its line and its key, if it has them."""
    ids: tuple[Id, ...] = ()
    fault: str = NO_ID
    """Why it has no ids, if it has none."""


def read_papers(path: Path) -> list[ListedPaper]:
    """The entries of a file, in their order. Raises `InputError` if none has an id."""
    with explain_unreadable(path, "list of papers"):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(f"{path} is empty; it must be a list of papers: {FORMS}.")
    if "\0" in text:
        raise InputError(f"{path} is not a text; it must be a list of papers: {FORMS}.")
    papers = list(_entries(path, text))
    if not any(paper.ids for paper in papers):
        raise InputError(f"{path}: none of its entries ({len(papers):,}) has an id; it must be {FORMS}.")
    return papers


def _entries(path: Path, text: str) -> Iterator[ListedPaper]:
    if re.match(r"\s*(\{|\[\s*[{\]])", text):
        return _of_json(path, text)
    if re.search(r"^TY {1,2}-", text, re.M):
        return _of_ris(text)
    if re.search(r"^[ \t]*@\s*\w+\s*[{(]", text, re.M):
        return _of_bibtex(text)
    has_columns = path.suffix.lower() in (".csv", ".tsv", ".tab") and not _ids_of_line(text.lstrip().split("\n")[0])
    return _of_csv(path, text) if has_columns else _of_text(text)


def _of_text(text: str) -> Iterator[ListedPaper]:
    for number, line in enumerate(text.split("\n"), start=1):
        ids = _ids_of_line(line)
        is_one = len({name for name, _ in ids}) == len(ids)
        if line.strip() and is_one:
            yield ListedPaper(place=f"line {number}", ids=tuple(ids))
        elif line.strip():
            yield from (ListedPaper(place=f"line {number}", ids=(each,)) for each in ids)


def _ids_of_line(line: str) -> list[Id]:
    """The ids in a line, of one paper or several."""
    if re.fullmatch(r"\s*\d{1,8}\s*", line):
        line = f"PMID:{line}"
    elif re.fullmatch(rf"\s*(?:{ARXIV_ID})(?:v\d+)?\s*", line, re.I):
        line = f"arXiv:{line.strip()}"
    elif re.fullmatch(r"\s*[0-9a-f]{40}\s*", line):
        line = f"S2:{line.strip()}"
    return list(dict.fromkeys(each for part in NEXT_ID.split(line) for each in ids_in({"doi": part})))


def _of_csv(path: Path, text: str) -> Iterator[ListedPaper]:
    header = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count))
    names = list(rows.fieldnames or ())
    if not {*map(_name, names)} & {*FIELDS}:
        listed = printable(", ".join(names))[:200]
        raise InputError(f"{path}: no column has ids ({listed}); name one of them doi, openalex, pmid or arxiv.")
    before = rows.line_num
    with explain_unreadable(path, "CSV"):
        for row in rows:
            cells = {name: cell for name, cell in row.items() if name and cell}
            yield ListedPaper(place=f"line {before + 1}", ids=ids_in(cells))
            before = rows.line_num


def _of_json(path: Path, text: str) -> Iterator[ListedPaper]:
    with explain_unreadable(path, "CSL JSON"):
        content = json.loads(text)
        items = list(content.get("items", [content]) if isinstance(content, dict) else content)
    for number, item in enumerate(items, start=1):
        fields = item if isinstance(item, dict) else {}
        ids = ids_in({name: str(value) for name, value in fields.items() if isinstance(value, str | int)})
        yield ListedPaper(place=_place(f"item {number}", fields.get("id")), ids=ids)


def _of_ris(text: str) -> Iterator[ListedPaper]:
    """Records begin with TY; programs forget the end, ER, or write one space in place of two."""
    lines = [(number, line.rstrip()) for number, line in enumerate(text.split("\n"), start=1)]
    starts = [at for at, (_, line) in enumerate(lines) if re.match("TY {1,2}-", line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        fields, tag = dict[str, str](), ""
        for _, line in lines[start:end]:
            if found := re.match(r"([A-Z][A-Z0-9]) {1,2}-(?: |$)", line):
                tag, line = found[1], line[found.end() :]
            fields[tag] = f"{fields[tag]}\n{line}" if tag in fields else line
        if re.search("pubmed|medline|nlm", f"{fields.get('DB')} {fields.get('DP')}", re.I):
            fields["pmid"] = fields.get("AN", "")
        yield ListedPaper(place=_place(f"line {lines[start][0]}", fields.get("ID")), ids=ids_in(fields))


def _of_bibtex(text: str) -> Iterator[ListedPaper]:
    from bibtexparser import parse_string
    from bibtexparser.model import Entry, ParsingFailedBlock

    for block in parse_string(text).blocks:
        # Of an entry whose key was there before, or with a field twice, the parser has the entry as well.
        entry = getattr(block, "ignore_error_block", None) or block
        line = f"line {(block.start_line or 0) + 1}"
        if isinstance(entry, Entry):
            fields = {_name(field.key): _plain(str(field.value)) for field in reversed(entry.fields)}
            if "eprint" in fields:
                archive = fields.get("archiveprefix") or fields.get("eprinttype") or "arXiv"
                fields["eprint"] = f"{archive}:{fields['eprint']}"
            yield ListedPaper(place=_place(line, entry.key), ids=ids_in(fields))
        elif isinstance(entry, ParsingFailedBlock):
            yield ListedPaper(place=line, fault=MALFORMED)


def _plain(value: str) -> str:
    """A value of BibTeX without LaTeX's commands and braces."""
    for pattern, replacement in LATEX:
        value = re.sub(pattern, replacement, value)
    return value


def _place(at: str, key: object) -> str:
    return f"{at}, {printable(str(key))}" if key else at


def _name(field: str) -> str:
    """The name of a field in lowercase, without spaces and hyphens."""
    return re.sub(r"[\W_]", "", field.lower())


def ids_in(fields: Mapping[str, str]) -> tuple[Id, ...]:
    """The ids of an entry, one of each kind, in the order in which they are looked up."""
    by_name = {_name(name): value for name, value in fields.items()}
    texts = [f"{LABELS.get(name, '')}{unquote(html.unescape(by_name[name]))}" for name in FIELDS if name in by_name]

    def first(pattern: re.Pattern[str]) -> re.Match[str] | None:
        return next(filter(None, map(pattern.search, texts)), None)

    ids: list[Id] = []
    if found := first(OPENALEX):
        ids.append(("ids.openalex", found[1].upper()))
    if found := first(S2):
        ids.append(("s2", found[1].lower() if found[1] else f"CorpusId:{found[2]}"))
    if found := first(DOI):
        doi = found[1]
        # The punctuation that follows it in a text.
        while doi[-1] in ".,;:'\"" or doi.count(BRACKETS.get(doi[-1], doi[-1])) < doi.count(doi[-1]):
            doi = doi[:-1]
        ids.append(("doi", doi.lower()))
    if found := first(PUBMED):
        ids.append(("ids.pmid", found[1]))
    if found := first(ARXIV):
        ids.append(("doi", f"10.48550/arxiv.{re.sub(r'[.][a-z]{2}/', '/', found[1].lower())}"))
    return tuple(dict.fromkeys(ids))


@dataclass(frozen=True)
class Register:
    """An API that papers are looked up in."""

    name: str
    refusal: Callable[[Id], str | None]
    """Why an id cannot be looked up there, if it cannot."""
    look_up: Callable[[Sequence[Id]], Iterator[Sequence[Found]]]
    """The works that have the ids, call by call."""


def resolve(papers: Sequence[ListedPaper], register: Register, works: Works) -> Iterator[list[Work]]:
    """Yield the works that papers are, each once, call by call; `works` then has their ids."""
    known = [[each for each in paper.ids if register.refusal(each) is None] for paper in papers]
    for rank in range(max(map(len, known))):
        left = {ids[rank] for ids in known if len(ids) > rank and _work_of(ids, works) is None}
        for answer in register.look_up(sorted(left)):
            found = []
            for work, own, ids in answer:
                if any(each in left and each not in works for each in ids):
                    works.update({each: own for each in ids if each not in works})
                    found.append(work)
            yield found


def _work_of(ids: Sequence[Id], works: Works) -> str | None:
    return next((works[each] for each in ids if each in works), None)


def gather_listed(
    path: Path, register: Register, gathered: Gathered, results: Path, *, dataset: str, is_told: bool = True
) -> None:
    """Gather the papers of a file, and write the tables of the entries that give no work of their own, if it `is_told`.
    Raises `InputError` if the register has none of the papers."""
    papers, works = read_papers(path), dict[Id, str]()
    for batch in progress(resolve(papers, register, works), of="request listed papers", unit="calls"):
        gathered.add(batch)
    if not works:
        raise InputError(f"{register.name} has no paper with any id in {path}; check the ids.")
    rows: list[dict[str, Any]] = []
    firsts: dict[str, str] = {}
    for number, paper in enumerate(papers if is_told else [], start=1):
        work = _work_of(paper.ids, works)
        if work is None or work in firsts:
            reason = _reason(paper, register) if work is None else SAME_WORK
            ids = [f"{name}:{value}" for name, value in paper.ids]
            earlier = firsts.get(work or "")
            rows.append({"entry": number, "place": paper.place, "ids": ids, "reason": reason, "earlier": earlier})
        else:
            firsts[work] = paper.place
    output = path_of(results, "unresolved", dataset=dataset, part=0)
    write_table(output, "unresolved", pa.Table.from_pylist(rows, empty_schema(TABLES["unresolved"])))
    counts = Counter(row["reason"] for row in rows)
    write_omissions(path_of(results, "omissions", stage="corpus", step=f"download-{dataset}-0"), counts)
    if is_told:
        resolved = f"{len(papers) - len(rows):,} of {len(papers):,}"
        report(f"{resolved} entries gave a work; the table unresolved lists the others: {output}")
    for reason, count in counts.items():
        report(f"{count:,}: {reason}")


def _reason(paper: ListedPaper, register: Register) -> str:
    if not paper.ids:
        return paper.fault
    refused = [register.refusal(each) for each in paper.ids]
    if all(refused):
        return str(refused[0])
    kinds = dict.fromkeys(KINDS[name] for (name, _), reason in zip(paper.ids, refused, strict=True) if not reason)
    return f"{register.name} has no work with this {' or '.join(kinds)}"
