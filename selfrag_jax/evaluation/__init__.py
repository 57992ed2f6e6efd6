"""Tasks, metrics, baselines and ablations."""
