//! Tables of an installation, made once.

use fleetcast_core::model::error::{Error, Result};

use crate::belonging::ANOTHER;
use crate::cluster::Cluster;
use crate::failure;
use crate::partitions;

const VERSION: i32 = 2;
const WHAT: &str = "make the tables";

/// Outcome of [`Cluster::install`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The tables were made.
    New,
    /// An installation with the same environment and master key existed.
    Joined,
}

/// The tables. One process at a time makes them; the rest of the text can be repeated. A schema
/// that the URL's options name as `search_path` is created too.
///
/// The ids of the last entry, page and manifest are stored next to their numbers. A read that finds
/// no news thus reads only two rows.
const TABLES: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended('fleetcast', 0));
    DO $$ BEGIN
        IF current_schema() IS NULL THEN EXECUTE format('CREATE SCHEMA %s', current_setting('search_path')); END IF;
    END $$;
    CREATE TABLE IF NOT EXISTS cluster (
        one bool PRIMARY KEY CHECK (one), schema_version int NOT NULL, environment text NOT NULL,
        master_key_check bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS node (
        node uuid PRIMARY KEY, name text NOT NULL, version text NOT NULL, place text NOT NULL,
        beat timestamptz NOT NULL);
    CREATE TABLE IF NOT EXISTS plane (
        plane uuid PRIMARY KEY, wrapped_key bytea, generation bigint NOT NULL DEFAULT 0, manifest bytea,
        compacted bigint NOT NULL DEFAULT 0, retention_seconds bigint NOT NULL DEFAULT 0,
        pages bigint NOT NULL DEFAULT 0, series bigint NOT NULL DEFAULT 0, fields bigint NOT NULL DEFAULT 0,
        manifest_id uuid, page_id uuid,
        fence bigint NOT NULL DEFAULT 0, holder uuid, held_until timestamptz NOT NULL DEFAULT '-infinity')
        WITH (fillfactor = 50);
    CREATE TABLE IF NOT EXISTS head (
        plane uuid PRIMARY KEY, last bigint NOT NULL DEFAULT 0, rows bigint NOT NULL DEFAULT 0,
        vals bigint NOT NULL DEFAULT 0, rejected bigint NOT NULL DEFAULT 0, batches bigint NOT NULL DEFAULT 0,
        log_bytes bigint NOT NULL DEFAULT 0, last_id uuid) WITH (fillfactor = 20);
    CREATE TABLE IF NOT EXISTS import (
        plane uuid, key uuid, position bytea NOT NULL, moved bigint NOT NULL, PRIMARY KEY (plane, key));
    CREATE TABLE IF NOT EXISTS names (
        plane uuid, page bigint, id uuid NOT NULL, page_bytes bytea NOT NULL,
        PRIMARY KEY (plane, page));
    CREATE TABLE IF NOT EXISTS log (
        slot int, plane uuid, seq bigint, id uuid NOT NULL, sealed bytea NOT NULL,
        PRIMARY KEY (plane, seq, slot), UNIQUE (plane, id, slot)) PARTITION BY LIST (slot);
    ALTER TABLE log ALTER sealed SET STORAGE EXTERNAL;
    CREATE TABLE IF NOT EXISTS segment (
        plane uuid, id uuid, fence bigint NOT NULL, bytes bigint, made_of bytea, made_at timestamptz NOT NULL,
        removed_at timestamptz, PRIMARY KEY (plane, id));
    CREATE TABLE IF NOT EXISTS pin (
        pin uuid PRIMARY KEY, plane uuid NOT NULL, since timestamptz NOT NULL, until timestamptz NOT NULL);
    CREATE TABLE IF NOT EXISTS records (name text PRIMARY KEY, version bigint NOT NULL) WITH (fillfactor = 20);
    CREATE TABLE IF NOT EXISTS record (
        store text, space text, key bytea, value bytea NOT NULL, PRIMARY KEY (store, space, key));
";

/// Columns and a table that installations of an earlier release lack. The earlier release goes on
/// beside it, so the version stays. `open_keys` has the ids of the data keys of a plane whose key has
/// turned, the newest last.
///
/// Nodes at work do not wait for this longer than two seconds, for example because of a dump.
const LATER_TABLES: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended('fleetcast', 0));
    SELECT set_config('lock_timeout', '2s', true);
    ALTER TABLE plane ADD COLUMN IF NOT EXISTS open_keys uuid[],
        ADD COLUMN IF NOT EXISTS turned_at timestamptz;
    ALTER TABLE head ADD COLUMN IF NOT EXISTS open_keys uuid[];
    CREATE TABLE IF NOT EXISTS record_change (
        store text, version bigint, id uuid NOT NULL, spaces text[], keys bytea[],
        PRIMARY KEY (store, version));
";

