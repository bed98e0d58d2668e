//! A bound on the lines of the log that clients without a good key cause.
//!
//! A request without a good key costs a client less than its line costs the disk. A client therefore
//! causes at most ten lines a second, and one line with the number of the rest. Metrics count all
//! requests. Example: of 500 refused requests of a client in a second, 10 get a line each, and one
//! more line says 490.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::Write;
use std::mem;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fleetcast_core::model::json::write_string;

use super::log_line::{ServedRequest, write_line, write_timestamp};

/// Lines of one client in a second.
const CLIENT_LINES_MAX: usize = 10;
/// Lines of all clients of a process in a second.
const PROCESS_LINES_MAX: usize = 100;
/// Clients counted by name. The other clients share one number.
const CLIENTS_MAX: usize = 1_000;
const OTHERS: &str = "others";
const WINDOW: Duration = Duration::from_secs(1);

static REFUSALS: LazyLock<LineBound> = LazyLock::new(LineBound::default);

/// Decides which lines are written, and counts the lines left out.
#[derive(Default)]
struct LineBound {
    counts: Mutex<LineTally>,
    /// The name of the process. A thread that tells counts holds it, so that a flush waits.
    process: Mutex<String>,
}

#[derive(Default)]
struct LineTally {
    window_began: Option<Instant>,
    total: usize,
    written: HashMap<String, usize>,
    left_out: HashMap<String, usize>,
}

/// Writes the line of a request. The lines of a client whose requests are refused, or need no key,
/// are bounded.
pub fn write_served(served: &ServedRequest<'_>) {
    let is_tenants = served.error.is_none() && served.tenant.is_some();
    if is_tenants || refusal_is_logged(served.client) {
        write_line(&served.line(SystemTime::now()));
    }
}

/// Returns true if a line about a client that is refused, or has no key, is to be written now.
///
/// `client` is an address. Over gRPC it has a port, which does not count. Example:
/// `ipv4:10.0.0.7:50112` counts as `ipv4:10.0.0.7`.
#[must_use]
pub fn refusal_is_logged(client: &str) -> bool {
    let is_grpc = client.starts_with("ipv4:") || client.starts_with("ipv6:");
    let address =
        client.rsplit_once(':').filter(|_| is_grpc).map_or(client, |(address, _)| address);
    let (is_logged, is_first) = lock(&REFUSALS.counts).admit(address, Instant::now());
    if is_first {
        // If there is no thread, the next lines that are left out try again.
        drop(thread::Builder::new().name("log-bound".into()).spawn(|| {
            thread::sleep(WINDOW);
            tell_left_out();
        }));
    }
    is_logged
}

/// Names this process in the lines about lines left out.
pub fn name_process(process: &str) {
    process.clone_into(&mut lock(&REFUSALS.process));
}

/// Writes the numbers of lines left out. Returns when any thread has written all of them.
pub fn tell_left_out() {
    let process = lock(&REFUSALS.process);
    let left_out = lock(&REFUSALS.counts).take_left_out();
    for (client, lines) in left_out {
        write_line(&line(&client, lines, &process, SystemTime::now()));
    }
}

impl LineTally {
    /// Counts a line. Returns true if it is to be written, and if it is the first line left out.
    fn admit(&mut self, client: &str, now: Instant) -> (bool, bool) {
        if self.window_began.is_none_or(|began| began + WINDOW <= now) {
            self.window_began = Some(now);
            self.total = 0;
            self.written.clear();
        }
        let written = self.written.get(client).copied().unwrap_or(0);
        if written < CLIENT_LINES_MAX && self.total < PROCESS_LINES_MAX {
            self.total += 1;
            self.written.insert(client.to_owned(), written + 1);
            return (true, false);
        }
        let is_first = self.left_out.is_empty();
        if let Some(lines) = self.left_out.get_mut(client) {
            *lines += 1;
        } else {
            let name = if self.left_out.len() < CLIENTS_MAX { client } else { OTHERS };
            *self.left_out.entry(name.to_owned()).or_default() += 1;
        }
        (false, is_first)
    }

    /// Takes the clients with most lines left out, and the lines of all other clients as one.
    fn take_left_out(&mut self) -> Vec<(String, usize)> {
        let mut clients: Vec<_> = mem::take(&mut self.left_out).into_iter().collect();
        clients.sort_by_key(|(_, lines)| Reverse(*lines));
        let rest = clients.split_off(clients.len().min(CLIENT_LINES_MAX));
        let lines: usize = rest.into_iter().map(|(_, lines)| lines).sum();
        clients.extend((lines > 0).then(|| (OTHERS.to_owned(), lines)));
        clients
    }
}

fn line(client: &str, lines: usize, process: &str, now: SystemTime) -> Vec<u8> {
    let mut line = br#"{"event":"lines of a client left out","client":"#.to_vec();
    write_string(&mut line, client);
    // Writing to memory cannot fail.
    let _ = write!(
        line,
        r#","lines":{lines},"level":"warning","logger":"fleetcast.access","process":"#
    );
    write_string(&mut line, process);
    line.extend_from_slice(br#","timestamp":""#);
    write_timestamp(&mut line, now);
    line.extend_from_slice(b"\"}\n");
    line
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(counts: &mut LineTally, client: &str, lines: usize, now: Instant) -> usize {
        (0..lines).map(|_| usize::from(counts.admit(client, now).0)).sum()
    }

    #[test]
    fn refused_clients_fill_no_log_and_the_others_are_heard() {
        let (mut counts, now) = (LineTally::default(), Instant::now());
        assert_eq!(admitted(&mut counts, "a", 1_000, now), CLIENT_LINES_MAX);
        assert_eq!(admitted(&mut counts, "b", 5, now), 5);
        assert_eq!(counts.take_left_out(), [("a".to_owned(), 1_000 - CLIENT_LINES_MAX)]);
        assert_eq!(admitted(&mut counts, "a", 50, now + WINDOW), CLIENT_LINES_MAX);
    }

    #[test]
    fn refused_clients_of_any_number_write_a_bounded_number_of_lines() {
        let (mut counts, now) = (LineTally::default(), Instant::now());
        let clients = (0..5_000).map(|number| format!("2001:db8::{number:x}"));
        let written: usize = clients.map(|client| admitted(&mut counts, &client, 1, now)).sum();
        assert_eq!(written, PROCESS_LINES_MAX);
        assert!(counts.left_out.len() <= CLIENTS_MAX + 1);
        let told = counts.take_left_out();
        assert!(told.len() <= CLIENT_LINES_MAX + 1);
        assert_eq!(told.iter().map(|(_, lines)| lines).sum::<usize>(), 5_000 - PROCESS_LINES_MAX);
    }
}
