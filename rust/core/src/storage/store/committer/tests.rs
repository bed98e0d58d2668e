//! Groups of many threads, bounds of groups, and commits that fail, panic or do not end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, mpsc};
use std::thread;

use super::*;

#[test]
fn items_that_arrive_during_a_commit_share_the_next_commit() {
    let committer = Committer::default();
    let (entered_send, entered) = mpsc::channel();
    let release = Barrier::new(2);
    let commits = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            committer.submit(0, 1, &|_: &[u32]| {
                entered_send.send(()).unwrap();
                release.wait();
                Ok(())
            })
        });
        entered.recv().unwrap();
        for item in 1..=8 {
            let (committer, commits) = (&committer, &commits);
            scope.spawn(move || {
                committer.submit(item, 1, &|items: &[u32]| {
                    assert_eq!(items.len(), 8);
                    commits.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                })
            });
        }
        while committer.waiting() < 8 {
            thread::yield_now();
        }
        release.wait();
    });
    assert_eq!(commits.load(Ordering::Relaxed), 1);
}

#[test]
fn a_group_is_bounded_in_items_and_bytes() {
    let group = |bytes: &[usize]| first_group(bytes.iter().copied());
    assert_eq!(group(&[1; 300]), GROUP_ITEMS_MAX);
    assert_eq!(group(&[GROUP_BYTES_MAX / 2; 3]), 2);
    assert_eq!(group(&[GROUP_BYTES_MAX, 1]), 1);
    assert_eq!(group(&[usize::MAX, 0, 1]), 1, "one item passes, whatever its size");
}

#[test]
fn the_last_of_many_items_waits_for_as_many_groups_as_it_takes() {
    let committer = Committer::default();
    let seats: Vec<_> = (0..=2 * GROUP_ITEMS_MAX).map(|item| committer.enter(item, 1)).collect();
    let sizes = Mutex::new(Vec::new());
    let commit = |items: &[usize]| {
        sizes.lock().unwrap().push(items.len());
        Ok(items[0])
    };
    assert_eq!(committer.wait(seats.last().unwrap(), &commit).unwrap(), 2 * GROUP_ITEMS_MAX);
    assert_eq!(*sizes.lock().unwrap(), [GROUP_ITEMS_MAX, GROUP_ITEMS_MAX, 1]);
    assert_eq!(committer.wait(&seats[300], &commit).unwrap(), GROUP_ITEMS_MAX, "as often as asked");
}

#[test]
fn a_failed_commit_fails_its_own_group_only() {
    let committer = Committer::default();
    let failed = committer.submit(1, 1, &|_: &[u32]| Err::<(), _>(Error::DiskFull));
    assert!(matches!(failed, Err(Error::DiskFull)));
    assert!(committer.submit(2, 1, &|_: &[u32]| Ok(())).is_ok());
}

/// A commit whose `begin` does some work first.
struct After<F>(F);

impl<F: Fn() -> Result<()>> Commit<u32, ()> for After<F> {
    type Turn = ();
    const LATE: Option<(Duration, fn() -> Error)> = Some((Duration::ZERO, || Error::Stale));

    fn begin(&self) -> Result<()> {
        (self.0)()
    }

    fn commit(&self, (): (), items: &[u32]) -> Result<()> {
        assert!(!items.is_empty(), "there is nothing to commit");
        Ok(())
    }
}

#[test]
fn a_commit_that_cannot_begin_fails_the_items_that_wait() {
    let committer = Committer::default();
    let failed = committer.submit(1, 1, &After(|| Err(Error::DiskFull)));
    assert!(matches!(failed, Err(Error::DiskFull)));
}

#[test]
fn nothing_is_committed_if_all_items_leave_before_the_group_is_taken() {
    let committer = Committer::default();
    let (first, second) = (committer.enter(1, 1), committer.enter(2, 1));
    assert!(committer.leave(&first) && !committer.leave(&first));
    let commit = After(|| {
        if committer.leave(&second) {
            second.end(Err(Error::Closed));
        }
        Ok(())
    });
    assert!(matches!(committer.wait(&second, &commit), Err(Error::Closed)));
}

