"""Scope: what belongs to the archive, and by which rule. Pure: no network, no lists of its own.

`scope` judges by one set of settings, `several` where seeds have settings of their own; `scope_of` gives the one that
the settings need. Every refusal names the rule that made it, in the words of the settings.
"""

from archiver.scope.scope import (
    MAX_MANIFESTS,
    PATH_KEPT,
    PRIORITY_GUESS,
    Moved,
    Scope,
    extend,
    hops,
    is_guess,
    priority,
    redirects_in_a_row,
)
from archiver.scope.several import Scopes, scope_of

__all__ = [
    "MAX_MANIFESTS",
    "PATH_KEPT",
    "PRIORITY_GUESS",
    "Moved",
    "Scope",
    "Scopes",
    "extend",
    "hops",
    "is_guess",
    "priority",
    "redirects_in_a_row",
    "scope_of",
]
