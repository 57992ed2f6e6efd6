"""The networks: Llama (the language model) and BERT (the passage encoder), and how their weights come in."""
