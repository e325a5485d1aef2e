"""The words of the model stand in other places too; they must be the same there."""

import re
from importlib.resources import files

from archiver.frontier import database
from archiver.frontier.database import schema_script
from archiver.model import LIFE, Event, ExitCode, Hop, State

SCHEMA = files("archiver.frontier").joinpath("schema.sql").read_text("utf-8")


def test_the_database_knows_the_same_states() -> None:
    found = re.search(r"CHECK\(state IN\(([^)]*)\)\)", database.schema()["table", "urls"])
    assert found is not None
    assert re.findall(r"'(\w+)'", found[1]) == [state.value for state in State]


def test_the_schema_needs_no_writable_schema() -> None:
    """SQLite refuses that in its defensive mode, which is how some systems build it."""
    assert "writable_schema" not in schema_script()


def test_every_state_and_event_has_its_place_in_life() -> None:
    assert {state for state, _ in LIFE} | set(LIFE.values()) == set(State)
    assert {event for _, event in LIFE} == set(Event)
    assert {event for state, event in LIFE if state is not State.WAITING} == {Event.AGAIN}  # nothing else undoes an end


def test_the_database_names_every_hop() -> None:
    found = re.search(r"-- ((?:[A-Z] )+)[A-Z]: how its via led here", SCHEMA)
    assert found is not None
    letters = re.findall(r"\b[A-Z]\b", found[0].partition(":")[0])
    assert sorted(letters) == sorted(hop.value for hop in Hop)


def test_exit_codes() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "DONE": 0,
        "BUG": 1,
        "USAGE": 2,
        "STORAGE": 3,
        "STOPPED": 4,
        "LIMIT": 5,
        "NO_SEED": 6,
        "FAULTS": 7,
        "TROUBLE": 8,
    }
