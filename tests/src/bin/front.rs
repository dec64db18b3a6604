//! An activator in a process of its own, for tests (see `tests::front`).

use std::process::ExitCode;

fn main() -> ExitCode {
    tests::front::program::main(std::env::args().skip(1))
}
