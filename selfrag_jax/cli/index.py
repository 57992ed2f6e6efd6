"""`python -m selfrag_jax index`: corpus → embeddings → index, with a recall check at the end."""

import time

from selfrag_jax.config import Config


def run(config: Config) -> None:
    """Builds the config's index, or says that it is there, and prints where it is, what it holds and how well it finds.

    Raises UserError for a missing or unfit encoder, corpus or directory.
    """
    from selfrag_jax.retrieval.build import ensure_index, recall_check

    started = time.perf_counter()
    done = ensure_index(config.retrieval)
    seconds = time.perf_counter() - started
    manifest = done.index.manifest
    what = {
        "everything": f"built in {seconds:.1f} s",
        "searcher": f"embeddings reused, searcher built in {seconds:.1f} s",
        "nothing": "up to date, nothing to do",
    }[done.built]
    size = sum(manifest.files.values()) / 1e6
    print(f"index      {done.index.directory}: {what}")
    print(f"passages   {manifest.corpus}")
    print(f"encoder    {manifest.encoder}, {manifest.dim} dimensions")
    print(f"searcher   {_method(done.index)}; {size:.1f} MB on disk")
    recall = recall_check(done.encoder, done.index)
    print(f"recall@5   {recall:.4f} of exact search, over titles drawn from the corpus")


def _method(index) -> str:
    settings = index.manifest.scann
    if index.method == "exact" or settings is None:
        return "exact"
    details = []
    if settings.leaves:
        details.append(f"{settings.leaves_to_search} of {settings.leaves} leaves searched")
    if settings.reorder:
        details.append(f"{settings.reorder} candidates scored exactly")
    return ", ".join([index.method, *details])
