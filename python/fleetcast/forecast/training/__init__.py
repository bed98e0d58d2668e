"""Training: from sets of real data to models that ship. Needs the extra `train`."""
