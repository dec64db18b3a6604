//! An app that closes idle connections (the campaign `reuse` at a reduced
//! size).

use tests::sidecar::reuse;

#[tokio::test]
async fn an_app_that_closes_idle_connections_loses_nothing_and_repeats_nothing() {
    let size = reuse::Size { close_calls: 200, brisk: 200, chains: 8 };
    reuse::run(size).await.unwrap().assert();
}
