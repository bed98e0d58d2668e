//! Functions of windows, of numbers, of labels and of whole vectors.

pub(crate) mod sums;

pub(crate) mod quantile;

pub(crate) mod over_time;
pub(crate) mod rate;
pub(crate) mod regression;

pub(crate) mod numbers;

pub(crate) mod calendar;

pub(crate) mod absent;
pub(crate) mod histogram;
pub(crate) mod relabel;
pub(crate) mod sorting;
