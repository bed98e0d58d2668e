//! Tickets of threads that wait, fail and leave.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn block(byte: u8) -> SealedBatch {
    let blocks = vec![NewBlock { sealed: vec![byte; 18], ..NewBlock::default() }];
    SealedBatch { blocks, key: None }
}

#[test]
fn one_commit_takes_all_that_wait_in_their_order_and_each_is_told() {
    let tickets = Tickets::default();
    let drawn: Vec<u64> = (0..8).map(|byte| tickets.draw(block(byte))).collect();
    let commits = AtomicUsize::new(0);
    thread::scope(|scope| {
        for ticket in &drawn {
            scope.spawn(|| {
                let outcome = tickets.wait(*ticket, |blocks| {
                    commits.fetch_add(1, Ordering::Relaxed);
                    let all = blocks.iter().flat_map(|batch| &batch.blocks);
                    let bytes: Vec<u8> = all.map(|block| block.sealed[0]).collect();
                    assert_eq!(bytes, (0..8).collect::<Vec<u8>>());
                    Ok(())
                });
                outcome.unwrap();
            });
        }
    });
    assert_eq!(commits.load(Ordering::Relaxed), 1);
}

#[test]
fn a_failed_commit_is_told_to_its_own_tickets_as_often_as_they_ask() {
    let tickets = Tickets::default();
    let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
    for ticket in [first, second, first] {
        let failed = tickets.wait(ticket, |_| Err(Error::DiskFull));
        assert!(matches!(failed, Err(Error::DiskFull)));
    }
    let third = tickets.draw(block(3));
    assert!(tickets.wait(third, |_| Ok(())).is_ok());
    tickets.leave(first);
    assert_eq!(kept(&tickets), [second]);
}

#[test]
fn a_batch_behind_a_commit_without_an_answer_is_refused_and_never_stored() {
    let tickets = Tickets::default();
    let first = tickets.draw(block(1));
    thread::scope(|scope| {
        let (answer, answered) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let tickets = &tickets;
        let leading = scope.spawn(move || {
            tickets.wait(first, |blocks| {
                assert_eq!(blocks.len(), 1);
                begin.send(()).unwrap();
                answered.recv().unwrap();
                Ok(())
            })
        });
        begun.recv().unwrap();
        let second = tickets.draw(block(2));
        for _ in 0..2 {
            let refused = tickets.wait(second, |_| panic!("another commit is under way"));
            assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        }
        answer.send(()).unwrap();
        leading.join().unwrap().unwrap();
        let third = tickets.draw(block(3));
        let commit = |batches: &[SealedBatch]| {
            assert_eq!(batches[0].blocks[0].sealed, [3; 18]);
            assert_eq!(batches.len(), 1);
            Ok(())
        };
        tickets.wait(third, commit).unwrap();
    });
}

/// Tickets whose outcome is kept, in no order.
fn kept(tickets: &Tickets) -> Vec<u64> {
    lock(&tickets.drawn).seats.keys().copied().collect()
}

#[test]
fn a_ticket_that_is_left_is_in_no_later_commit() {
    let tickets = Tickets::default();
    let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
    tickets.leave(first);
    let outcome = tickets.wait(second, |blocks| {
        assert_eq!(blocks.len(), 1);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn nothing_is_kept_of_a_ticket_that_is_left_while_its_commit_fails() {
    let tickets = Tickets::default();
    let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
    let failed = tickets.wait(second, |_| {
        tickets.leave(first);
        Err(Error::DiskFull)
    });
    assert!(matches!(failed, Err(Error::DiskFull)));
    assert_eq!(kept(&tickets), [second]);
}

#[test]
fn a_panic_in_a_commit_leaves_nobody_waiting() {
    let tickets = Tickets::default();
    let [first, second] = [tickets.draw(block(1)), tickets.draw(block(2))];
    let panicked = thread::scope(|scope| {
        scope.spawn(|| tickets.wait(first, |_| panic!("a bug in the commit"))).join()
    });
    assert!(panicked.is_err());
    assert!(matches!(tickets.wait(second, |_| Ok(())), Err(Error::Poisoned)));
}
