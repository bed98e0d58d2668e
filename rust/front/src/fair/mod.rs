//! Turns and shares, so that no owner can take from the others.
