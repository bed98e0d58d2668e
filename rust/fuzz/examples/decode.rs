//! Messages decoded to columns, beside `prost` on the same bytes: `decode FILE...` prints records per second
//! of processor time of both, for `benches/goals/grpc.py`.

use std::hint::black_box;
use std::io::Write;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::wire::{ParseContext, parse_protobuf};
use fleetcast_fuzz::messages::WriteRequest;
use prost::Message;

/// Processor time that a decoder is given: a hundred times the error of the clock of the scheduler.
const PROCESSOR_NS_MIN: u64 = 400_000_000;

fn main() -> std::io::Result<()> {
    let bodies = std::env::args_os().skip(1).map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let limits = WriteLimits { batch_records_max: 10_000, ..WriteLimits::default() };
    let mut names = RawKeyCache::default();
    let columns = |body: &[u8], names: &RawKeyCache| {
        parse_protobuf(body, ParseContext::new(names, &limits, "bench", i64::MAX))
            .expect("a valid message")
    };
    let decode = |body: &[u8]| WriteRequest::decode(body).expect("a valid message");
    for body in &bodies {
        for (series, new) in (0..).zip(columns(body, &names).new_series.iter()) {
            names.insert(new.raw_key, series);
        }
        assert_eq!(columns(body, &names).accepted_count as usize, decode(body).records.len());
    }
    let ours = per_second(&bodies, |body| columns(body, &names).accepted_count as usize)?;
    let prost = per_second(&bodies, |body| decode(body).records.len())?;
    writeln!(std::io::stdout(), "{ours:.0} {prost:.0}")
}

/// Records per second of processor time; `decode` returns how many a body has.
fn per_second(bodies: &[Vec<u8>], decode: impl Fn(&[u8]) -> usize) -> std::io::Result<f64> {
    let start = processor_ns()?;
    let mut records = 0;
    loop {
        for body in bodies {
            records += black_box(decode(black_box(body)));
        }
        let spent = processor_ns()? - start;
        if spent >= PROCESSOR_NS_MIN {
            #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
            return Ok(records as f64 / (spent as f64 / 1e9));
        }
    }
}

/// Nanoseconds of processor time that this process has had.
fn processor_ns() -> std::io::Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let first = stat.split(' ').next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| std::io::Error::other("schedstat of another form"))
}
