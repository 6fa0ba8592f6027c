"""Images: read from where they are, unpacked once into layers, kept by content, removed by last use."""
