//! Recorded requests over many connections, paced or as fast as they are answered.
//!
//! `fleetcast-load http ADDRESS DIRECTORY` and `fleetcast-load grpc ADDRESS AUTHORITY KEY DIRECTORY`.
//! Each file of the directory has what one sender sends in turn, over and over: whole HTTP requests,
//! or messages of gRPC, each behind its length (u32, little endian). Connections take the files in
//! turn. A line of JSON on stdin is one drive, and is answered by one line on stdout, once a first
//! line has said that all is ready: `{"connections": 4, "seconds": 2, "period_seconds": 1}`.
//! Connections of gRPC stay open from one drive to the next, those of HTTP are opened anew.

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
use crate::recorded::Recorded;

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
        ["http", address, directory] => serve_http(address.parse()?, Path::new(directory), 0),
        ["http", address, directory, step] => {
            serve_http(address.parse()?, Path::new(directory), step.parse()?)
        }
        ["grpc", address, authority, key, directory] => {
            let target = Target::new(address.parse()?, Path::new(authority), key)?;
            serve_grpc(&target, Path::new(directory))
        }
        _ => Err("usage: fleetcast-load http ADDRESS DIRECTORY [STEP_SECONDS]\n       \
                  fleetcast-load grpc ADDRESS AUTHORITY KEY DIRECTORY"
            .into()),
    }
}

fn serve_http(address: SocketAddr, directory: &Path, step_seconds: i64) -> Outcome<()> {
    let mut files = recorded(directory, step_seconds)?;
    serve(|wish| {
        let count = connections(wish)?;
        let mut connections = Vec::with_capacity(count);
        for number in 0..count {
            if step_seconds == 0 {
                let mut requests = files[number % files.len()].clone();
                requests.skip(AHEAD * (number / files.len()));
                connections.push(Http::open(address, requests)?);
            } else {
                // Times go on from one drive to the next, so a file has one sender.
                let file = files.get(number).ok_or("as many files as connections")?;
                connections.push(Http::open(address, file.clone())?);
            }
            if count <= FEW {
                thread::sleep(BETWEEN_FEW);
            }
        }
        let answer = drive(&mut connections, pace(wish)?)?;
        if step_seconds != 0 {
            for (file, connection) in files.iter_mut().zip(connections) {
                *file = connection.into_requests();
            }
        }
        Ok(answer)
    })
}

fn serve_grpc(target: &Target, directory: &Path) -> Outcome<()> {
    let files = recorded(directory, 0)?;
    let mut channels: Vec<Channel> = Vec::new();
    serve(|wish| {
        let count = connections(wish)?;
        while channels.len() < count {
            let number = channels.len();
            let mut messages = files[number % files.len()].clone();
            messages.skip(AHEAD * (number / files.len()));
            channels.push(Channel::open(target, messages)?);
        }
        Ok(drive(&mut channels[..count], pace(wish)?)?)
    })
}

fn recorded(directory: &Path, step_seconds: i64) -> Outcome<Vec<Recorded>> {
    let files = Recorded::files(directory)?;
    let recorded: io::Result<Vec<_>> =
        files.iter().map(|file| Recorded::read(file, step_seconds)).collect();
    let recorded = recorded?;
    if recorded.is_empty() { Err("no file of requests".into()) } else { Ok(recorded) }
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
