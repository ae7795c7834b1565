"""Processes of `cdd` that are disturbed at random times, and what they may end with."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.soak.disk import limit_files
from tests.soak.world import World

CDD = (sys.executable, "-m", "cdd_agent")

PATIENCE = 240.0
"""Seconds after which a process counts as hanging."""
_INTERNAL_ERROR = re.compile(r'File "[^"]*/cdd_agent/|Internal error in cdd')
"""An error of cdd itself. Checks print tracebacks, too."""


class Disturbance(StrEnum):
    """A way to disturb a process."""

    KILL = "SIGKILL"
    KILL_GROUP = "SIGKILL to the group"
    INTERRUPT = "SIGINT"
    TERMINATE = "SIGTERM"
    SMALL_FILES = "file size limit"


RATES = {
    Disturbance.KILL: 0.25,
    Disturbance.KILL_GROUP: 0.10,
    Disturbance.INTERRUPT: 0.10,
    Disturbance.TERMINATE: 0.05,
}
"""The share of processes with each disturbance: one half of all together."""
SMALL_FILES_RATE = 0.25
_CODES = {
    None: (0, 1, 75),
    Disturbance.KILL: (0, 1, 75, -signal.SIGKILL),
    Disturbance.KILL_GROUP: (0, 1, 75, -signal.SIGKILL),
    Disturbance.INTERRUPT: (0, 1, 75, 130, -signal.SIGINT),
    Disturbance.TERMINATE: (0, 1, 75, 130, 143, -signal.SIGTERM),
    # 120: Python could not flush the output, which is such a file, too
    Disturbance.SMALL_FILES: (0, 1, 2, 75, 120),
}
"""The exit codes that are explained. A full disk explains 2 as well."""


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    disturbance: Disturbance | None
    output: Path


@dataclass
class Starter:
    """Starts the processes of a lane, one after the other."""

    world: World
    lane: str
    rng: random.Random
    usual: float = 4.0
    """The seconds that an undisturbed process takes, roughly."""
    started: int = 0

    def run(self, *arguments: str, disturb: bool = True, limit: float = 1.0) -> Ended:
        """Run `cdd` to its end, disturbed or not, and judge the end."""
        self.started += 1
        output = self.world.outputs / f"{self.lane}-{self.started:04}.txt"
        disturbance = self._choose() if disturb else None
        began = time.monotonic()
        with output.open("wb") as file:
            file.write(f"{' '.join(arguments)}\n".encode())
            file.flush()
            process = subprocess.Popen(
                [*CDD, *arguments],
                cwd=self.world.root,
                env=self.world.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.world.count("processes")
        self._disturb(process, disturbance)
        code = self._wait(process, arguments, limit)
        if disturbance is None:
            self.usual += 0.2 * (time.monotonic() - began - self.usual)
        ended = Ended(code, disturbance, output)
        self._judge(ended, began, arguments)
        return ended

    def _choose(self) -> Disturbance | None:
        if not self.world.disk.is_mounted and self.rng.random() < SMALL_FILES_RATE:
            return Disturbance.SMALL_FILES
        value = self.rng.random()
        for disturbance, rate in RATES.items():
            value -= rate
            if value < 0:
                return disturbance
        return None

    def _disturb(
        self, process: subprocess.Popen[bytes], disturbance: Disturbance | None
    ) -> None:
        if disturbance is None:
            return
        if disturbance is not Disturbance.SMALL_FILES:
            delay = self.rng.uniform(0.1, 1.2) * self.usual
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                pass
            else:
                return
        self.world.count(disturbance)
        match disturbance:
            case Disturbance.KILL:
                process.kill()
            case Disturbance.KILL_GROUP:
                os.killpg(process.pid, signal.SIGKILL)
            case Disturbance.INTERRUPT:
                process.send_signal(signal.SIGINT)
            case Disturbance.TERMINATE:
                process.send_signal(signal.SIGTERM)
            case Disturbance.SMALL_FILES:
                limit_files(process.pid)

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        arguments: Sequence[str],
        limit: float,
    ) -> int:
        try:
            return process.wait(PATIENCE * limit)
        except subprocess.TimeoutExpired:
            self.world.find(self.lane, f"hangs: cdd {' '.join(arguments)}")
            process.kill()
            return process.wait()

    def _judge(self, ended: Ended, began: float, arguments: Sequence[str]) -> None:
        text = ended.output.read_text(errors="replace")
        command = f"cdd {' '.join(arguments[:2])} ({ended.output.name})"
        self.world.count(f"exit code {ended.code}")
        codes = _CODES[ended.disturbance]
        was_full = self.world.disk.was_full_since(began)
        if ended.code not in codes and not (was_full and ended.code == 2):
            last = text.strip().splitlines()[-1]
            self.world.find(
                command, f"exit code {ended.code} after {ended.disturbance}: {last}"
            )
        if _INTERNAL_ERROR.search(text):
            last = text.strip().splitlines()[-1]
            self.world.find(command, f"internal error: {last}")
        if "--json" in arguments:
            self._judge_lines(text, command)

    def _judge_lines(self, text: str, command: str) -> None:
        """Report lines of JSON output that are torn, except the last of all."""
        for line in text.splitlines()[1:-1]:
            if not line.startswith("{"):
                continue
            try:
                json.loads(line)
            except ValueError:
                self.world.find(command, f"not JSON: {line[:200]}")
