"""`python -m dragoman` is the program `dragoman`."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
