//! The newest sample of every entity, in memory and in columns (decisions G1 to G4, F6).

mod rows;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::batch::{Column, FieldId, Rows, SeriesId, Table, Values};
use crate::catalog::{Catalog, EntityIndex, MeasurementIndex};
use crate::json::{self, Chunks};

/// No slot.
const NONE: u32 = u32::MAX;

/// The newest samples within a range of times. Rows must be applied in write order.
#[derive(Default)]
pub struct Latest {
    tables: HashMap<MeasurementIndex, LatestTable>,
    /// By entity: its slot in the table of its measurement.
    slots: Vec<u32>,
}

/// Newest samples of one measurement: a slot per entity.
#[derive(Default)]
pub struct LatestTable {
    entities: Vec<EntityIndex>,
    times_ns: Vec<i64>,
    series: Vec<SeriesId>,
    /// Tag sets that share a slot's newest instant, in write order, where there are several.
    merged: HashMap<u32, Vec<SeriesId>>,
    columns: Vec<LatestColumn>,
    /// Slots in byte order of their entity ids, as far as they were sorted.
    order: Vec<u32>,
    newest_ns: Option<i64>,
}

/// The newest values of one field, by slot.
pub struct LatestColumn {
    field: FieldId,
    cells: Cells,
}

/// Values by slot, or none.
pub enum Cells {
    /// NaN means none: only finite doubles are stored.
    Float(Vec<f64>),
    /// Booleans.
    Bool(Vec<Option<bool>>),
    /// Strings.
    Text(Vec<Option<Box<str>>>),
}

/// What a row does to the slot of its entity.
#[derive(Clone, Copy)]
enum Action {
    /// An older sample, or one that no read addresses.
    Skip,
    /// A newer sample takes the slot.
    Replace(u32),
    /// A sample of the same instant joins it.
    Merge(u32),
}

impl Latest {
    /// Applies the rows of `table` whose time lies in `range_ns`.
    pub fn apply(&mut self, table: &Table, range_ns: &Range<i64>, catalog: &Catalog) {
        let measurement = table.series.iter().find_map(|id| Some(catalog.series(*id)?.measurement));
        let Some(measurement) = measurement else { return };
        let target = self.tables.entry(measurement).or_default();
        let rows = table.series.iter().zip(&table.times_ns);
        let actions: Vec<Action> = rows
            .map(|(series, time_ns)| {
                let entity = catalog.series(*series).and_then(|series| series.entity);
                match entity {
                    Some(entity) if range_ns.contains(time_ns) => {
                        let slot = slot_of(&mut self.slots, target, entity);
                        target.act(slot, *series, *time_ns)
                    }
                    _ => Action::Skip,
                }
            })
            .collect();
        target.apply_columns(&table.columns, &actions);
    }

    /// Sorts what was added since; call after a run of [`Self::apply`], before reading.
    pub fn sort(&mut self, catalog: &Catalog) {
        for table in self.tables.values_mut() {
            table.sort(catalog);
        }
    }

    /// Newest instant of any entity, of one measurement or of all.
    #[must_use]
    pub fn newest_ns(&self, measurement: Option<MeasurementIndex>) -> Option<i64> {
        match measurement {
            Some(measurement) => self.tables.get(&measurement)?.newest_ns,
            None => self.tables.values().filter_map(|table| table.newest_ns).max(),
        }
    }

    /// Whether the entity behind a series has a sample in `range_ns`.
    #[must_use]
    pub fn has(&self, series: SeriesId, range_ns: &Range<i64>, catalog: &Catalog) -> bool {
        let found = || {
            let series = catalog.series(series)?;
            let slot = *self.slots.get(series.entity? as usize)?;
            let table = self.tables.get(&series.measurement)?;
            table.times_ns.get(slot as usize).copied()
        };
        found().is_some_and(|time_ns| range_ns.contains(&time_ns))
    }

    /// The newest samples of a measurement.
    #[must_use]
    pub fn table(&self, measurement: MeasurementIndex) -> Option<&LatestTable> {
        self.tables.get(&measurement)
    }
}

fn slot_of(slots: &mut Vec<u32>, table: &mut LatestTable, entity: EntityIndex) -> u32 {
    let at = entity as usize;
    if slots.len() <= at {
        slots.resize(at + 1, NONE);
    }
    if slots[at] == NONE {
        slots[at] = table.add(entity);
    }
    slots[at]
}

