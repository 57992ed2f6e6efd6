"""Self-RAG (Asai et al. 2023) in JAX: data, training, retrieval, decoding and evaluation."""

__version__ = "0.1.0"
