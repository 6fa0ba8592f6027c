"""What client and node say to each other: frozen dataclasses and one route table."""
