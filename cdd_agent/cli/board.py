"""`cdd board`: the runs of a project on this machine."""

import time

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading, print_json, print_text
from cdd_agent.fleet.board_lines import board_shown, line_to_json
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import in_lines


def show_board(invocation: Invocation, *, as_json: bool) -> int:
    project = open_for_reading(invocation)
    board = board_here(project.root, project.tickets.list())
    if as_json:
        print_json(line_to_json(board_shown(board, time.time())))
    else:
        print_text(f"{in_lines(board)}\n")
    return 0
