"""`verify`: read an archive back and name every fault, with its place and a stable code. Start at `collection`."""
