"""Segment-level inference: prefix caches, the generation loop, scoring and the beam over segments."""
