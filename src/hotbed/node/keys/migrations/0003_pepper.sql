-- Of the pepper that the digests of the keys were made with, so that a node with another is told, and not its clients.
CREATE TABLE pepper (
    one INTEGER PRIMARY KEY,
    digest BLOB NOT NULL
);
