"""One exchange with one server, byte for byte as it crossed the wire."""
