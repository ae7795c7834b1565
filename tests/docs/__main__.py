"""Prints how many examples of the docs are executed, read or only shown."""

import sys
from collections import Counter

from tests.docs.examples import Example
from tests.docs.pages import all_pages, blocks_of
from tests.docs.test_blocks import PARSED, PLAIN


def main() -> None:
    blocks: Counter[str] = Counter()
    commands: Counter[str] = Counter()
    links = words = 0
    for page in all_pages():
        links += len(list(page.links))
        words += sum(len(line.split()) for _, line in page.prose)
        for block in page.blocks:
            kind = "executed"
            if block.language in PARSED:
                kind = "read by what reads such a file"
            elif block.language in PLAIN:
                kind = "only shown"
            blocks[block.skip or kind] += 1
    for block in blocks_of("console", "bash"):
        for command in Example.read(block.text).commands:
            commands[block.skip or command.reason or "executed"] += 1
    print_line = sys.stdout.write
    print_line(f"{len(all_pages())} pages, {words:,} words, {links} links\n")
    for title, counts in (("blocks", blocks), ("commands", commands)):
        total = sum(counts.values())
        for kind, count in counts.most_common():
            print_line(f"{count} of {total} {title}: {kind}\n")


if __name__ == "__main__":
    main()
