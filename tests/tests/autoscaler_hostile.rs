//! The autoscaler asks 1,000 pods that are well, and some that do whatever a
//! broken or hostile one could.

use std::time::Duration;
use tests::scraped::{Settings, run};

/// A question a second, a decision each two seconds, times ten for a machine
/// that has other things to do.
const FOLLOWED_MAX: Duration = Duration::from_secs(30);
const GROWTH_MAX: u64 = 24 << 20;

#[tokio::test]
async fn a_thousand_are_decided_on_in_time_whatever_some_others_answer() {
    let settings =
        Settings { well: 1000, hostile: true, watched: Duration::from_secs(20), patience: Duration::from_secs(60) };
    let seen = run(settings).await;
    println!("followed after {:?}, {:.0} answers a second", seen.followed, seen.answers);
    println!("memory {:?} KiB, faults {:?}", (seen.memory.0 >> 10, seen.memory.1 >> 10), seen.faults);
    assert!(seen.followed.iter().all(|took| *took < FOLLOWED_MAX), "{:?}", seen.followed);
    assert!(seen.memory.1 < seen.memory.0 + GROWTH_MAX, "{:?}", seen.memory);
    assert!(seen.faults.iter().all(|(_, counted, least)| counted >= least), "each is counted: {:?}", seen.faults);
    assert!(seen.misled.is_empty(), "nothing is decided from nonsense: {:?}", seen.misled);
}
