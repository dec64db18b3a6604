//! The app that the tests of the floor serve (see `tests::testapp`).

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: what follows is the app's own start.
    let born = [tests::testapp::process_made_ns(), tests::testapp::monotonic_ns()];
    tests::testapp::main(born, std::env::args_os().skip(1))
}
