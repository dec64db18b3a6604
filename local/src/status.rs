//! placeholder
pub(crate) fn main(_: &crate::cli::StatusFlags) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
