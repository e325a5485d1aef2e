"""The user's Chromium, steered by its DevTools protocol."""
