"""`cdd board`: the runs of a project on this machine."""

import time
from argparse import Namespace

from cdd_agent.cli.without_screen import open_project_of, print_json, print_text
from cdd_agent.fleet.board_lines import board_shown, line_to_json
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import in_lines


def show(options: Namespace) -> int:
    project = open_project_of(options)
    board = board_here(project.root, project.tickets.list())
    if options.json:
        print_json(line_to_json(board_shown(board, time.time())))
    else:
        print_text(f"{in_lines(board)}\n")
    return 0
