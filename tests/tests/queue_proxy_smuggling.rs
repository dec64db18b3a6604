//! Requests that two parsers may take for different ones: refused, or made one
//! that nobody can misread.

use tests::front::Through;
use tests::sidecar::smuggling::{self, list, list_h2};

#[tokio::test]
async fn over_http1_the_app_never_gets_two_requests_for_one() {
    let report = smuggling::run(Through::Sidecar, list::all()).await;
    println!("{report}");
    report.assert();
}

#[tokio::test]
async fn over_http2_the_app_never_gets_two_requests_for_one() {
    let report = smuggling::run(Through::Sidecar, list_h2::all()).await;
    println!("{report}");
    report.assert();
}
