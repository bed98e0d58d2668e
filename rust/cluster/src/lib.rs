//! The store of many machines: PostgreSQL keeps what is small and ordered, an object store keeps
//! segments. Any number of processes on any number of hosts share it; none of them keeps anything
//! that another could not read.
//!
//! `docs/decisions/0045-postgresql-and-objects.md` says why these two, and what each promise of
//! `fleetcast_core::storage::store::Store` rests on here.

mod failure;

mod address;
mod identity;

mod cache;
mod objects;

mod connection;
mod pool;
mod process;

mod lone;

mod partitions;

mod cluster;
mod schema;

mod records;
mod replica;

mod store;

mod planes;

mod nodes;
mod sweep;

pub use address::Durability;
pub use cluster::{Cluster, Settings};
pub use nodes::{Facts, Node, Permissions};
pub use planes::ClusterPlanes;
pub use records::Records;
pub use replica::Replica;
pub use schema::Installed;
pub use sweep::Swept;
