"""Replay a commit of another project as a step, and as steps that only seem to be it.

    python -m tests.verification.replays REPOSITORY COMMIT [--verify COMMAND] [--whole]

The repository is a clone that may be changed. A scripted model gives the code of the
commit, and then variants of it: a hunk less, a test emptied, skipped, weakened or
removed, a setting that hides a test. Only the commit itself may pass. By default the
tests of the commit are there before the step; with `--whole` the step writes them.
Without `--verify`, cdd finds the command by itself.
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, yaml

from tests.verification.replays_faults import Hiding, hide_test, spoil_tests

_TEST_FILE = re.compile(r"(^|/)(tests?|spec)(/|\.|_)|_test\.|\.(test|spec)\.|/test_")
_CODE_FILE = re.compile(r"\.(py|js|mjs|cjs|ts|go|rs)$")
_SLUG = "feature-replay"


class Commit(Struct, frozen=True):
    """The files of a commit, each before and after it."""

    subject: str
    code: dict[str, tuple[str, str]]
    tests: dict[str, tuple[str, str]]


class Variant(Struct, frozen=True):
    """A reply to the step."""

    name: str
    kind: str
    files: dict[str, str]
    hiding: Hiding | None = None

    @property
    def reply(self) -> str:
        blocks = [_fence(path, text) for path, text in self.files.items()]
        if self.hiding is not None:
            blocks.append(self.hiding.block)
        return "\n\n".join(["Here it is.", *blocks]) + "\n"


class Outcome(Struct, frozen=True):
    """How a variant ended."""

    variant: str
    status: str
    verification: str
    reason: str
    command: str
    notices: bool | None
    """True if the check fails in the tree that the variant makes."""
    seconds: float

    @property
    def is_proved(self) -> bool:
        return self.status == "completed" and self.verification == "passed"

    @property
    def is_wrong(self) -> bool:
        """True for a right commit without proof, and for a faulty one with it. What no
        test notices may pass.
        """
        if self.variant == "right":
            return not self.is_proved
        is_excused = self.variant.startswith("reverted") and self.notices is False
        return self.is_proved and not is_excused


class Repository(Struct, frozen=True):
    """A clone in which steps are replayed."""

    root: Path

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=r", "-c", "user.email=r@r", *arguments]
        done = subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout

    def text(self, revision: str, path: str) -> str:
        try:
            return self.git("show", f"{revision}:{path}")
        except subprocess.CalledProcessError:
            return ""

    def read(self, sha: str) -> Commit:
        paths = self.git("diff", "--name-only", f"{sha}^", sha).split()
        code = {}
        tests = {}
        for path in paths:
            if not _CODE_FILE.search(path):
                continue
            versions = self.text(f"{sha}^", path), self.text(sha, path)
            if _TEST_FILE.search(path):
                tests[path] = versions
            else:
                code[path] = versions
        subject = self.git("log", "-1", "--format=%s", sha).strip()
        return Commit(subject, code, tests)

    def prepare(self, sha: str, files: dict[str, str]) -> None:
        """Put the tree at the parent of a commit, with these files, all committed."""
        self.git("checkout", "-q", "-f", "--detach", f"{sha}^")
        self.git("clean", "-q", "-f", "-d")
        shutil.rmtree(self.root / ".cdd", ignore_errors=True)
        for path, text in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "-A", "-f", *files)
        self.git("commit", "-q", "-m", "The state before the step")


class Replay(Struct, frozen=True):
    """A commit as a step of a project."""

    repository: Repository
    sha: str
    commit: Commit
    verify: str
    is_test_first: bool

    def variants(self) -> Iterator[Variant]:
        after = {path: new for path, (_, new) in self.commit.code.items()}
        tests = {path: new for path, (_, new) in self.commit.tests.items()}
        own = {} if self.is_test_first else tests
        yield Variant("right", "right", after | own)
        for path, (old, new) in self.commit.code.items():
            for number, text in enumerate(_reverted(old, new), 1):
                name = f"reverted {path}#{number}"
                yield Variant(name, "reverted", after | own | {path: text})
        for path, (old, new) in self.commit.tests.items():
            known = new if self.is_test_first else old
            for kind, name, text in spoil_tests(path, known, new, old):
                yield Variant(name, kind, after | own | {path: text})
            before = {path: text for path, (text, _) in self.commit.code.items()}
            for hiding in hide_test(self.repository.root, path, known, old):
                yield Variant(f"{hiding.name} + right", "hidden", after | own, hiding)
                if self.is_test_first:
                    first = next(iter(before))
                    remark = {first: before[first] + _REMARK[Path(first).suffix]}
                    name = f"{hiding.name} + nothing"
                    yield Variant(name, "undone", before | remark, hiding)

    def play(self, variant: Variant) -> Outcome:
        known = {path: new for path, (_, new) in self.commit.tests.items()}
        self.repository.prepare(
            self.sha,
            (known if self.is_test_first else {}) | self._ticket(variant),
        )
        started = time.monotonic()
        command = [Path(sys.executable).with_name("cdd"), "exec", _SLUG, "--yes"]
        command += ["--trust", "--max-attempts", "1", "--json"]
        done = subprocess.run(
            command,
            cwd=self.repository.root,
            env=_environment(self.repository.root),
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - started
        events = [json.loads(line) for line in done.stdout.splitlines()]
        ends = [each for each in events if each.get("event") == "step_finished"]
        end = ends[-1] if ends else {}
        evidence = end.get("evidence") or {}
        if not ends:
            end = {"status": "no end", "error": (done.stdout + done.stderr)[-300:]}
        return Outcome(
            variant.name,
            end["status"],
            end.get("verification") or "",
            end.get("error") or end.get("reason") or "",
            json.dumps(evidence),
            self._notices(variant),
            seconds,
        )

    def _notices(self, variant: Variant) -> bool | None:
        if not self.verify or not variant.name.startswith("reverted"):
            return None
        self.repository.prepare(
            self.sha,
            {path: new for path, (_, new) in self.commit.tests.items()} | variant.files,
        )
        done = subprocess.run(
            self.verify,
            shell=True,
            cwd=self.repository.root,
            env=_environment(self.repository.root),
            capture_output=True,
        )
        return bool(done.returncode)

    def _ticket(self, variant: Variant) -> dict[str, str]:
        files = [*self.commit.code, *self.commit.tests]
        check = f"**Verify:** `{self.verify}`\n" if self.verify else ""
        listed = "\n".join(f"- `{path}`" for path in files)
        plan = (
            f"# Plan: Replay\n\n### Step 1: The change\n**Description:** "
            f"{self.commit.subject}\n{check}**Files Affected:**\n{listed}\n"
        )
        spec = {
            "title": "Replay",
            "type": "feature",
            "description": self.commit.subject,
            "acceptance_criteria": [self.commit.subject],
        }
        script = {"replies": [{"reply": variant.reply}]}
        return {
            ".cdd/config.yaml": "model: script:script.yaml\n",
            "script.yaml": yaml.encode(script).decode(),
            f"tickets/{_SLUG}/spec.yaml": yaml.encode(spec).decode(),
            f"tickets/{_SLUG}/plan.md": plan,
        }


_REMARK = {
    ".py": "\n# done\n",
    ".js": "\n// done\n",
    ".go": "\n// done\n",
    ".rs": "\n// done\n",
}


def _fence(path: str, text: str) -> str:
    return f"``````text:{path}\n{text.rstrip(chr(10))}\n``````"


def _reverted(old: str, new: str) -> Sequence[str]:
    """Return the new text once for each hunk, without that hunk. A single hunk leaves
    the old text.
    """
    before, after = old.splitlines(True), new.splitlines(True)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    texts = []
    for _, i1, i2, j1, j2 in (op for op in matcher.get_opcodes() if op[0] != "equal"):
        texts.append("".join([*after[:j1], *before[i1:i2], *after[j2:]]))
    return texts


def _environment(root: Path) -> dict[str, str]:
    path = os.pathsep.join([f"{root}/.venv/bin", os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _sample(variants: Sequence[Variant], seed: int) -> list[Variant]:
    """Return the right one, one with a hunk less, and two of other kinds."""
    kinds: dict[str, list[Variant]] = {}
    for variant in variants:
        kinds.setdefault(variant.kind, []).append(variant)
    chosen = {kind: same[seed % len(same)] for kind, same in kinds.items()}
    always = [chosen.pop(kind) for kind in ("right", "reverted")]
    others = [*chosen.values()]
    start = seed % len(others)
    return [*always, *[*others[start:], *others[:start]][:2]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("commit")
    parser.add_argument("--verify", default="", help="the step's own check")
    parser.add_argument("--whole", action="store_true", help="the step writes tests")
    parser.add_argument("--only", default="", help="variants whose names begin so")
    parser.add_argument("--sample", action="store_true", help="four variants")
    arguments = parser.parse_args()
    repository = Repository(arguments.repository.resolve())
    commit = repository.read(arguments.commit)
    replay = Replay(
        repository, arguments.commit, commit, arguments.verify, not arguments.whole
    )
    variants = [*replay.variants()]
    if arguments.sample:
        variants = _sample(variants, int(arguments.commit[:6], 16))
    wrong = 0
    for variant in variants:
        if not variant.name.startswith(arguments.only):
            continue
        outcome = replay.play(variant)
        wrong += outcome.is_wrong
        mark = "WRONG" if outcome.is_wrong else "ok"
        where = f"{repository.root.name} {arguments.commit[:8]}"
        mode = "whole" if arguments.whole else "first"
        print(
            f"{mark}\t{where}\t{mode}\t{outcome.variant}\t{outcome.status}"
            f"\t{outcome.verification}\t{outcome.seconds:.0f}s\t{outcome.notices}"
            f"\t{outcome.reason}\t{outcome.command[:300]}",
            flush=True,
        )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
