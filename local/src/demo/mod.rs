//! placeholder
pub(crate) mod sample_app;
pub(crate) fn main(_: &crate::cli::DemoFlags) -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
