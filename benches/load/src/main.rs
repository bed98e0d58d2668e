//! Recorded requests over many connections, paced or as fast as they are answered.
//!
//! `fleetcast-load http STEP DIRECTORY ADDRESS` and
//! `fleetcast-load grpc STEP DIRECTORY ADDRESS AUTHORITY KEY`.
//! Each file of the directory has what one sender sends in turn, over and over: whole HTTP requests,
//! or messages of gRPC, as `Recorded::read` says; with each pass all of their times are STEP seconds
//! later. Connections take the files in turn. A line of JSON on stdin is one drive, and is answered
//! by one line on stdout, once a first line has said that all is ready:
//! `{"connections": 4, "seconds": 2, "period_seconds": 1}`. Connections of gRPC stay open from one
//! drive to the next, those of HTTP are opened anew.

mod drive;
mod grpc;
mod hpack;
mod http;
mod recorded;

use std::env;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::drive::{Pace, drive};
use crate::grpc::{Channel, Target};
use crate::http::Http;
use crate::recorded::{Recorded, Times};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Workers share connections out as they come; a burst of few may end with one of them.
const FEW: usize = 16;
const BETWEEN_FEW: Duration = Duration::from_millis(30);
/// Requests by which a sender of a file is ahead of the one before.
const AHEAD: usize = 5;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["http", step, directory, address] => {
            serve_http(address.parse()?, recorded(directory, Times::Text, step)?)
        }
        ["grpc", step, directory, address, authority, key] => {
            let target = Target::new(address.parse()?, Path::new(authority), key)?;
            serve_grpc(&target, &recorded(directory, Times::Varint, step)?)
        }
        _ => Err("usage: fleetcast-load http STEP DIRECTORY ADDRESS\n       \
                  fleetcast-load grpc STEP DIRECTORY ADDRESS AUTHORITY KEY"
            .into()),
    }
}

fn serve_http(address: SocketAddr, mut senders: Vec<Recorded>) -> Outcome<()> {
    serve(|wish| {
        let count = connections(wish)?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            connections.push(Http::open(address, requests(&senders, number)?)?);
            if count <= FEW {
                thread::sleep(BETWEEN_FEW);
            }
        }
        let answer = drive(&mut connections, pace(wish)?)?;
        // Times go on from one drive to the next.
        for (sender, connection) in senders.iter_mut().zip(connections) {
            *sender = connection.into_requests();
        }
        Ok(answer)
    })
}

fn serve_grpc(target: &Target, senders: &[Recorded]) -> Outcome<()> {
    let mut channels: Vec<Channel> = Vec::new();
    serve(|wish| {
        let count = connections(wish)?;
        while channels.len() < count {
            channels.push(Channel::open(target, requests(senders, channels.len())?)?);
        }
        Ok(drive(&mut channels[..count], pace(wish)?)?)
    })
}

/// Requests of a connection: some may send the same ones, but no time twice.
fn requests(senders: &[Recorded], number: usize) -> Outcome<Recorded> {
    let mut requests = senders[number % senders.len()].clone();
    if number >= senders.len() {
        if requests.goes_on() {
            return Err("more connections than files of times that go on".into());
        }
        requests.skip(AHEAD * (number / senders.len()));
    }
    Ok(requests)
}

fn recorded(directory: &str, times: Times, step_seconds: &str) -> Outcome<Vec<Recorded>> {
    let step_seconds = step_seconds.parse()?;
    let files = Recorded::files(Path::new(directory))?;
    let senders: io::Result<Vec<_>> =
        files.iter().map(|file| Recorded::read(file, times, step_seconds)).collect();
    let senders = senders?;
    if senders.is_empty() { Err("no file of requests".into()) } else { Ok(senders) }
}

fn serve(mut work: impl FnMut(&Value) -> Outcome<Value>) -> Outcome<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", json!({}))?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let answer = work(&serde_json::from_str(&line?)?)?;
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn connections(wish: &Value) -> Outcome<usize> {
    let count = wish["connections"].as_u64().ok_or("connections: a number")?;
    Ok(usize::try_from(count)?)
}

fn pace(wish: &Value) -> Outcome<Pace> {
    let seconds = wish["seconds"].as_f64().ok_or("seconds: a number")?;
    let period = wish["period_seconds"].as_f64().map(Duration::from_secs_f64);
    Ok(Pace { seconds, period })
}
