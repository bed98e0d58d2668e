//! O6: clients without a good key have a loop of their own.

use std::sync::mpsc;

use super::*;

#[test]
fn o6_a_message_does_not_wait_for_clients_without_a_key() {
    let house = House::new();
    let admission = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (theirs, serving) = house.connection();
    admission.spawn(serving);
    house.runtime.block_on(async {
        let client = Client::over(theirs).await;
        assert_eq!(client.write(&key('a'), &batch(1.0)).await.0, GrpcStatus::OK);
        let (release, released) = mpsc::channel();
        let (begin, begun) = oneshot::channel();
        admission.spawn(async move {
            begin.send(()).unwrap();
            released.recv_timeout(Duration::from_secs(30))
        });
        begun.await.unwrap();
        assert_eq!(client.write(&key('a'), &batch(2.0)).await.0, GrpcStatus::OK);
        release.send(()).expect("the message was stored while the other loop was busy");
    });
}
