//! The autoscaler under many stats, at a tenth of the campaign's size: memory
//! as it should be, times with room for a machine that is busy.

use std::time::Duration;
use tests::stat_load::{Settings, run};

#[test]
fn many_revisions_are_decided_on_in_time_and_idle_ones_cost_little() {
    let (load, window) = (Duration::from_secs(10), Duration::from_secs(6));
    let settings = Settings { revisions: 2000, pods: 5, streams: 16, load, window, slack: 20 };
    run(settings).expect("it can be tried").assert();
}
