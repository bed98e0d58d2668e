//! Planes of fleetcast 0.3.0 and before: their keys opened any plane, and their names had any ids.

use super::sealed::open_names;
use crate::model::error::Result;
use crate::storage::seal::{BlobKind, Sealer, unwrap, unwrap_unbound, wrap};
use crate::storage::store::{NamesPage, Planes, Store};

/// Binds such a plane. Returns false if the plane is bound already.
pub(super) fn bind(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<bool> {
    let (key_file, store) = planes.open_with_key(plane)?;
    if unwrap(master_key, plane, &key_file).is_ok() {
        return Ok(false);
    }
    let (plane_id, data_keys) = unwrap_unbound(master_key, &key_file)?;
    bind_names(&*store, &Sealer::of(&data_keys, plane_id))?;
    // Replace the key last: until then the plane cannot be opened, and it can be bound again.
    planes.replace_key(plane, &key_file, &wrap(master_key, plane, &plane_id, &data_keys)?)
}

/// Seals the pages of names in a store for their places, unless they are sealed so already.
pub(super) fn bind_names(store: &dyn Store, sealer: &Sealer) -> Result<()> {
    let mut after = 0;
    loop {
        let pages = store.names_after(after)?;
        let Some(last) = pages.last() else { return Ok(()) };
        after = last.sequence;
        let unbound = pages.into_iter().filter(|page| open_names(sealer, page).is_err());
        let bound = unbound.map(|page| bound(page, sealer));
        store.replace_names(&bound.collect::<Result<Vec<_>>>()?)?;
    }
}

fn bound(page: NamesPage, sealer: &Sealer) -> Result<NamesPage> {
    let names = sealer.open(BlobKind::Names, &page.sealed_names)?;
    let sealed_names = sealer.seal_at(BlobKind::Names, &page.place(), &names)?;
    Ok(NamesPage { sealed_names, ..page })
}
