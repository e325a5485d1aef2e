"""The cost of a start: `archiver --help` from the first instruction to the last."""

import sys
from functools import partial

from clients import OURS
from measure import as_json, in_turn, measure, spread, table
from plan import FAULTS, Plan, faults

TIMES = 3  # in each round


def measured(plan: Plan) -> dict[str, object]:
    """Start it, and Python alone, in turn."""
    commands = {"python alone": [sys.executable, "-c", ""], OURS: [sys.executable, "-m", "archiver", "--help"]}
    folder = plan.folder / "client"
    starts = {name: partial(measure, command, folder) for name, command in commands.items()}
    runs = in_turn(starts, plan.rounds * TIMES)
    rows = [
        (name, spread([run.wall for run in each]), spread([run.cpu for run in each])) for name, each in runs.items()
    ]
    table("until it has ended", ("", "wall s", "CPU s"), rows)
    return {"runs": as_json(runs), FAULTS: faults(runs)}