impl LatestTable {
    fn add(&mut self, entity: EntityIndex) -> u32 {
        let slot = u32::try_from(self.entities.len()).expect("there are fewer than 2^32 entities");
        self.entities.push(entity);
        self.times_ns.push(i64::MIN);
        self.series.push(NONE);
        for column in &mut self.columns {
            column.cells.push_none();
        }
        slot
    }

    fn act(&mut self, slot: u32, series: SeriesId, time_ns: i64) -> Action {
        let at = slot as usize;
        let is_first = self.series[at] == NONE;
        if !is_first && time_ns < self.times_ns[at] {
            return Action::Skip;
        }
        if is_first || time_ns > self.times_ns[at] {
            self.times_ns[at] = time_ns;
            self.series[at] = series;
            if !self.merged.is_empty() {
                self.merged.remove(&slot);
            }
            self.newest_ns = self.newest_ns.max(Some(time_ns));
            return Action::Replace(slot);
        }
        if self.series[at] != series {
            let before = self.series[at];
            self.merged.entry(slot).or_insert_with(|| vec![before]).push(series);
            self.series[at] = series;
        }
        Action::Merge(slot)
    }

    fn apply_columns(&mut self, columns: &[Column], actions: &[Action]) {
        for column in columns {
            if !self.columns.iter().any(|known| known.field == column.field) {
                let cells = Cells::none(&column.values, self.entities.len());
                self.columns.push(LatestColumn { field: column.field, cells });
            }
        }
        for target in &mut self.columns {
            match columns.iter().find(|column| column.field == target.field) {
                Some(column) => target.cells.apply(column, actions),
                None => target.cells.clear(actions),
            }
        }
    }

    fn sort(&mut self, catalog: &Catalog) {
        let sorted = self.order.len();
        if sorted == self.entities.len() {
            return;
        }
        let slots = u32::try_from(self.entities.len()).expect("slots have 32 bits");
        self.order.extend(u32::try_from(sorted).expect("slots have 32 bits")..slots);
        // A stable sort of a sorted run and a short tail is close to a merge.
        self.order.sort_by_key(|slot| &*catalog.entity(self.entities[*slot as usize]).id);
    }

    /// Slots whose newest sample lies in `range_ns`, in byte order of their entity ids.
    pub fn slots_in(&self, range_ns: Range<i64>) -> impl Iterator<Item = u32> {
        let in_range = move |slot: &u32| range_ns.contains(&self.times_ns[*slot as usize]);
        self.order.iter().copied().filter(in_range)
    }

    /// Entity of a slot.
    ///
    /// # Panics
    /// When there is no such slot; so do the other methods that take one.
    #[must_use]
    pub fn entity(&self, slot: u32) -> EntityIndex {
        self.entities[slot as usize]
    }

    /// Instant of a slot's newest sample.
    #[must_use]
    pub fn time_ns(&self, slot: u32) -> i64 {
        self.times_ns[slot as usize]
    }

    /// The newest values, a column per field.
    #[must_use]
    pub fn columns(&self) -> &[LatestColumn] {
        &self.columns
    }

    /// Appends a slot's tags as a JSON object: those of its newest sample, merged where several
    /// tag sets share its instant, the later write winning (F6).
    pub fn write_tags(&self, out: &mut Vec<u8>, slot: u32, catalog: &Catalog) {
        let tags_of = |id: &SeriesId| catalog.series(*id);
        if let Some(ids) = self.merged.get(&slot) {
            let series = ids.iter().filter_map(tags_of);
            let tags: BTreeMap<&str, &str> = series.flat_map(|series| series.name.tags()).collect();
            json::write_object_of_strings(out, tags);
        } else if let Some(series) = tags_of(&self.series[slot as usize]) {
            out.extend_from_slice(&series.tags_json);
        }
    }

    /// Appends the JSON objects of the slots in `range_ns`, each preceded by a comma unless it is
    /// the first thing after `[`.
    pub fn write_entities(&self, chunks: &mut Chunks, range_ns: Range<i64>, catalog: &Catalog) {
        let Some(first) = self.entities.first() else { return };
        let measurement = catalog.entity(*first).measurement;
        let mut head = b"{\"measurement\":".to_vec();
        json::write_string(&mut head, catalog.measurement_name(measurement));
        head.extend_from_slice(b",\"entity_id\":");
        let columns = self.columns_by_name(catalog);
        for slot in self.slots_in(range_ns) {
            let out = chunks.open();
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            out.extend_from_slice(&head);
            json::write_string(out, &catalog.entity(self.entity(slot)).id);
            out.extend_from_slice(b",\"observed_at\":");
            json::write_time(out, self.time_ns(slot));
            out.extend_from_slice(b",\"tags\":");
            self.write_tags(out, slot, catalog);
            out.extend_from_slice(b",\"fields\":{");
            for (key, cells) in &columns {
                cells.write(out, slot, key);
            }
            out.extend_from_slice(b"}}");
        }
    }

