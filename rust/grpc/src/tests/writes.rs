//! L3, L19, L27, B23, O4, O9: writes, and their refusals.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use fleetcast_service::answers::WriteOutcome;

use super::*;
use crate::status::CallRefusal;

const OK: GrpcStatus = GrpcStatus::OK;

#[test]
fn a_batch_is_stored_once_its_call_is_ok() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        let (status, details, message) = client.write(&key('a'), &batch(1.5)).await;
        assert_eq!((status, &*details), (OK, ""));
        assert_eq!(message[0], 0, "it is not packed");
        assert_eq!(message.last_chunk(), Some(&[0x10, 1]), "one record is accepted, none rejected");
    });
    let open = house.server.parts.planes.open("a1", "a").unwrap();
    assert_eq!(open.for_a_call().unwrap().stats().unwrap().counts.rows, 1);
    assert!(house.ended().is_empty());
    house.server.write_workers.close();
    let (mut used_ns, counters) =
        ([0; 8], std::fs::File::from(house.counters.try_clone().unwrap()));
    counters.read_exact_at(&mut used_ns, 8 * CPU_INDEX as u64).unwrap();
    assert!(u64::from_le_bytes(used_ns) > 0, "the tenant has used CPU time");
}

#[test]
fn l3_a_key_is_needed_before_a_message_is_taken() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        for key in ["", "nonsense", &key('c'), &key('a').replace("abc", "abd")] {
            let (response, _body) = client.begin(key, &[]).await; // it sends no body
            let (status, details, _) = answer(response).await;
            assert_eq!((status, &*details), (GrpcStatus::UNAUTHENTICATED, "auth_failed"));
        }
    });
    let ended = house.ended.lock().unwrap();
    assert_eq!(ended.iter().filter(|call| call.bad_key.is_some()).count(), 4);
}

#[test]
fn l19_messages_of_a_tenant_are_bounded_in_bytes_before_they_come() {
    let house = House::new();
    let half = usize::try_from(HELD_BYTES_MAX / 2).unwrap();
    house.runtime.block_on(async {
        let client = house.client().await;
        let (first, mut body) = client.begin(&key('a'), &[]).await;
        body.send_data(framed(0, &vec![0; half])[..5].to_vec().into(), false).unwrap();
        let held = &house.server.held_bytes;
        while held.total() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(held.total(), half as u64, "its head says so, and nothing else has come");
        let (status, details, _) = client.write(&key('a'), &[0; 1_000]).await;
        assert_eq!((status.name(), &*details), ("RESOURCE_EXHAUSTED", "ingest_buffer_full"));
        assert_eq!(client.write(&key('b'), &batch(1.0)).await.0, OK, "others have their share");
        body.send_reset(h2::Reason::CANCEL);
        drop(first);
        while held.total() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, OK);
    });
}

#[test]
fn l27_a_write_goes_on_when_its_client_has_left() {
    let house = House::new();
    let workers = &house.server.write_workers;
    let gate = Arc::new(Gate::default()); // of the workers alone: keys must be found
    gate.set(true);
    house.runtime.block_on(async {
        let client = house.client().await;
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, OK);
        while workers.jobs() > 0 {
            tokio::task::yield_now().await; // a job counts until just after its answer
        }
        let stuck: Vec<_> = (0..workers.threads_max())
            .map(|_| {
                let gate = Arc::clone(&gate);
                workers.run(&"a1".into(), move || gate.pass())
            })
            .collect();
        let waiting = workers.jobs();
        let (response, mut body) = client.begin(&key('a'), &[]).await;
        body.send_data(framed(0, &batch(2.0)), true).unwrap();
        while workers.jobs() == waiting {
            tokio::task::yield_now().await; // until the batch waits for a thread
        }
        drop((response, body, client));
        while house.connections.len() > 0 {
            tokio::task::yield_now().await;
        }
        gate.set(false);
        for each in stuck {
            each.await.unwrap();
        }
    });
    workers.close();
    let open = house.server.parts.planes.open("a1", "a").unwrap();
    assert_eq!(open.for_a_call().unwrap().stats().unwrap().counts.rows, 2);
    assert_eq!(house.server.held_bytes.total(), 0);
}

