//! L20, L21: connections that are silent, gone or old, on a clock that advances by itself.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::*;

/// Runs a test on a clock that jumps to the next timer once every task waits.
fn run<F: Future<Output = ()>>(test: F) {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(test);
}

/// A connection that is served by the runtime of the test.
fn served(house: &House) -> (DuplexStream, JoinHandle<()>) {
    let (theirs, task) = house.connection();
    (theirs, tokio::spawn(task))
}

#[test]
fn l20_a_client_that_answers_no_ping_is_let_go_of() {
    let house = House::new();
    run(async {
        let (client, served) = served(&house);
        let (_sender, driver): (SendRequest<Bytes>, _) =
            h2::client::handshake(client).await.unwrap();
        let mut driver = Box::pin(driver);
        // The client speaks for a second, and then its machine is gone.
        let _ = timeout(Duration::from_secs(1), &mut driver).await;
        let since = Instant::now();
        served.await.unwrap();
        let seconds = since.elapsed().as_secs();
        assert!((79..=80).contains(&seconds), "{seconds}");
    });
}

#[test]
fn l20_l21_a_silent_client_stays_for_an_hour_and_its_grace() {
    let house = House::new();
    run(async {
        let (client, served) = served(&house);
        let (_sender, driver): (SendRequest<Bytes>, _) =
            h2::client::handshake(client).await.unwrap();
        let since = Instant::now();
        driver.await.unwrap(); // the client is told to leave, and does
        served.await.unwrap();
        let minutes = since.elapsed().as_secs_f64() / 60.0;
        assert!((54.0..67.0).contains(&minutes), "{minutes}");
    });
}

#[test]
fn a_client_that_sends_no_preface_has_ten_seconds() {
    let house = House::new();
    run(async {
        let since = Instant::now();
        let (_client, served) = served(&house);
        served.await.unwrap();
        assert_eq!(since.elapsed().as_secs(), 10);
    });
}
