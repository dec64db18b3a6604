//! Crowds that leave the sidecar's queue.

use tests::sidecar::waves::{self, Speaks};

#[tokio::test]
async fn who_closes_the_connection_leaves_the_queue() {
    waves::run(Speaks::Http1, 50).await.unwrap().assert();
}

#[tokio::test]
async fn who_resets_the_stream_leaves_the_queue() {
    waves::run(Speaks::Http2, 50).await.unwrap().assert();
}
