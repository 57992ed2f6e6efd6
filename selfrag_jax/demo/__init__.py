"""The demo's world: facts from PyPI packages, passages, questions and rows written over them, split by entity."""
