"""The way out of a sandbox: a broker process that accepts what is dialled inside, and the node's handle on it."""
