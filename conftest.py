"""Hypothesis: `dev` by default, `ci` where CI is set, `nightly` by HYPOTHESIS_PROFILE."""

import os

from hypothesis import settings

# Machines are shared and first calls slow: a deadline per example would measure them, not us.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=5_000)
default = "ci" if "CI" in os.environ else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", default))
