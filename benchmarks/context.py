"""Measure if a model sees the code that a change is about: `python -m
benchmarks.context FOLDER...`

Each folder is a clone of a real project with its history. Some of its commits become
jobs: the project before the commit, and the commit's message, without paths, as the
text. The places to find are the lines of source that the commit changed; for added
lines, the line before or after them. Tests, examples and pages do not count either way.
A message counts once, even if two branches have it. With `--aider PYTHON`, an
interpreter that has aider-chat, its repository map gets the same jobs. Without folders,
only the cost is measured, on a generated project of 10,000 files.
"""

import argparse
import hashlib
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

import psutil

from cdd_agent.context.places import RankedFile, sort_places
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.walk import Kind, walk
from cdd_agent.project.subjects import is_test_file

LOOKED_AT = 1_500
"""Newest commits of a project among which jobs are chosen."""
SIZES = (4_000, 8_000, 16_000)
"""Tokens that may be shown."""
OUTLINE, LARGE_OUTLINE, LARGE = 2_000, 4_000, 500
"""Tokens of an outline, and of one for a project of more than `LARGE` files."""
CODE = set(
    "py pyi js jsx mjs cjs ts tsx mts go rs c h cc cpp hpp java"  # noqa: SIM905
    " rb php cs kt swift scala vue svelte".split()
)
ASIDE = re.compile(
    r"(?:^|/)(?:t|tests?|specs?|__tests__|testing|examples?|samples?|docs?|docs_src|bench(?:marks?|es)?|fixtures?"
    r"|testdata|playground|vendor|deps|third_party|node_modules|dist|\.github)/|[._-](?:test|spec|bench)\.\w+$"
    r"|_test\.go$|\.min\.js$|\.d\.ts$|\.pb\.go$|_pb2\.py$"
)
CHORE = re.compile(
    r"^(?:merge|bump|release|revert|chore|build|ci|docs?|style|fmt|version|prepare|\d+\.\d+|v\d+\.\d+)\b|\bdocs?\b"
    r"|changelog|typo|spelling|misspel|docstring|comment|licen[cs]e|copyright|lint|format(?:ting)?\b|warning"
    r"|dependabot|whitespace|typing|python [23]|\bpy3|simplif|clean ?up",
    re.IGNORECASE,
)
"""Messages of commits that would be no step of a plan, or that do not name their
subject.
"""
_ENDINGS = "|".join(sorted(CODE | {"md", "json", "toml", "yaml", "yml"}))
PATHS = re.compile(rf"\S*/\S+|\b[\w-]+\.(?:{_ENDINGS})\b|#\d+")
TRAILERS = re.compile(
    r"^(?:[\w-]+-by|Cc|Fixes|Closes|Refs|PR-URL|Change-Id|Reviewed-on)\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", re.MULTILINE)
WORDS = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])")
FILES, FOLDERS, NAMES, CHANGED = 10_000, 400, 20_000, 10
"""Sizes of the generated project."""
AIDER = """
import json, re, sys
from pathlib import Path
from aider.io import InputOutput
from aider.repomap import RepoMap
class Model:
    def token_count(self, text):
        return -(-len(text.encode()) // 4)
root, asked = sys.argv[1], json.load(sys.stdin)
files = [str(Path(root, path)) for path in asked["files"]]
words = set(re.split(r"\\W+", asked["text"]))
named = {
    path for path in asked["files"]
    if Path(path).name in asked["text"] or Path(path).stem in words
}
found = RepoMap(
    map_tokens=asked["tokens"],
    root=root,
    main_model=Model(),
    io=InputOutput(pretty=False, yes=True),
)
tags = found.get_ranked_tags([], files, named, words)
order = list(dict.fromkeys(tag[0] for tag in tags))
mapped = found.get_ranked_tags_map_uncached([], files, asked["tokens"], named, words)
text = mapped or ""
print("ANSWER" + json.dumps({"order": order, "map": text}))
"""


@dataclass(frozen=True)
class Job:
    """A commit whose places are searched from its message."""

    commit: str
    message: str
    changed: dict[str, list[tuple[int, int]]]
    """By source file: the lines that the commit changed, in the old version. For added
    lines, the lines after and before them: either shows the place.
    """
    others: list[str]
    """Its tests, pages and the like, which do not count either way."""

    @property
    def text(self) -> str:
        return PATHS.sub(" ", self.message)


