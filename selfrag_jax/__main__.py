"""`python -m selfrag_jax COMMAND …`."""

from selfrag_jax.cli import main

raise SystemExit(main())
