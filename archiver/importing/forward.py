"""Bytes that are read forward only, and can begin anew: what unpacks a file for a reader of records is no more."""

import io
from abc import abstractmethod


class Forward(io.RawIOBase):
    """A stream whose only seek is to its begin."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """To its begin."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Begin anew."""
        if (offset, whence) != (0, 0):
            raise io.UnsupportedOperation("only its begin can be gone back to")
        self.begin()
        return 0

    @abstractmethod
    def begin(self) -> None:
        """Go to the first byte."""
