"""Reads what other programs left of a crawl: their queues and seen-sets, their settings and where their archives are.

Each module knows one program. `source` holds the common values and settings, and `detect` tells the programs apart.
Everything that is read may come from a stranger, so sizes, counts and nesting are bounded.
"""
