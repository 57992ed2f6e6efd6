"""What users hold, checked; and how it becomes batches."""