/// A session of an earlier release does not compare keys, so it changes no plane whose key has
/// turned. A trigger makes each append dearer, so there is none before the first turn.
const TRIGGERS: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended('fleetcast', 0));
    SELECT set_config('lock_timeout', '2s', true);
    CREATE OR REPLACE FUNCTION refuse_earlier_release() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'the data key has turned, which this release does not know: upgrade the node';
    END $$;
    CREATE OR REPLACE TRIGGER compares_keys BEFORE UPDATE ON head FOR EACH ROW
        WHEN (OLD.open_keys IS NOT NULL AND current_setting('fleetcast.compares_keys', true) IS DISTINCT FROM 'on')
        EXECUTE FUNCTION refuse_earlier_release();
    CREATE OR REPLACE TRIGGER compares_keys BEFORE UPDATE ON plane FOR EACH ROW
        WHEN (OLD.open_keys IS NOT NULL AND current_setting('fleetcast.compares_keys', true) IS DISTINCT FROM 'on')
        EXECUTE FUNCTION refuse_earlier_release();
";
const HAS_TRIGGERS: &str = "SELECT EXISTS (SELECT FROM pg_trigger \
    WHERE tgrelid = to_regclass('plane') AND tgname = 'compares_keys')";

const INSTALL: &str =
    "INSERT INTO cluster VALUES (true, $1, $2, $3) ON CONFLICT DO NOTHING RETURNING one";
const FIND: &str = "SELECT schema_version, environment, master_key_check, \
    to_regclass('record_change') IS NULL OR NOT EXISTS (SELECT FROM pg_attribute \
        WHERE attrelid = to_regclass('head') AND attname = 'open_keys') FROM cluster";

impl Cluster {
    /// Makes the tables, or joins the existing installation. Its environment and the check of its
    /// master key must equal the arguments.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for another installation, or an error if the database cannot be
    /// used.
    pub fn install(&self, environment: &str, master_key_check: &[u8]) -> Result<InstallOutcome> {
        self.make(TABLES)?;
        self.wait(|pool| async move {
            let connection = pool.own().await?;
            let now = partitions::slot_of(pool.seen.database_now_us());
            for slot in now..=now + partitions::AHEAD {
                partitions::make(&connection, slot).await?;
            }
            connection.keep();
            Ok(())
        })?;
        let rows = self.change(WHAT, INSTALL, &[&VERSION, &environment, &master_key_check])?;
        self.check(environment, &[master_key_check])?;
        Ok(if rows.is_empty() { InstallOutcome::Joined } else { InstallOutcome::New })
    }

    /// Checks that the installation has this environment and a master key with one of these checks,
    /// and the objects if the settings name objects. Objects that cannot be asked are compared with
    /// their first use. Makes the tables that an installation of an earlier release lacks.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for another installation or none, or an error if the database
    /// cannot be used.
    pub fn check<C: AsRef<[u8]>>(&self, environment: &str, key_checks: &[C]) -> Result<()> {
        let rows = self.read("find the installation", FIND, &[])?;
        let row = rows.first().ok_or_else(|| failure::refused(WHAT, "it has no installation"))?;
        let (version, found, check): (i32, String, Vec<u8>) = (row.get(0), row.get(1), row.get(2));
        let fault = if version != VERSION {
            format!(
                "the database holds version {version} of the tables, this program uses {VERSION}"
            )
        } else if found != environment {
            format!(
                "the database belongs to the environment {found:?}, this node to {environment:?}"
            )
        } else if !key_checks.iter().any(|known| known.as_ref() == check) {
            "the database belongs to an installation with another master key".to_owned()
        } else if self.has_other_objects()? {
            ANOTHER.to_owned()
        } else if row.get(3) {
            return self.make(LATER_TABLES);
        } else {
            return Ok(());
        };
        Err(Error::Invalid { message: fault })
    }

    /// Makes the triggers that refuse sessions of an earlier release, unless they are there.
    ///
    /// # Errors
    /// Returns an error if the database cannot be used, or is busy for two seconds.
    pub(crate) fn refuse_earlier_releases(&self) -> Result<()> {
        let rows = self.read(WHAT, HAS_TRIGGERS, &[])?;
        let has_triggers = rows.first().is_some_and(|row| row.get(0));
        if has_triggers { Ok(()) } else { self.make(TRIGGERS) }
    }

    fn make(&self, tables: &'static str) -> Result<()> {
        self.wait(|pool| async move {
            let connection = pool.own().await?;
            let made = connection.run(WHAT, tables).await;
            made.map_err(|failure| failure.of_change(WHAT))?;
            connection.keep();
            Ok(())
        })
    }

    fn has_other_objects(&self) -> Result<bool> {
        match self.has_own_objects() {
            Ok(is_own) => Ok(!is_own),
            // The settings name no objects, or the objects are away.
            Err(Error::Invalid { .. } | Error::Unavailable { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
