"""The scoring method of docs/scoring.md and tests/reference/method.md, written from these documents alone."""
