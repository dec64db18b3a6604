//! An app that answers before it has read the body (the campaign
//! `early-answers` at a reduced size).

use tests::front::Through;
use tests::sidecar::early_answer;

#[tokio::test]
async fn the_answer_of_an_app_that_reads_no_more_always_arrives() {
    early_answer::run(Through::Sidecar, 40).await.unwrap().assert();
}
