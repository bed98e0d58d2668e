//! Field values a second through the block codec and the seal, and bytes a field value at rest.
//!
//! `memcpy` copies the decoded bytes: no decoder can be faster than writing its output.

#![expect(clippy::print_stdout, reason = "the sizes are a result of this bench")]
#![expect(clippy::cast_precision_loss, reason = "sizes of blocks are far below 2^53")]

use std::hint::black_box;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use fleetcast_core::codec::{BlockReader, Effort, decode_block, encode_block};
use fleetcast_core::model::batch::{Block, Column, RowSet, Table, Values};
use fleetcast_core::storage::seal::{BlobKind, DataKey, Sealer};

const FIELDS: [&str; 5] =
    ["azimuth_deg", "elevation_deg", "slant_range_km", "snr_db", "utilization"];

/// A small generator: the same fleet on every machine.
struct Dice(u64);

impl Dice {
    /// Uniform from 0 to 1.
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from(u32::try_from(self.0 >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }

    /// Roughly normal, standard deviation 1.
    fn sway(&mut self) -> f64 {
        (0..12).map(|_| self.roll()).sum::<f64>() - 6.0
    }
}

fn round(value: f64, decimals: i32) -> f64 {
    let power = 10_f64.powi(decimals);
    (value * power).round() / power
}

/// The walk of one entity, as `benches/inputs/fleet.py` and `benches/inputs/month.py` have it.
struct Walk([f64; FIELDS.len()]);

impl Walk {
    fn begin(dice: &mut Dice) -> Self {
        Self([
            360.0 * dice.roll(),
            5.0 + 80.0 * dice.roll(),
            600.0 + 1_400.0 * dice.roll(),
            4.0 + 16.0 * dice.roll(),
            dice.roll(),
        ])
    }

    fn step(&mut self, dice: &mut Dice) -> [f64; FIELDS.len()] {
        let [azimuth, elevation, slant, snr, utilization] = &mut self.0;
        *azimuth = (*azimuth + 2.4 * dice.roll() - 0.8).rem_euclid(360.0);
        *elevation = (*elevation + 1.2 * dice.roll() - 0.6).clamp(5.0, 90.0);
        *slant = (*slant + 16.0 * dice.roll() - 8.0).clamp(550.0, 2_600.0);
        *snr = (*snr + 0.8 * dice.roll() - 0.4).clamp(-3.0, 25.0);
        *utilization = (*utilization + 0.04 * dice.roll() - 0.02).clamp(0.0, 1.0);
        [
            round(*azimuth, 2),
            round(*elevation, 2),
            round(*slant, 1),
            round(*snr, 1),
            round(*utilization, 3),
        ]
    }
}

/// `steps` rows of each entity, ten seconds apart, each in the `spacing_ms` of its entity.
fn fleet(entities: u32, steps: u32, spacing_ms: f64) -> Block {
    let mut dice = Dice(42);
    let mut table = Table::default();
    let mut columns: [Vec<f64>; FIELDS.len()] = Default::default();
    for entity in 0..entities {
        let mut walk = Walk::begin(&mut dice);
        for step in 0..steps {
            #[expect(clippy::cast_possible_truncation, reason = "ten seconds at most")]
            let within_ms = ((f64::from(entity) + dice.roll()) * spacing_ms) as i64;
            table.series.push(entity + 1);
            table.times_ns.push(
                1_790_000_000_000_000_000
                    + i64::from(step) * 10_000_000_000
                    + within_ms * 1_000_000,
            );
            for (column, value) in columns.iter_mut().zip(walk.step(&mut dice)) {
                column.push(value);
            }
        }
    }
    table.columns = (1..)
        .zip(columns)
        .map(|(field, values)| Column { field, rows: RowSet::All, values: Values::Float(values) })
        .collect();
    Block { ingest_ns: 1_790_000_100_123_456_789, tables: vec![table] }
}

/// The same shape with doubles that are no decimals.
fn noise(rows: u32) -> Block {
    let mut dice = Dice(7);
    let mut block = fleet(rows, 1, 9.99);
    for column in &mut block.tables[0].columns {
        column.values = Values::Float((0..rows).map(|_| dice.sway()).collect());
    }
    block
}

fn print_sizes(name: &str, block: &Block, sealed_len: usize) {
    let bytes = encode_block(block, Effort::High).expect("a block within its bounds");
    let reader = BlockReader::open(&bytes).expect("just written");
    let head = &reader.tables()[0];
    let bits = |len: usize| len as f64 * 8.0 / head.row_count as f64;
    let cells = head.row_count * FIELDS.len();
    println!(
        "{name}: {sealed_len} bytes sealed, {:.3} a field value, {:.3} with series and times",
        sealed_len as f64 / cells as f64,
        sealed_len as f64 / (cells + 2 * head.row_count) as f64,
    );
    print!("  bits a row: series {:.2}", bits(head.stored_series_len()));
    print!(", times {:.2}", bits(head.stored_times_len()));
    for (name, column) in FIELDS.iter().zip(&head.columns) {
        print!(", {name} {:.2}", bits(column.stored_len()));
    }
    println!();
}

fn bench_block(criterion: &mut Criterion, name: &str, block: &Block) {
    let sealer = Sealer::new(&DataKey::from_bytes(&[1; 32]), [2; 16]);
    let bytes = encode_block(block, Effort::High).expect("a block within its bounds");
    let sealed = sealer.seal(BlobKind::LogBlock, &bytes).expect("randomness");
    print_sizes(name, block, sealed.len());

    let mut group: BenchmarkGroup<'_, _> = criterion.benchmark_group(name);
    let rows = block.tables[0].row_count();
    group.throughput(Throughput::Elements((rows * FIELDS.len()) as u64));
    for (name, effort) in [("encode", Effort::High), ("encode, low effort", Effort::Low)] {
        group.bench_function(name, |bencher| {
            let encoded = || encode_block(black_box(block), effort);
            bencher.iter(|| encoded().expect("a block within its bounds"));
        });
    }
    group.bench_function("decode", |bencher| {
        bencher.iter(|| decode_block(black_box(&bytes)));
    });
    group.bench_function("seal", |bencher| {
        bencher.iter(|| sealer.seal(BlobKind::LogBlock, black_box(&bytes)));
    });
    group.bench_function("open", |bencher| {
        bencher.iter(|| sealer.open(BlobKind::LogBlock, black_box(&sealed)));
    });
    let decoded = vec![1_u8; rows * (FIELDS.len() * 8 + 12)];
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| black_box(&decoded).clone());
    });
    group.throughput(Throughput::Elements(rows as u64));
    group.bench_function("decode one column", |bencher| {
        bencher.iter(|| BlockReader::open(black_box(&bytes))?.table(0)?.column(2));
    });
    group.finish();
}

fn benches(criterion: &mut Criterion) {
    // Once something large was freed, as in any process that runs for a while, the allocator no longer
    // gives the memory of a block back to the kernel between two blocks.
    drop(black_box(vec![1_u8; 8 << 20]));
    bench_block(criterion, "log block: 1000 entities once", &fleet(1_000, 1, 9.99));
    bench_block(criterion, "log block: 100 entities x 10", &fleet(100, 10, 99.9));
    bench_block(criterion, "segment block: 1 entity x 8640", &fleet(1, 8_640, 10.0));
    bench_block(criterion, "segment block: 27 entities x 450", &fleet(27, 450, 9.99));
    bench_block(criterion, "noise", &noise(1_000));
}

criterion_group! {
    name = column;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1));
    targets = benches
}
criterion_main!(column);
