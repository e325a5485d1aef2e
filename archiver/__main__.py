"""`python -m archiver` is the command `archiver`."""

from archiver.cli import main

if __name__ == "__main__":
    main()
