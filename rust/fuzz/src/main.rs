//! `make fuzz`: all targets for some time, each with a line of figures and its findings.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fleetcast_fuzz::engine::{Budget, catch_panics, fuzz};
use fleetcast_fuzz::targets::{TARGETS, Target};

const USAGE: &str = "fuzz [TARGET...] [--seconds N] [--seed N] [--findings FOLDER]";

fn main() -> ExitCode {
    let mut seconds = 60;
    let mut seed = 1;
    let mut folder = "target/fuzz".to_owned();
    let mut wanted: Vec<&Target> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--seconds" => seconds = number().unwrap_or_else(|| usage()),
            "--seed" => seed = number().unwrap_or_else(|| usage()),
            "--findings" => folder = arguments.next().unwrap_or_else(|| usage()),
            name => wanted
                .push(TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| usage())),
        }
    }
    if wanted.is_empty() {
        wanted = TARGETS.iter().collect();
    }
    catch_panics();
    let mut found = 0;
    for target in wanted {
        let began = Instant::now();
        let report = fuzz(target, Budget::Time(Duration::from_secs(seconds)), seed);
        eprintln!(
            "{:10} {:>11} executions in {:.0} s, {} branches, {} inputs kept, at most {} KiB, {} findings",
            target.name,
            report.executions,
            began.elapsed().as_secs_f64(),
            report.branches,
            report.corpus,
            report.peak_bytes / 1024,
            report.findings.len(),
        );
        for (number, (what, input)) in report.findings.iter().enumerate() {
            let path = Path::new(&folder).join(format!("{}-{number}", target.name));
            eprintln!("  {what}\n    {}", path.display());
            if let Err(error) =
                std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input))
            {
                eprintln!("    cannot be kept: {error}");
            }
            found += 1;
        }
    }
    ExitCode::from(u8::from(found > 0))
}

fn usage() -> ! {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    eprintln!("{USAGE}\ntargets: {}", names.join(", "));
    std::process::exit(2)
}
