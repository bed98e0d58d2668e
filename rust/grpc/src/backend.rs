//! The connection to the server behind the front.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{Builder, ResponseFuture, SendRequest};
use http::Request;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// The server behind the front. One connection serves all calls, and is opened again if it ends.
pub(crate) struct Backend {
    path: PathBuf,
    connection: Mutex<Option<SendRequest<Bytes>>>,
}

impl Backend {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, connection: Mutex::default() }
    }

    /// Begins a call.
    pub(crate) async fn begin(
        &self,
        head: Request<()>,
    ) -> io::Result<(ResponseFuture, SendStream<Bytes>)> {
        let mut ready = self.ready().await?;
        ready.send_request(head, false).map_err(io::Error::other)
    }

    async fn ready(&self) -> io::Result<SendRequest<Bytes>> {
        let mut connection = self.connection.lock().await;
        if let Some(known) = connection.take()
            && let Ok(ready) = known.ready().await
        {
            return Ok(connection.insert(ready).clone());
        }
        let stream = UnixStream::connect(&self.path).await?;
        let (sender, driver) = builder().handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(driver); // ends with the connection; the next call notices it
        let ready = sender.ready().await.map_err(io::Error::other)?;
        Ok(connection.insert(ready).clone())
    }
}

/// Builds the client. The server behind is trusted, and its answers to calls that clients have
/// reset are no attack. Their number never ends the connection, which other calls share.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.data_frame_budget(usize::MAX).max_local_error_reset_streams(None);
    builder
}
