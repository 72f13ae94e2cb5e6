"""The scoring method of docs/scoring.md, written from that document alone. A module is a part of the document."""
