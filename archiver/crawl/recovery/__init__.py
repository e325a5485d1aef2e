"""Repairs a collection after a crash: adopts stored visits beyond the last commit, and moves the rest to damaged/."""
