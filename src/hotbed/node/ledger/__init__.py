"""What happened on this node, kept so that it can be looked up, replayed and graded again."""
