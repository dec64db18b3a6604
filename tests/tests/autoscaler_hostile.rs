//! The autoscaler asks 1,000 pods that are well, and some that do whatever a
//! broken or hostile one could.

use std::time::Duration;
use tests::scraped::{Settings, run};

#[tokio::test]
async fn a_thousand_are_decided_on_in_time_whatever_some_others_answer() {
    let settings = Settings {
        well: 1000,
        hostile: true,
        watched: Duration::from_secs(20),
        patience: Duration::from_secs(60),
        slack: 10,
    };
    let report = run(settings).await.unwrap();
    println!("{report}");
    report.assert();
}
