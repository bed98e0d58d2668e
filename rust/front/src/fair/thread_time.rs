//! CPU time of this thread, cheap to ask for after short pieces of work.

use std::cell::Cell;
use std::mem;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Work that ends sooner counts by the usual clock, because the clock of a thread costs a system
/// call.
const SHORT: Duration = Duration::from_micros(100);

thread_local! {
    static SPAN: Cell<Option<Span>> = const { Cell::new(None) };
}

/// The present piece of work of a thread.
#[derive(Clone, Copy)]
struct Span {
    began: Instant,
    /// The thread's CPU time when its clock was read last.
    read: Duration,
    /// Time of the short pieces of work since then.
    counted: Duration,
    /// CPU time that other threads have used for this piece of work.
    helped: Duration,
}

/// Begins a piece of work of this thread.
pub fn begin() {
    let began = Instant::now();
    let span = SPAN.get().map_or_else(
        || Span { began, read: thread_time(), counted: Duration::ZERO, helped: Duration::ZERO },
        |span| Span { began, ..span },
    );
    SPAN.set(Some(span));
}

/// Counts CPU time that other threads have used for the present piece of work.
pub fn add(helped: Duration) {
    if let Some(mut span) = SPAN.get() {
        span.helped += helped;
        SPAN.set(Some(span));
    }
}

/// Returns the CPU time that this thread, and others for it, have used since the last `begin`. Time
/// in which the thread waited counts only if the work was short.
#[must_use]
pub fn used() -> Duration {
    let Some(mut span) = SPAN.get() else { return Duration::ZERO };
    let used = span.end(span.began.elapsed(), thread_time) + mem::take(&mut span.helped);
    SPAN.set(Some(span));
    used
}

impl Span {
    /// Returns the CPU time of a piece of work that took `elapsed` and ends now.
    fn end(&mut self, elapsed: Duration, thread_time: impl FnOnce() -> Duration) -> Duration {
        if elapsed < SHORT {
            self.counted += elapsed;
            return elapsed;
        }
        let read = thread_time();
        let used = read.saturating_sub(self.read + self.counted).min(elapsed);
        (self.read, self.counted) = (read, Duration::ZERO);
        used
    }
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works until this thread has used that much CPU time.
    fn work(amount: Duration) {
        let begun = thread_time();
        while thread_time() < begun + amount {}
    }

    #[test]
    fn work_counts_and_waiting_does_not() {
        begin();
        work(Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(50));
        let counted = used();
        assert!(counted >= Duration::from_millis(5), "{counted:?}");
        assert!(counted < Duration::from_millis(50), "{counted:?}");
    }

    #[test]
    fn time_of_other_threads_counts_once() {
        begin();
        add(Duration::from_secs(2));
        add(Duration::from_secs(3));
        assert!(used() >= Duration::from_secs(5));
        begin();
        assert!(used() < Duration::from_secs(1));
    }

    #[test]
    fn short_pieces_of_work_are_not_counted_again_with_the_next_long_piece() {
        let [piece, long] = [Duration::from_micros(10), Duration::from_millis(50)];
        let at = Duration::from_millis;
        let mut span = Span {
            began: Instant::now(),
            read: at(1),
            counted: Duration::ZERO,
            helped: Duration::ZERO,
        };
        for _ in 0..100 {
            assert_eq!(span.end(piece, || panic!("it costs a system call")), piece);
        }
        assert_eq!(span.end(long, || at(22)), at(20));
        assert_eq!(span.end(long, || at(25)), at(3));
    }
}
