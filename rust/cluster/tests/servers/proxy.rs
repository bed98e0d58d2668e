//! A proxy before the database that cuts a connection at a byte, and may let nobody else in.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Way of the bytes that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    FromServer,
}

/// Bytes that still pass on a way, below 0 for any number.
struct Fuse {
    way: Mutex<Way>,
    left: AtomicI64,
}

impl Fuse {
    /// Bytes of `count` that pass, fewer where the connection is to be cut behind them.
    fn pass(&self, way: Way, count: usize) -> usize {
        let armed = self.way.lock().unwrap();
        let left = self.left.load(Ordering::Acquire);
        let count = i64::try_from(count).unwrap();
        if *armed != way || left < 0 {
            return usize::try_from(count).unwrap();
        }
        // Once it has cut, everything passes.
        let rest = if count >= left { -1 } else { left - count };
        self.left.store(rest, Ordering::Release);
        usize::try_from(count.min(left)).unwrap()
    }
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    fuse: Arc<Fuse>,
    is_full: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn new(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fuse = Arc::new(Fuse { way: Mutex::new(Way::ToServer), left: AtomicI64::new(-1) });
        let is_full = Arc::new(AtomicBool::new(false));
        let (server, shared, refuses) =
            (server.to_owned(), Arc::clone(&fuse), Arc::clone(&is_full));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if refuses.load(Ordering::Acquire) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&server) else { continue };
                let pairs =
                    [(&client, &server, Way::ToServer), (&server, &client, Way::FromServer)];
                for (from, to, way) in pairs {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let fuse = Arc::clone(&shared);
                    thread::spawn(move || pump(from, to, way, &fuse));
                }
            }
        });
        Self { address, fuse, is_full }
    }

    /// Ends each further connection at once, as a server does that has as many as it takes.
    pub(crate) fn fill(&self) {
        self.is_full.store(true, Ordering::Release);
    }

    /// Cuts the connection on which byte `left` of a way passes, counted from now on.
    pub(crate) fn cut_after(&self, way: Way, left: i64) {
        let mut armed = self.fuse.way.lock().unwrap();
        *armed = way;
        self.fuse.left.store(left, Ordering::Release);
    }

    /// True where it has not cut since; it will not then.
    pub(crate) fn disarm(&self) -> bool {
        let _armed = self.fuse.way.lock().unwrap();
        self.fuse.left.swap(-1, Ordering::AcqRel) >= 0
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, way: Way, fuse: &Fuse) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        let passed = fuse.pass(way, count);
        if count == 0 || to.write_all(&buffer[..passed]).is_err() || passed < count {
            break;
        }
    }
    // Either may be closed already.
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}
