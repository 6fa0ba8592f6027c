"""One resource a file. Handlers are module functions from a call to a wire value."""
