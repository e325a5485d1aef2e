"""Exchanges with servers, byte for byte as they crossed the wire."""
