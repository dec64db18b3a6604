//! Clients that ask for too much of an activator with a sidecar behind it.

use tests::front::Through;
use tests::sidecar::floods;

#[tokio::test]
async fn slow_senders_cost_little_each() {
    floods::slow_senders_cost_little_each(Through::Both).await;
}

#[tokio::test]
async fn heads_of_100_000_bytes_pass_and_of_more_than_a_mebibyte_do_not() {
    floods::heads_of_100_000_bytes_pass_and_of_more_than_a_mebibyte_do_not(Through::Both).await;
}

#[tokio::test]
async fn ten_thousand_streams_opened_and_reset_leave_nothing_behind() {
    floods::ten_thousand_streams_opened_and_reset_leave_nothing_behind(Through::Both).await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off() {
    floods::a_head_that_never_ends_is_cut_off(Through::Both).await;
}

#[tokio::test]
async fn settings_and_pings_that_nobody_reads_the_answers_to_do_not_pile_up() {
    floods::settings_and_pings_that_nobody_reads_the_answers_to_do_not_pile_up(Through::Both).await;
}

#[tokio::test]
async fn clients_that_open_no_window_do_not_make_it_buffer_whole_answers() {
    floods::clients_that_open_no_window_do_not_make_it_buffer_whole_answers(Through::Both).await;
}
