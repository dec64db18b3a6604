//! What the sidecar has to stand alone, with an activator before it: requests
//! that two parsers may read differently, and answers that come early.

use tests::front::Through;
use tests::sidecar::early_answer;
use tests::sidecar::smuggling::{self, list, list_h2};

#[tokio::test]
async fn over_http1_the_app_never_gets_two_requests_for_one() {
    smuggling::run(Through::Both, list::all()).await.assert();
}

#[tokio::test]
async fn over_http2_the_app_never_gets_two_requests_for_one() {
    smuggling::run(Through::Both, list_h2::all()).await.assert();
}

#[tokio::test]
async fn the_answer_of_an_app_that_reads_no_more_always_arrives() {
    early_answer::run(Through::Both, 20).await.unwrap().assert();
}

#[tokio::test]
async fn and_so_it_does_when_the_pod_has_to_be_woken() {
    early_answer::run(Through::BothFromZero, 10).await.unwrap().assert();
}
