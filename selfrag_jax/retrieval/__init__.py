"""From passages to a searchable index: reading, encoding, indexing, retrieving."""
