"""Completion in bash. Unlike click's own it offers URLs, and writes them so that bash can read them.

Bash takes each part between colons for a word of its own and replaces only the last, and `&` or `?` in a URL mean
something to it. So the whole line is read here, and what is offered is cut and escaped.
"""

import os
import re
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

_SCRIPT = """%(complete_func)s() {
    local IFS=$'\\n' type value
    while IFS=, read -r type value; do
        if [[ $type == dir ]]; then compopt -o dirnames
        elif [[ $type == file ]]; then compopt -o default
        else COMPREPLY+=("$value"); fi
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        COMP_BREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_SPECIAL = re.compile(r"[^\w@%+=:,./~-]", re.ASCII)  # characters that mean something to a shell


class BashCompletion(BashComplete):
    """What bash offers after Tab."""

    source_template = _SCRIPT
    _before = ""  # what stands before the part that bash replaces
    _quoted = False

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at the cursor, and that word so far."""
        line, word, breaks = (os.environ.get(name, "") for name in ("COMP_LINE", "COMP_WORD", "COMP_BREAKS"))
        words = split_arg_string(line)
        *others, last = [*words, ""] if not word and line[-1:].isspace() else words or [""]
        self._quoted = word[:1] in ("'", '"') and word != ""
        typed = last.partition("=")[2] if last.startswith("-") else last
        self._before = typed[: typed.rfind(":") + 1] if ":" in breaks and not self._quoted else ""
        return others[1:], last

    def format_completion(self, item: "CompletionItem[Any]") -> str:
        """Return what bash writes in place of the word at the cursor."""
        value = str(item.value).removeprefix(self._before)
        return f"{item.type},{value if self._quoted else _SPECIAL.sub(_escaped, value)}"


def _escaped(found: "re.Match[str]") -> str:
    return "\\" + found[0]


def register() -> None:
    """Use this completion in place of click's."""
    add_completion_class(BashCompletion)
