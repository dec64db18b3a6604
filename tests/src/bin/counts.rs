//! Holds the instructions that the sidecar spends on a request against
//! `bench/counts.json`: `counts [--agree]` (see `tests/src/counts`).
//!
//! Exit codes: 0 within the budget, 1 beyond it or not counted, 64 a command
//! line that makes no sense. `--agree` writes today's counts down instead.

use std::process::ExitCode;
use tests::counts::{Budget, Held, TOLERANCE, WORKS, count};

const USAGE_CODE: u8 = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let agree = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--agree") => true,
        Some(other) => {
            eprintln!("counts: {other}: there is no such option\nusage: counts [--agree]");
            return ExitCode::from(USAGE_CODE);
        }
    };
    match run(agree).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("counts: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True when all are within their budgets.
async fn run(agree: bool) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let mut budget = Budget::read()?;
    let mut kept = true;
    println!("{:<16} {:>12} {:>12}", "work", "instructions", "budget");
    for work in &WORKS {
        let counted = count(work, folder.path()).await?;
        let agreed = budget.of(work.name).map_or_else(|| "none".to_owned(), |budget| budget.to_string());
        let verdict = match budget.judge(work.name, counted) {
            Held::Kept => "",
            Held::Exceeded => "TOO MUCH",
            Held::Undercut => "less: lower the budget with `counts --agree`",
        };
        kept &= budget.judge(work.name, counted) != Held::Exceeded;
        println!("{:<16} {counted:>12} {agreed:>12}  {verdict}", work.name);
        budget.agree(work.name, counted);
    }
    if agree {
        budget.write()?;
        return Ok(true);
    }
    if !kept {
        println!("a request costs over {:.0} % more than was agreed on", TOLERANCE * 100.0);
    }
    Ok(kept)
}
