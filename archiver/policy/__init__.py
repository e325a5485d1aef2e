"""Decisions: scope, robots.txt, traps, schedule, limits, throttle, backoff, retry. Pure: time is an argument."""
