"""`cdd board`: the runs of a project on this machine."""

from argparse import Namespace

from cdd_agent.cli.boards import board_as_json
from cdd_agent.cli.without_screen import open_project_of, print_json, print_text
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import in_lines


def show(options: Namespace) -> int:
    project = open_project_of(options)
    board = board_here(project.root, project.tickets.list())
    if options.json:
        print_json({"event": "board_shown", **board_as_json(board)})
    else:
        print_text(f"{in_lines(board)}\n")
    return 0
