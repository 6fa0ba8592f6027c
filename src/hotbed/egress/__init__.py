"""What may leave a sandbox: policies as values, and the decisions that follow from them. Pure, without I/O."""