def tokens(text: str) -> int:
    """Estimate four bytes per token, the average of code."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(
        "utf-8", "replace"
    )


def jobs(clone: Path, most: int) -> list[Job]:
    """Return some fitting commits of a project at even distances, oldest first."""
    log = git(
        clone,
        "log",
        f"--max-count={LOOKED_AT}",
        "--no-merges",
        "--format=%H%x00%B%x01",
        "HEAD",
    )
    entries = [entry.strip().split("\0") for entry in log.split("\1") if entry.strip()]
    fitting = [entry for entry in entries if not CHORE.search(entry[1].split("\n")[0])]
    # by message: a fix in two branches is one job
    job_by_title: dict[str, Job] = {}
    for commit, message in fitting[:: max(1, len(fitting) // (most * 4))]:
        if job := read_job(clone, commit, TRAILERS.sub("", message).strip()):
            job_by_title.setdefault(job.message.split("\n")[0].partition(" (#")[0], job)
    many = min(most, len(job_by_title))
    return [
        list(job_by_title.values())[len(job_by_title) * at // many]
        for at in range(many)
    ][::-1]


def read_job(clone: Path, commit: str, message: str) -> Job | None:
    """None if the commit is no job: it changes no source, or very much, or its message
    is too short.
    """
    if len(set(re.findall(r"[A-Za-z]{3,}", PATHS.sub(" ", message)))) < 4:
        return None
    diff = git(
        clone,
        "show",
        "--format=",
        "--unified=0",
        "--no-renames",
        "--no-ext-diff",
        "--no-color",
        commit,
    )
    changed: dict[str, list[tuple[int, int]]] = {}
    others: set[str] = set()
    for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        before = re.search(r"^--- a/(.+)$", part, re.MULTILINE)
        # new, or deleted
        if before is None or re.search(r"^\+\+\+ /dev/null$", part, re.MULTILINE):
            continue
        path = before[1].rstrip("\t")
        if (
            PurePosixPath(path).suffix[1:] not in CODE
            or ASIDE.search(path)
            or is_test_file(PurePosixPath(path))
        ):
            others.add(path)
            continue
        hunks = [
            (int(match[1]), 1 if match[2] is None else int(match[2]))
            for match in HUNK.finditer(part)
        ]
        if hunks:  # not only its mode
            changed[path] = [
                (start, start + count - 1) if count else (start + 1, start)
                for start, count in hunks
            ]
    places = sum(map(len, changed.values()))
    return (
        Job(commit, message, changed, sorted(others))
        if 1 <= len(changed) <= 8 and places <= 40
        else None
    )


def lines_of(root: Path, path: str) -> list[str]:
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []


@dataclass
class Shown:
    """Lines of files that fit into a number of tokens."""

    room: int
    lines: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(
        self, path: str, texts: Sequence[str], first: int, last: int, name: str = ""
    ) -> None:
        """Add lines of a file, with a heading, if they fit. Lines that are already
        shown cost nothing.
        """
        fresh = [
            number
            for number in range(first, min(last, len(texts)) + 1)
            if number not in self.lines[path]
        ]
        cost = tokens(
            f"{path}:{first}-{last} {name}\n"
            + "".join(f"{texts[number - 1]}\n" for number in fresh)
        )
        if fresh and cost <= self.room:
            self.room -= cost
            self.lines[path].update(fresh)

    def share(self, job: Job) -> float:
        """Return the shown share of a job's places: the mean share of lines, with equal
        weight for each place.
        """
        return statistics.fmean(
            (
                statistics.fmean(
                    line in self.lines[path] for line in range(first, last + 1)
                )
                if first <= last
                else not self.lines[path].isdisjoint((first, last))
            )
            for path, places in job.changed.items()
            for first, last in places
        )


def excerpts(root: Path, ranked: Sequence[RankedFile], room: int) -> Shown:
    shown, texts = Shown(room), dict[str, list[str]]()
    for file, place in sort_places(ranked):
        if file.path not in texts:
            texts[file.path] = lines_of(root, file.path)
        shown.add(file.path, texts[file.path], place.first, place.last, place.name)
        if shown.room < 10:
            break
    return shown


def whole_files(root: Path, order: Iterable[str], room: int) -> Shown:
    shown = Shown(room)
    for path in order:
        texts = lines_of(root, path)
        shown.add(path, texts, 1, len(texts))
        if shown.room < 100:
            break
    return shown


def counted(root: Path, paths: Iterable[str]) -> dict[str, Counter[str]]:
    code = [path for path in paths if PurePosixPath(path).suffix[1:] in CODE]
    return {
        path: Counter(
            word.lower()
            for word in WORDS.findall("\n".join([path, *lines_of(root, path)]))
        )
        for path in code
    }


def by_words(files: dict[str, Counter[str]], text: str) -> list[str]:
    """Rank whole files by BM25."""
    asked = {word.lower() for word in WORDS.findall(text)}
    lengths = {path: words.total() for path, words in files.items()}
    average = statistics.fmean(lengths.values()) if lengths else 1
    holding = {word: sum(word in words for words in files.values()) for word in asked}
    rarity = {
        word: math.log1p((len(files) - count + 0.5) / (count + 0.5))
        for word, count in holding.items()
    }
    scores = {
        path: sum(
            rarity[word]
            * words[word]
            * 2.2
            / (words[word] + 1.2 * (0.25 + 0.75 * lengths[path] / average))
            for word in asked
            if word in words
        )
        for path, words in files.items()
    }
    return sorted(
        (path for path in scores if scores[path]), key=lambda path: -scores[path]
    )


def by_aider(
    python: Path, root: Path, files: Sequence[str], text: str, room: int
) -> tuple[list[str], str]:
    asked = json.dumps({"files": list(files), "text": text, "tokens": room})
    result = subprocess.run(
        [str(python), "-c", AIDER, str(root)],
        input=asked.encode(),
        capture_output=True,
        cwd=root,
        check=False,
    )
    _, marker, answer = result.stdout.decode().rpartition("ANSWER")
    if not marker:
        sys.exit(f"aider: {result.stderr.decode()[-500:]}")
    parsed = json.loads(answer)
    return parsed["order"], parsed["map"]


def outlined(ranked: Sequence[RankedFile], room: int) -> set[str]:
    """Return the files in an outline of `room` tokens, each with a few of its
    definitions.
    """
    named = set()
    for file in ranked:
        names = list(dict.fromkeys(place.name for place in file.places if place.name))
        room -= tokens(f"{file.path}: {', '.join(names[:2])}\n")
        if room < 0:
            break
        named.add(file.path)
    return named


def reciprocal(order: Sequence[str], job: Job) -> float:
    asked = (path for path in order if path not in job.others)
    return next(
        (1 / rank for rank, path in enumerate(asked, 1) if path in job.changed), 0.0
    )


class Figures:
    """Mean values by method and measure."""

    def __init__(self) -> None:
        self.seen: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, who: str, what: str, value: float) -> None:
        self.seen[who, what].append(value)

    def __str__(self) -> str:
        people = list(dict.fromkeys(who for who, _ in self.seen))
        rows = [f"{'':32}" + "".join(f"{who:>12}" for who in people)]
        for what in dict.fromkeys(what for _, what in self.seen):
            means = [
                (
                    statistics.fmean(self.seen[who, what])
                    if (who, what) in self.seen
                    else None
                )
                for who in people
            ]
            rows.append(
                f"{what:32}"
                + "".join(
                    f"{'-' if mean is None else f'{mean:.2f}':>12}" for mean in means
                )
            )
        return "\n".join(rows)


def try_job(
    root: Path, job: Job, project: ProjectMap, aider: Path | None, figures: Figures
) -> dict[str, object]:
    begun = time.perf_counter()
    project.update()
    figures.add("ours", "seconds for an update", time.perf_counter() - begun)
    project.rank(Query(job.text))
    begun = time.perf_counter()
    ranked = project.rank(Query(job.text))
    figures.add("ours", "seconds for a warm question", time.perf_counter() - begun)
    order = [file.path for file in ranked]
    files = git(root, "-c", "core.quotePath=false", "ls-files").split("\n")[:-1]
    plain = by_words(counted(root, files), job.text)
    share = {}
    for size in SIZES:
        share[size] = excerpts(root, ranked, size).share(job)
        figures.add("ours", f"places shown in {size:,} tokens", share[size])
        figures.add(
            "BM25",
            f"places shown in {size:,} tokens",
            whole_files(root, plain, size).share(job),
        )
        best = sorted(job.changed, key=lambda path: len(lines_of(root, path)))
        figures.add(
            "best files",
            f"places shown in {size:,} tokens",
            whole_files(root, best, size).share(job),
        )
    figures.add("ours", "mean reciprocal rank", reciprocal(order, job))
    figures.add("BM25", "mean reciprocal rank", reciprocal(plain, job))
    kept = project.rank(Query(job.message))
    figures.add(
        "ours", "the same, paths kept", reciprocal([file.path for file in kept], job)
    )
    outlines = [(OUTLINE, "files in an outline of 2,000")]
    if len(files) > LARGE:
        outlines.append((LARGE_OUTLINE, "of 4,000, over 500 files"))
    for size, what in outlines:
        named = outlined(ranked, size)
        figures.add(
            "ours", what, statistics.fmean(path in named for path in job.changed)
        )
        if aider is not None:
            order_of_it, text = by_aider(aider, root, files, job.text, size)
            figures.add(
                "aider",
                what,
                statistics.fmean(f"{path}:" in text for path in job.changed),
            )
            if size == OUTLINE:
                figures.add(
                    "aider", "mean reciprocal rank", reciprocal(order_of_it, job)
                )
                for room in SIZES:
                    shown = whole_files(root, order_of_it, room).share(job)
                    figures.add("aider", f"places shown in {room:,} tokens", shown)
    ranks = {
        path: order.index(path) + 1 if path in order else None for path in job.changed
    }
    return {
        "project": root.name,
        **asdict(job),
        "share": share,
        "ranks": ranks,
        "order": order[:8],
    }


def measure_quality(
    clones: Sequence[Path], commits: int, aider: Path | None, details: Path | None
) -> None:
    figures, done = Figures(), list[dict[str, object]]()
    for clone in clones:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / clone.name
            subprocess.run(
                [
                    "git",
                    "clone",
                    "-q",
                    "--shared",
                    "--no-checkout",
                    str(clone),
                    str(root),
                ],
                check=True,
            )
            chosen, project = jobs(clone, commits), None
            for job in chosen:
                git(
                    root, "checkout", "--quiet", "--force", "--detach", f"{job.commit}^"
                )
                project = project or ProjectMap(root)
                done.append(try_job(root, job, project, aider, figures))
            if project is not None:
                project.close()
        print(f"{clone.name}: {len(chosen)} commits", flush=True)
    print(f"\n{len(done)} commits of {len(clones)} projects\n{figures}")
    if details is not None:
        details.write_text(
            json.dumps(
                {
                    "jobs": done,
                    "seen": [[*key, seen] for key, seen in figures.seen.items()],
                }
            )
        )


def make_project(root: Path) -> None:
    """Create files of about 100 lines. Names are as frequent as in real code: a few
    very frequent.
    """
    choose = random.Random(1)
    words = [
        f"{choose.choice('bcdfghklmnprstvw')}{choose.choice('aeiou')}"
        f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}er"
        for n in range(2_000)
    ]
    names = [f"{choose.choice(words)}_{choose.choice(words)}" for _ in range(NAMES)]

    def name() -> str:
        return names[int(NAMES * choose.random() ** 4)]

    (root / ".cdd").mkdir()
    for number in range(FILES):
        folder = root / f"package_{number % 40}" / f"part_{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            "import os",
            (
                f"from part_{choose.randrange(FOLDERS)} import"
                f" module_{choose.randrange(FILES)}"
            ),
            "",
        ]
        for _ in range(8):
            lines += [
                f"def {name()}(self, {name()}):",
                f'    """{" ".join(choose.choices(words, k=8))}."""',
            ]
            lines += [
                f"    {name()} = self.{name()}({name()}, {name()})" for _ in range(8)
            ]
            lines += ["    return None", ""]
        (folder / f"module_{number}.py").write_text("\n".join(lines))
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)


def read_and_hash(root: Path) -> None:
    for entry in walk(root):
        if entry.kind is Kind.FILE:
            with open_file(root / entry.text) as file:
                hashlib.sha1(file.read(), usedforsecurity=False).digest()


def seconds(work: Callable[[], object]) -> float:
    """Return processor seconds of this process and its ended children, so that other
    programs on the machine do not count.
    """
    begun = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - begun


def measure_cost() -> None:
    def used() -> float:
        return float(psutil.Process().memory_info().rss) / 2**20

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_project(root)
        plain = min(seconds(lambda: read_and_hash(root)) for _ in range(3))
        before, project = used(), ProjectMap(root)
        first = seconds(project.update)
        print(
            f"{FILES:,} files indexed: {first:.2f} s, {first / plain:.1f} times reading"
            f" and hashing ({plain:.2f} s)"
        )
        for number in range(CHANGED):
            path = (
                root
                / f"package_{number % 40}"
                / f"part_{number % FOLDERS}"
                / f"module_{number}.py"
            )
            path.write_text(path.read_text() + "\ndef fresh_name(): pass\n")
        print(
            f"after {CHANGED} changes: {seconds(project.update):.2f} s (processor time,"
            " as all of these)"
        )
        question = Query(
            "The fresh name is not returned when self has no baaer, and os is imported"
            " twice"
        )
        times = [seconds(lambda: project.rank(question)) for _ in range(3)]
        print(f"a question: {times[0]:.2f} s, again: {min(times):.2f} s")
        most = used()
        project.close()
        print(
            f"memory: {most - before:.0f} MiB more at the most, {used() - before:.0f}"
            " MiB more when closed"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--commits", type=int, default=10, help="of each project, at most"
    )
    parser.add_argument("--aider", type=Path, metavar="PYTHON")
    parser.add_argument(
        "--details",
        type=Path,
        metavar="FILE",
        help="write each job's outcome there, as JSON",
    )
    options = parser.parse_args()
    if options.folders:
        measure_quality(
            options.folders, options.commits, options.aider, options.details
        )
    else:
        measure_cost()


if __name__ == "__main__":
    main()
