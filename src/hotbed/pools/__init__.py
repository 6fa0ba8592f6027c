"""Environment workers with vector semantics: the contract, the client's end of the lanes, and the node's workers."""
