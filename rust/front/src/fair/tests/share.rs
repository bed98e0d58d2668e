//! Shares of a resource, and the owners of keys.

use super::owner;
use crate::fair::{KeyOwners, Share};

fn taken(share: &Share, name: &str, bound: u64) -> usize {
    (0..bound).take_while(|_| share.take(&owner(name), 1, bound)).count()
}

#[test]
fn one_owner_gets_half_and_the_next_half_of_what_is_left() {
    let share = Share::default();
    let got = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| taken(&share, name, 64));
    assert_eq!(got, [32, 16, 8, 4, 2, 1, 1, 0]);
    share.give("a", 1); // amounts that are given back are shared by the same rule
    assert_eq!(taken(&share, "b", 64), 0);
    assert_eq!(taken(&share, "h", 64), 1);
}

#[test]
fn what_is_larger_than_the_bound_passes_alone() {
    let share = Share::default();
    assert!(share.take(&owner("a"), 11, 10));
    assert!(!share.take(&owner("b"), 1, 10));
    share.give("a", 11);
    assert!(share.take(&owner("b"), 10, 10));
    assert!(!share.take(&owner("b"), 1, 10));
}

/// The batch of a call without records has no bytes.
#[test]
fn nothing_may_be_taken_and_given_back_any_number_of_times() {
    let share = Share::default();
    assert!((0..3).all(|_| share.take(&owner("a"), 0, 10)));
    (0..3).for_each(|_| share.give("a", 0));
    assert!(share.take(&owner("a"), 10, 10));
    assert_eq!((share.held("a"), share.total()), (10, 10));
}

#[test]
fn a_key_counts_for_its_address_until_it_is_known() {
    let owners = KeyOwners::default();
    let (address, account) = (owner("127.0.0.1"), owner("account"));
    assert_eq!(owners.of(Some(b"key"), &address), address);
    assert!(owners.learn(b"key", &account));
    assert!(!owners.learn(b"key", &account));
    assert_eq!(owners.of(Some(b"key"), &address), account);
    assert_eq!(owners.of(Some(b"other key"), &address), address);
    assert_eq!(owners.of(None, &address), address);
    assert!(owners.learn(b"key", &owner("another account")));
}

#[test]
fn n6_what_needs_nothing_more_goes_on_whatever_others_hold() {
    let share = Share::default();
    assert!(share.grow(&owner("a"), 0, 60, 100));
    assert!(share.take(&owner("b"), 30, 100));
    assert!(!share.grow(&owner("a"), 60, 1, 100));
    assert!(share.grow(&owner("a"), 60, 0, 100), "it received into room that it has");
}

#[test]
fn an_empty_key_is_nobodys() {
    let owners = KeyOwners::default();
    let (address, account) = (owner("127.0.0.1"), owner("account"));
    assert!(!owners.learn(b"", &account));
    assert_eq!(owners.of(Some(b""), &address), address);
}
