//! Request heads: where one ends, and how it is read.
