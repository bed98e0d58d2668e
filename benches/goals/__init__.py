"""The project's goals for its figures, each as a ratio to a reference in the same run."""