#[test]
fn an_item_behind_a_commit_that_does_not_end_is_refused_and_in_no_later_commit() {
    let committer = Committer::default();
    let (begun_send, begun) = mpsc::channel();
    let release = Barrier::new(2);
    thread::scope(|scope| {
        let leading = scope.spawn(|| {
            committer.submit(1, 1, &|items: &[u32]| {
                assert_eq!(items, [1]);
                begun_send.send(()).unwrap();
                release.wait();
                Ok(())
            })
        });
        begun.recv().unwrap();
        let late = committer.submit(2, 1, &After(|| panic!("another thread leads")));
        assert!(matches!(late, Err(Error::Stale)), "{late:?}");
        assert_eq!(committer.waiting(), 0);
        release.wait();
        leading.join().unwrap().unwrap();
    });
}

fn panicking(_: &[usize]) -> Result<()> {
    panic!("a bug in the commit")
}

#[test]
fn a_panic_in_a_commit_leaves_no_thread_waiting() {
    let committer = Committer::default();
    let panicked = thread::scope(|scope| scope.spawn(|| committer.submit(1, 1, &panicking)).join());
    assert!(panicked.is_err());
    assert!(committer.submit(2, 1, &|_: &[usize]| Ok(())).is_ok());
}

#[test]
fn a_thread_that_panicked_is_not_woken_for_an_item_of_a_later_group() {
    let committer = Committer::default();
    let seats: Vec<_> = (0..=GROUP_ITEMS_MAX).map(|item| committer.enter(item, 1)).collect();
    let last = seats.last().unwrap();
    let panicked = thread::scope(|scope| scope.spawn(|| committer.wait(last, &panicking)).join());
    assert!(panicked.is_err());
    assert_eq!(committer.waiting(), 0, "its item is in no later commit");
}

#[test]
fn each_function_gets_the_result_of_its_item_once() {
    const EACH: usize = 2_000;
    let committer = Committer::default();
    let committing = AtomicUsize::new(0);
    let told: Arc<Vec<AtomicUsize>> =
        Arc::new((0..8 * EACH).map(|_| AtomicUsize::new(0)).collect());
    let commit = |_: &[usize]| {
        assert_eq!(committing.fetch_add(1, Ordering::SeqCst), 0, "one commit at a time");
        thread::yield_now();
        committing.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    thread::scope(|scope| {
        for writer in 0..8 {
            let (committer, commit, told) = (&committer, &commit, &told);
            scope.spawn(move || {
                for item in writer * EACH..(writer + 1) * EACH {
                    let told = Arc::clone(told);
                    committer.commit_then(item, 1, commit, move |item, result: Result<()>| {
                        result.unwrap();
                        told[item].fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
        }
    });
    assert!(told.iter().all(|count| count.load(Ordering::SeqCst) == 1));
}

#[test]
fn one_thread_commits_while_another_calls_functions() {
    let committer = Committer::default();
    let commit = |_: &[u32]| Ok(());
    let (calling_send, calling) = mpsc::channel();
    let both_call = Arc::new(Barrier::new(2));
    let commit_one = |item: u32| {
        let (calling_send, both_call) = (calling_send.clone(), Arc::clone(&both_call));
        committer.commit_then(item, 1, &commit, move |_, _: Result<()>| {
            calling_send.send(()).unwrap();
            both_call.wait();
        });
    };
    thread::scope(|scope| {
        scope.spawn(|| commit_one(1));
        calling.recv().unwrap();
        commit_one(2);
    });
}

#[test]
fn a_function_that_panics_stops_no_other() {
    let committer = Arc::new(Committer::default());
    let told = Arc::new(Mutex::new(Vec::new()));
    let enter_more = |items: &[u32]| {
        if items == [1] {
            for item in 2..=4 {
                let told = Arc::clone(&told);
                committer.commit_then(item, 1, &|_: &[u32]| Ok(()), move |item, _: Result<()>| {
                    assert_ne!(item, 2, "a bug");
                    told.lock().unwrap().push(item);
                });
            }
        }
        Ok(())
    };
    let all = AssertUnwindSafe(|| committer.commit_then(1, 1, &enter_more, |_, _| ()));
    assert!(catch_unwind(all).is_err());
    assert_eq!(*told.lock().unwrap(), [3, 4]);
}