    /// Columns in byte order of their field names, each with its JSON key and colon.
    fn columns_by_name(&self, catalog: &Catalog) -> Vec<(Vec<u8>, &Cells)> {
        let name = |column: &LatestColumn| catalog.field(column.field).map(|field| &*field.name);
        let mut columns: Vec<_> =
            self.columns.iter().filter_map(|column| Some((name(column)?, &column.cells))).collect();
        columns.sort_unstable_by_key(|(name, _)| *name);
        let keyed = |(name, cells)| {
            let mut key = Vec::new();
            json::write_string(&mut key, name);
            key.push(b':');
            (key, cells)
        };
        columns.into_iter().map(keyed).collect()
    }
}

impl LatestColumn {
    /// The field.
    #[must_use]
    pub fn field(&self) -> FieldId {
        self.field
    }

    /// Its values by slot.
    #[must_use]
    pub fn cells(&self) -> &Cells {
        &self.cells
    }
}

impl Cells {
    fn none(like: &Values, slots: usize) -> Self {
        match like {
            Values::Float(_) => Self::Float(vec![f64::NAN; slots]),
            Values::Bool(_) => Self::Bool(vec![None; slots]),
            Values::Text(_) => Self::Text(vec![None; slots]),
        }
    }

    fn push_none(&mut self) {
        match self {
            Self::Float(cells) => cells.push(f64::NAN),
            Self::Bool(cells) => cells.push(None),
            Self::Text(cells) => cells.push(None),
        }
    }

    fn clear(&mut self, actions: &[Action]) {
        match self {
            Self::Float(cells) => clear_replaced(cells, f64::NAN, actions),
            Self::Bool(cells) => clear_replaced(cells, None, actions),
            Self::Text(cells) => clear_replaced(cells, None, actions),
        }
    }

    fn apply(&mut self, column: &Column, actions: &[Action]) {
        match (self, &column.values) {
            (Self::Float(cells), Values::Float(values)) => {
                apply_cells(cells, f64::NAN, &column.rows, actions, |at| values[at]);
            }
            (Self::Bool(cells), Values::Bool(values)) => {
                apply_cells(cells, None, &column.rows, actions, |at| Some(values[at]));
            }
            (Self::Text(cells), Values::Text(values)) => {
                apply_cells(cells, None, &column.rows, actions, |at| Some(values[at].clone()));
            }
            // One field id has one type for ever, so nothing else reaches this point.
            _ => debug_assert!(false, "a field changed its type"),
        }
    }

    fn write(&self, out: &mut Vec<u8>, slot: u32, key: &[u8]) {
        let at = slot as usize;
        let is_present = match self {
            Self::Float(cells) => !cells[at].is_nan(),
            Self::Bool(cells) => cells[at].is_some(),
            Self::Text(cells) => cells[at].is_some(),
        };
        if !is_present {
            return;
        }
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        out.extend_from_slice(key);
        match self {
            Self::Float(cells) => json::write_f64(out, cells[at]),
            Self::Bool(cells) => json::write_bool(out, cells[at] == Some(true)),
            Self::Text(cells) => json::write_string(out, cells[at].as_deref().unwrap_or_default()),
        }
    }
}

fn clear_replaced<T: Clone>(cells: &mut [T], none: T, actions: &[Action]) {
    for action in actions {
        if let Action::Replace(slot) = action {
            cells[*slot as usize] = none.clone();
        }
    }
}

/// Walks rows in write order; `value` gives the value at a position of the column.
fn apply_cells<T: Clone>(
    cells: &mut [T],
    none: T,
    rows: &Rows,
    actions: &[Action],
    value: impl Fn(usize) -> T,
) {
    let mut next = 0;
    for (row, action) in (0_u32..).zip(actions) {
        let position = match rows {
            Rows::All => Some(row as usize),
            Rows::Some(rows) if rows.get(next) == Some(&row) => Some(next),
            Rows::Some(_) => None,
        };
        next += usize::from(position.is_some());
        match (*action, position) {
            (Action::Replace(slot) | Action::Merge(slot), Some(at)) => {
                cells[slot as usize] = value(at);
            }
            (Action::Replace(slot), None) => cells[slot as usize] = none.clone(),
            (Action::Merge(_), None) | (Action::Skip, _) => {}
        }
    }
}
