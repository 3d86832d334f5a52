"""Machine proofs: one file a statement, each with ``prove()``; see ``_template``."""