#[test]
fn b23_a_lookup_that_hangs_stops_no_other_call() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, OK);
        house.gate.set(true);
        let stuck = client.clone();
        let stuck = tokio::spawn(async move { stuck.write(&key('b'), &batch(1.0)).await });
        for _ in 0..10 {
            assert_eq!(client.write(&key('a'), &batch(2.0)).await.0, OK);
        }
        let (status, details, _) = stuck.await.unwrap();
        assert_eq!((status.name(), &*details), ("UNAVAILABLE", "entitlement_unavailable"));
        house.gate.set(false);
        assert_eq!(client.write(&key('b'), &batch(1.0)).await.0, OK);
    });
}

#[test]
fn l22_calls_that_have_begun_are_answered_when_it_stops() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, OK);
        let (response, mut body) = client.begin(&key('a'), &[]).await;
        while house.server.calls.total() == 0 {
            tokio::task::yield_now().await;
        }
        house.stopping.send_replace(true);
        body.send_data(framed(0, &batch(2.0)), true).unwrap();
        assert_eq!(answer(response).await.0, OK);
        while house.connections.len() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn l6_a_refusal_says_when_to_come_back_if_it_may() {
    let house = House::new();
    let of = |code| house.server.parts.statuses.of(&CallRefusal::new(code));
    let (status, trailers) = of("telemetry_unavailable");
    assert_eq!(status, GrpcStatus::UNAVAILABLE);
    // google.rpc.Status: code 14, the details, and RetryInfo of 5 seconds; base64 without padding.
    let expected = concat!(
        "CA4SFXRlbGVtZXRyeV91bmF2YWlsYWJsZRowCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2",
        "dsZS5ycGMuUmV0cnlJbmZvEgQKAggF",
    );
    assert_eq!(retry_of(&trailers), Some(expected));
    assert_eq!(retry_of(&of("batch_too_large").1), None);
    let (status, trailers) = of("a code that nobody knows");
    assert_eq!(status, GrpcStatus::INTERNAL);
    assert_eq!(retry_of(&trailers), None);
}

#[test]
fn o9_a_write_that_is_refused_says_if_it_may_be_stored() {
    let house = House::new();
    let of = |refusal: &CallRefusal| {
        let (_, trailers) = house.server.parts.statuses.of(refusal);
        trailers.get("x-write-outcome").map(|word| word.to_str().unwrap().to_owned())
    };
    let refused = |code| CallRefusal::new(code).of_write();
    for code in ["telemetry_unavailable", "entitlement_unavailable", "internal"] {
        assert_eq!(of(&refused(code)).as_deref(), Some("none"), "{code}");
        let write_outcome = Some(WriteOutcome::Unknown);
        let lost = CallRefusal { write_outcome, ..CallRefusal::new(code) }.of_write();
        assert_eq!(of(&lost).as_deref(), Some("unknown"), "{code}");
    }
    assert_eq!(of(&refused("batch_too_large")), None, "a client's mistake");
    assert_eq!(of(&CallRefusal::new("telemetry_unavailable")), None, "no write");
}

#[test]
fn jobs_of_one_owner_leave_threads_to_others_and_a_panic_ends_one() {
    let workers = crate::workers::Workers::new("test", 2, 1, &House::new().server.parts.accounting);
    let gate = Arc::new(Gate::default());
    gate.set(true);
    let stuck: Vec<_> = (0..3)
        .map(|_| {
            let gate = Arc::clone(&gate);
            workers.run(&"a".into(), move || gate.pass())
        })
        .collect();
    assert_eq!(workers.run(&"b".into(), || 1).blocking_recv(), Ok(1));
    assert!(workers.run(&"b".into(), || panic!("a bug")).blocking_recv().is_err());
    assert_eq!(workers.run(&"b".into(), || 2).blocking_recv(), Ok(2));
    gate.set(false);
    workers.close();
    assert!(stuck.into_iter().all(|each| each.blocking_recv() == Ok(())));
}
