//! The turn of the master key on many nodes.
//!
//! The record that hands over the keys is in the database, so all nodes can open everything while
//! the key turns. Each node notes when its settings name the new key.

use fleetcast_core::model::error::Result;
use tokio_postgres::Row;

use crate::cluster::Cluster;

const FINDING: &str = "find the handover of the master key";
const CHANGING: &str = "change the handover of the master key";

const FIND: &str =
    "SELECT value FROM record WHERE store = 'handover' AND space = '' AND key = ''::bytea";
const BEGIN: &str = "INSERT INTO record SELECT 'handover', '', ''::bytea, $1 FROM cluster \
    WHERE master_key_check = $2 ON CONFLICT DO NOTHING RETURNING 1";
const NOTE: &str = "INSERT INTO record VALUES ('handover', 'done', $1, ''::bytea) \
    ON CONFLICT DO NOTHING RETURNING 1";
/// Nodes that served within the last day and have not noted the new key.
macro_rules! behind {
    () => {
        "SELECT name FROM node WHERE beat > clock_timestamp() - interval '1 day' AND NOT EXISTS \
            (SELECT FROM record WHERE store = 'handover' AND space = 'done' AND key = convert_to(node::text, 'UTF8')) \
            ORDER BY name"
    };
}
const BEHIND: &str = behind!();
/// The check of the key and the handover change in one statement: a node whose settings name the
/// old key learns the new key until then, and is refused afterwards.
const END: &str = concat!(
    "WITH behind AS (",
    behind!(),
    "), \
        ended AS (UPDATE cluster SET master_key_check = $1 WHERE NOT EXISTS (SELECT FROM behind) RETURNING 1), \
        removed AS (DELETE FROM record WHERE store = 'handover' AND EXISTS (SELECT FROM ended)) \
    SELECT name FROM behind"
);

impl Cluster {
    /// Returns the record that hands over the master keys, or `None` if no key turns.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used.
    pub fn handover(&self) -> Result<Option<Vec<u8>>> {
        let rows = self.read(FINDING, FIND, &[])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Stores the record that hands over the master keys. Returns false if there is such a record,
    /// or if the installation has another master key than the key with the check `old_check`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::handover`].
    pub fn begin_handover(&self, handover: &[u8], old_check: &[u8]) -> Result<bool> {
        Ok(!self.change(CHANGING, BEGIN, &[&handover, &old_check])?.is_empty())
    }

    /// Notes that the settings of a node, whose id is a UUID in text, name the new master key. Ends
    /// the turn if all nodes that served within the last day have noted that. Returns the names of
    /// the other nodes.
    ///
    /// # Errors
    /// Returns the errors of [`Self::handover`].
    pub fn settle_handover(&self, node: &str, new_check: &[u8]) -> Result<Vec<String>> {
        self.change(CHANGING, NOTE, &[&node.as_bytes()])?;
        Ok(names(&self.change(CHANGING, END, &[&new_check])?))
    }

    /// Returns the names of the nodes that served within the last day and have not noted that their
    /// settings name the new master key.
    ///
    /// # Errors
    /// Returns the errors of [`Self::handover`].
    pub fn nodes_behind(&self) -> Result<Vec<String>> {
        Ok(names(&self.read(FINDING, BEHIND, &[])?))
    }
}

fn names(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.get(0)).collect()
}
