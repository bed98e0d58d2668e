//! The store of many machines: PostgreSQL keeps small and ordered data, and an object store keeps
//! segments. Any number of processes on any number of hosts share it. No process keeps data that
//! another process could not read.
//!
//! `docs/decisions/0045-postgresql-and-objects.md` explains the choice of these two. It also names
//! the promises that `fleetcast_core::storage::store::Store` needs from each.

mod failure;

mod address;
mod identity;

mod cache;
mod objects;

mod seen;

mod connection;
mod pool;
mod process;
mod watch;

mod lone;

mod partitions;

mod cluster;

mod belonging;
mod schema;

mod handover;

mod changes;
mod records;
mod replica;

mod store;

mod planes;

mod held;
mod nodes;
mod sweep;

pub use address::Durability;
pub use cluster::{Cluster, Settings};
pub use nodes::{Node, Permissions, PrimaryFacts};
pub use planes::{ClusterPlanes, PlaneRevision};
pub use records::ClusterRecords;
pub use replica::Replica;
pub use schema::InstallOutcome;
pub use sweep::SweepCounts;
