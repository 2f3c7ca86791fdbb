"""`python -m jaxfair` is the `jaxfair` command."""

from jaxfair.cli import main

if __name__ == "__main__":
  main()
