//! One thread that keeps many connections busy for a while.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use serde_json::{Value, json};

const EVENTS_MAX: usize = 1_024;
/// Patience with answers that are due when the time is over.
const END: Duration = Duration::from_mins(1);
const TICKS_PER_SECOND: f64 = 100.0; // USER_HZ of Linux

/// A connection with one request at a time under way.
pub(crate) trait Connection {
    /// The socket, to be watched.
    fn socket(&mut self) -> &mut mio::net::TcpStream;
    /// Begins with the next request.
    fn begin(&mut self) -> io::Result<()>;
    /// Writes and reads what is possible; the status when the answer is here.
    fn go_on(&mut self) -> io::Result<Option<u16>>;
}

/// Pace of a drive.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Length of the drive.
    pub(crate) seconds: f64,
    /// Time from one request of a connection to its next; as fast as it is answered without.
    pub(crate) period: Option<Duration>,
}

struct Tally {
    latencies: Vec<f64>,
    statuses: BTreeMap<u16, u64>,
    broken: u64,
}

struct Drive<'a, C> {
    connections: &'a mut [C],
    /// Instant from which the latency of a request under way counts.
    began: Vec<Option<Instant>>,
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    period: Option<Duration>,
    until: Instant,
    under_way: usize,
    tally: Tally,
}

/// Has all connections send, and tells how that went.
///
/// The latency of a paced request counts from the instant at which it was due: what the client
/// itself is late counts against the server. Who has not been answered for more than a period goes
/// on from then.
///
/// # Errors
///
/// Failures of the system's queue of events.
pub(crate) fn drive<C: Connection>(connections: &mut [C], pace: Pace) -> io::Result<Value> {
    let mut poll = Poll::new()?;
    for (number, connection) in connections.iter_mut().enumerate() {
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(connection.socket(), Token(number), interest)?;
    }
    let cpu = cpu_seconds()?;
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(pace.seconds);
    let count = connections.len();
    let mut drive = Drive {
        connections,
        began: vec![None; count],
        due: BinaryHeap::new(),
        period: pace.period,
        until,
        under_way: 0,
        tally: Tally { latencies: Vec::new(), statuses: BTreeMap::new(), broken: 0 },
    };
    for number in 0..count {
        let share = u32::try_from(number).expect("fewer connections than that");
        let of = u32::try_from(count).expect("fewer connections than that");
        // Spread over the period in an order that is not that of the connections.
        let phase = pace
            .period
            .map_or(Duration::ZERO, |period| period * (share.wrapping_mul(7_919) % of) / of);
        drive.due.push(Reverse((start + phase, number)));
    }
    drive.run(&mut poll)?;
    let seconds = start.elapsed().as_secs_f64();
    let tally = drive.tally;
    for connection in drive.connections {
        poll.registry().deregister(connection.socket())?;
    }
    Ok(report(tally, seconds, cpu_seconds()? - cpu))
}

impl<C: Connection> Drive<'_, C> {
    fn run(&mut self, poll: &mut Poll) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        loop {
            let now = Instant::now();
            let next = self.begin_due(now);
            let over = now >= self.until;
            if over && (self.under_way == 0 || now > self.until + END) {
                self.tally.broken += self.under_way as u64;
                return Ok(());
            }
            let wake = if over { self.until + END } else { next.unwrap_or(self.until) };
            match poll.poll(&mut events, Some(wake.saturating_duration_since(now))) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                answer => answer?,
            }
            for event in &events {
                self.go_on(event.token().0);
            }
        }
    }

    /// Begins what is due; the instant of what is due next.
    fn begin_due(&mut self, now: Instant) -> Option<Instant> {
        while let Some(&Reverse((at, number))) = self.due.peek() {
            if at >= self.until {
                self.due.clear();
                return None;
            }
            if at > now {
                return Some(at);
            }
            self.due.pop();
            self.begin(number, if self.period.is_some() { at } else { now });
        }
        None
    }

    fn begin(&mut self, number: usize, at: Instant) {
        self.began[number] = Some(at);
        self.under_way += 1;
        if self.connections[number].begin().is_err() {
            self.break_off(number);
        }
    }

    fn go_on(&mut self, number: usize) {
        match self.connections[number].go_on() {
            Ok(Some(status)) => self.end(number, status),
            Ok(None) => {}
            Err(_) => self.break_off(number),
        }
    }

    fn end(&mut self, number: usize, status: u16) {
        let Some(began) = self.began[number].take() else { return };
        let now = Instant::now();
        self.under_way -= 1;
        self.tally.latencies.push((now - began).as_secs_f64());
        *self.tally.statuses.entry(status).or_default() += 1;
        match self.period {
            None if now < self.until => self.begin(number, now),
            None => {}
            Some(period) => {
                let next = began + period;
                let next = if next + period < now { now } else { next };
                self.due.push(Reverse((next, number)));
            }
        }
    }

    /// A connection that ended is not opened again: what it would have sent is missing.
    fn break_off(&mut self, number: usize) {
        if self.began[number].take().is_some() {
            self.under_way -= 1;
            self.tally.broken += 1;
        }
    }
}

fn report(mut tally: Tally, seconds: f64, cpu_seconds: f64) -> Value {
    tally.latencies.sort_unstable_by(f64::total_cmp);
    let count = tally.latencies.len();
    let quantile = |percent: usize| {
        let at = (count * percent / 100).min(count.saturating_sub(1));
        tally.latencies.get(at).copied()
    };
    let statuses: serde_json::Map<_, _> =
        tally.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
    json!({
        "requests": count,
        "seconds": seconds,
        "client_cpu_seconds": cpu_seconds,
        "p50_seconds": quantile(50),
        "p90_seconds": quantile(90),
        "p99_seconds": quantile(99),
        "statuses": statuses,
        "broken": tally.broken,
    })
}

/// CPU of this process so far, user and system.
fn cpu_seconds() -> io::Result<f64> {
    let line = fs::read_to_string("/proc/self/stat")?;
    // The name in the second field may hold spaces; what follows its bracket does not.
    let fields = line.rsplit_once(')').map_or("", |(_, behind)| behind);
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    Ok(ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND)
}
