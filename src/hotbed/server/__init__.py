"""The node over HTTP: one resource a file, composed in app.py."""
