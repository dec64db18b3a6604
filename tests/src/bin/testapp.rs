//! The app that the tests of the floor serve (see `tests::testapp`).

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all, so that what follows counts as the app's own start.
    let began = tests::testapp::monotonic_ns();
    tests::testapp::main(began, std::env::args_os().skip(1))
}
