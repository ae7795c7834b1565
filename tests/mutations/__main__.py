"""`make test-mutations`: tries every mutation of the table, and fails below the share
that has to be noticed.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutations.running import (
    BadMutation,
    Fate,
    Mutation,
    Tried,
    mutated,
    tried,
    untouched,
)
from tests.mutations.table import MUTATIONS

_ROOT = Path(__file__).resolve().parents[2]
_NEEDED = 0.9


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description=__doc__
    )
    parser.add_argument(
        "words",
        nargs="*",
        help="try only mutations whose file or rule has one of these in it",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--limit",
        type=float,
        default=180.0,
        help="seconds for the tests of one mutation",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="do not run the tests without a mutation first",
    )
    given = parser.parse_args()
    chosen = [
        each
        for each in MUTATIONS
        if not given.words or any(word in str(each) for word in given.words)
    ]
    if not chosen:
        parser.error("no mutation is named so")

    try:
        for mutation in chosen:
            mutated((_ROOT / "cdd_agent" / mutation.file).read_text(), mutation)
    except BadMutation as error:
        return _stop(str(error))
    if not given.trust:
        print(
            f"The tests of {len(chosen)} mutations, without any of them ...", flush=True
        )
        as_it_is = untouched(_ROOT, chosen, given.limit * len(chosen), given.jobs)
        if as_it_is.fate is not Fate.SURVIVED:
            return _stop(
                f"They have to pass before they can show anything:\n{as_it_is.output}"
            )

    start, results = time.monotonic(), dict[Mutation, Tried]()
    with ThreadPoolExecutor(given.jobs) as pool:
        futures = {
            pool.submit(tried, _ROOT, mutation, given.limit): mutation
            for mutation in chosen
        }
        try:
            for future in as_completed(futures):
                mutation, result = futures[future], future.result()
                results[mutation] = result
                print(
                    f"{len(results):>3}/{len(chosen)}  {result.fate.value:<8} "
                    f" {mutation}",
                    flush=True,
                )
                if result.fate is Fate.BROKEN:
                    print(result.output, flush=True)
        finally:  # of a run that is stopped, those that were not begun are not
            pool.shutdown(wait=False, cancel_futures=True)

    killed = sum(result.fate is Fate.KILLED for result in results.values())
    print(
        "\n"
        f"{killed} of {len(chosen)} noticed ({killed / len(chosen):.1%}) in"
        f" {time.monotonic() - start:.0f} s"
    )
    for mutation in (
        mutation for mutation in chosen if results[mutation].fate is not Fate.KILLED
    ):
        print(
            f"{results[mutation].fate.value}: {mutation}\n"
            f"    {mutation.old!r}\n"
            f"    {mutation.new!r}"
        )
    is_broken = any(result.fate is Fate.BROKEN for result in results.values())
    return 1 if is_broken or killed < _NEEDED * len(chosen) else 0


def _stop(why: str) -> int:
    print(why, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
