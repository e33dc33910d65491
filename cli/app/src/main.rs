//! The `assize` command: arguments, progress, rendering, exit status. What it does is in `cli/verbs`.

mod arguments;
mod interrupt;
mod output;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use assize_codes::{Code, E0801, E0902, E1001};
use assize_core::RunControl;
use assize_host::{Programs, keeper};
use assize_plan::Hash;
use assize_reader::page::render_html;
use assize_reader::plot::render_svg_calibration;
use assize_reader::report::matrix_csv;
use assize_reader::text::render_text;
use assize_units::Ratio;
use assize_verbs::bench::{BenchOptions, bench};
use assize_verbs::calibrate::{
    Attached, PeerProcess, calibrate, full_amounts, quick_amounts, serve_peer,
};
use assize_verbs::demo::demo;
use assize_verbs::doctor::doctor;
use assize_verbs::run::{RunOptions, run};
use assize_verbs::study::{Compiled, DiagnosticForm, compile_file, preview};
use assize_verbs::{Problem, Status, plans, report, sim, verify};
use clap::{CommandFactory, Parser};

use arguments::{Arguments, DiagnosticFormat, Format, ReportFormat, Verb};
use output::{Terminal, data, exit, talk};
use show::progress::Progress;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let terminal = Terminal::look();
    let result = match arguments.verb {
        Verb::Check(it) => check(&it, terminal),
        Verb::Plan(it) => plan(&it, terminal),
        Verb::Freeze(it) => freeze(&it, terminal),
        Verb::Run(it) => run_plan(&it, terminal),
        Verb::Verify(it) => verify_evidence(&it),
        Verb::Report(it) => report_evidence(&it, terminal),
        Verb::Bench(it) => bench_endpoint(it, terminal),
        Verb::Sim(it) => serve_sim(&it),
        Verb::Doctor(it) => Ok(look_at_host(&it, terminal)),
        Verb::Calibrate(it) => calibrate_here(&it),
        Verb::Demo(it) => run_demo(it.out, terminal),
        Verb::Explain(it) => explain(&it.code),
        Verb::Completions(it) => {
            let mut script = Vec::new();
            clap_complete::generate(it.shell, &mut Arguments::command(), "assize", &mut script);
            data(&String::from_utf8_lossy(&script));
            Ok(Status::Done)
        }
        Verb::Peer => {
            serve_peer(std::io::stdin().lock(), std::io::stdout().lock()).map(|()| Status::Done)
        }
        Verb::Keeper(it) => return keeper::main(&it.arguments),
    };
    match result {
        Ok(status) => exit(status),
        Err(problem) => {
            output::problem(&problem, terminal);
            exit(problem.status)
        }
    }
}

fn check(it: &arguments::Check, terminal: Terminal) -> Result<Status, Problem> {
    let compiled = compile_file(&it.study)?;
    let form = match it.format {
        DiagnosticFormat::Human => DiagnosticForm::Human {
            colour: terminal.stdout_colour,
        },
        DiagnosticFormat::Json => DiagnosticForm::Json,
        DiagnosticFormat::Github => DiagnosticForm::Github,
    };
    data(&compiled.diagnostics.render(form));
    if it.format == DiagnosticFormat::Human {
        talk(&show::study::checked(&compiled));
    }
    let warned = it.deny_warnings && !compiled.diagnostics.is_empty();
    Ok(if compiled.diagnostics.has_errors() || warned {
        Status::No
    } else {
        Status::Done
    })
}

/// The compiled study; where it has errors they are shown and there is none.
fn compile(study: &Path, terminal: Terminal) -> Result<Option<Compiled>, Problem> {
    let compiled = compile_file(study)?;
    talk(&compiled.diagnostics.render(DiagnosticForm::Human {
        colour: terminal.stderr_colour,
    }));
    if compiled.bundle.is_none() {
        talk(&show::study::checked(&compiled));
        return Ok(None);
    }
    Ok(Some(compiled))
}

fn plan(it: &arguments::PlanArguments, terminal: Terminal) -> Result<Status, Problem> {
    let Some(compiled) = compile(&it.study, terminal)? else {
        return Ok(Status::No);
    };
    let preview = preview(&compiled);
    match it.format {
        Format::Human => data(&show::study::preview(&preview, terminal.width)),
        Format::Json => data(&json(&preview)),
    }
    Ok(Status::Done)
}

fn freeze(it: &arguments::Freeze, terminal: Terminal) -> Result<Status, Problem> {
    let Some(compiled) = compile(&it.study, terminal)? else {
        return Ok(Status::No);
    };
    let bundle = compiled.bundle.expect("compile returned it");
    let folder = it
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("{}.plan", bundle.plan.study)));
    plans::write(&folder, &bundle)?;
    let command = show::study::run_line(&folder, &bundle)?;
    match it.format {
        Format::Human => {
            data(&format!("{}\n", bundle.hash));
            talk(&format!(
                "wrote {}\nexecute it with: {command}\n",
                folder.display()
            ));
        }
        Format::Json => data(&json(&serde_json::json!({
            "format": "assize-freeze-answer/1",
            "plan": bundle.hash,
            "folder": folder.display().to_string(),
            "run": command,
        }))),
    }
    Ok(Status::Done)
}

fn run_plan(it: &arguments::Run, terminal: Terminal) -> Result<Status, Problem> {
    let bundle = plans::open(&it.plan)?;
    let out = it
        .out
        .clone()
        .unwrap_or_else(|| plans::evidence_folder(&it.plan));
    let calibration = it.calibration.as_deref().map(Attached::open).transpose()?;
    for warning in calibration.iter().flat_map(Attached::warnings) {
        output::warning(&warning, terminal);
    }
    let control = Arc::new(RunControl::default());
    interrupt::stops(&control)?;
    let mut progress = Progress::start(&bundle.plan, control.clone(), terminal);
    let mut ask = |deeds: &assize_plan::Deeds| show::consent::ask(&bundle, deeds);
    let options = RunOptions {
        out: &out,
        approve: it.approve.as_deref(),
        ask: if terminal.can_ask {
            Some(&mut ask)
        } else {
            None
        },
        calibration: calibration.as_ref(),
        programs: programs()?,
        environment: &environment,
        care: it.care.request(),
        control: &control,
    };
    let ran = run(&bundle, options, &mut |event| progress.show(event));
    progress.finish();
    let ran = ran?;
    let status = ran.status();
    match it.format {
        Format::Human => talk(&show::run::ran(&ran)),
        Format::Json => data(&json(&show::run::json(&ran, &bundle))),
    }
    if let Some(failure) = ran.outcome.failure {
        output::problem(&failure.into(), terminal);
    }
    Ok(status)
}

fn verify_evidence(it: &arguments::Verify) -> Result<Status, Problem> {
    let seal = seal(it.seal.as_deref())?;
    let analysis = verify::verify(&it.evidence, seal)?;
    match it.format {
        Format::Human => data(&show::verify::verified(&analysis)),
        Format::Json => data(&json(&show::verify::json(&analysis))),
    }
    Ok(verify::status(&analysis))
}

fn report_evidence(it: &arguments::Report, terminal: Terminal) -> Result<Status, Problem> {
    let seal = seal(it.seal.as_deref())?;
    let analysis = verify::verify(&it.evidence, seal)?;
    let report = report::report(&analysis);
    if let Some(path) = &it.html {
        write_file(path, &render_html(&report))?;
        talk(&format!("wrote {}\n", path.display()));
    }
    match it.format {
        ReportFormat::Human => data(&render_text(
            &report,
            terminal.width,
            terminal.stdout_colour,
        )),
        ReportFormat::Json => data(&report.to_json()),
        ReportFormat::Csv => data(&matrix_csv(&report)),
    }
    Ok(report::status(&analysis, it.require.is_some()))
}

fn bench_endpoint(it: arguments::Bench, terminal: Terminal) -> Result<Status, Problem> {
    let rate = match it.rate.as_deref() {
        None => None,
        Some(text) => Some(Ratio::parse_decimal(text).ok_or_else(|| {
            Problem::usage(
                E1001,
                format!("--rate {text} is no number of requests a second"),
            )
            .help("a plain decimal above 0, such as 5 or 0.5")
        })?),
    };
    let prompts = read_file(&it.prompts)?;
    let control = Arc::new(RunControl::default());
    interrupt::stops(&control)?;
    let mut progress = Progress::of_requests(u64::from(it.requests), control.clone(), terminal);
    let options = BenchOptions {
        url: &it.url,
        prompts,
        model: it.model.as_deref(),
        api: it.api,
        concurrency: it.concurrency,
        rate,
        arrivals: it.arrivals,
        requests: it.requests,
        warmup: it.warmup,
        max_tokens: it.max_tokens,
        temperature: &it.temperature,
        timeout: it.timeout,
        seed: it.seed,
        key_env: it.key_env.as_deref(),
        ca: it.ca.as_deref().map(read_file).transpose()?,
        insecure: it.insecure,
        care: it.care.request(),
        environment: &environment,
        out: it.out,
        programs: programs()?,
        control: &control,
    };
    let benched = bench(options, &mut |event| progress.show(event));
    progress.finish();
    let benched = benched?;
    match it.format {
        Format::Human => data(&show::bench::summary(&benched, terminal.width)),
        Format::Json => data(&json(&show::bench::json(&benched))),
    }
    Ok(benched.status())
}

fn serve_sim(it: &arguments::Sim) -> Result<Status, Problem> {
    let listening = sim::listen(it.port, sim::config(&it.to_plan())?)?;
    talk(&format!(
        "serving {} on http://{}/v1\n",
        it.model,
        listening.address()?
    ));
    let stop = interrupt::stops_sim()?;
    listening.serve(&stop)?;
    Ok(Status::Done)
}

fn look_at_host(it: &arguments::Doctor, terminal: Terminal) -> Status {
    let examined = doctor();
    match it.format {
        Format::Human => data(&show::doctor::findings(&examined, terminal)),
        Format::Json => data(&json(&show::doctor::json(&examined))),
    }
    examined.status(it.strict)
}

fn calibrate_here(it: &arguments::Calibrate) -> Result<Status, Problem> {
    let amounts = if it.quick {
        quick_amounts()
    } else {
        full_amounts()
    };
    talk("measuring for up to a minute; anything else that runs shows in the figures\n");
    // The peer lives as long as its process is held here.
    let (_peer, mut link) = PeerProcess::start(&own_program()?)?;
    let calibration = calibrate(&mut link, amounts, &it.care.request())?;
    match it.format {
        Format::Human => data(&show::calibrate::figures(&calibration)),
        Format::Json => data(&calibration.to_json()),
    }
    if let Some(path) = &it.svg {
        write_file(path, &render_svg_calibration(&calibration))?;
        talk(&format!("wrote {}\n", path.display()));
    }
    Ok(Status::Done)
}

fn run_demo(out: Option<PathBuf>, terminal: Terminal) -> Result<Status, Problem> {
    let out = out.unwrap_or_else(|| PathBuf::from("assize-demo"));
    let control = Arc::new(RunControl::default());
    interrupt::stops(&control)?;
    let bundle = assize_verbs::demo::compile()?;
    let mut progress = Progress::start(&bundle.plan, control.clone(), terminal);
    let made = demo(&out, programs()?, &control, &mut |event| {
        progress.show(event);
    });
    progress.finish();
    let made = made?;
    let report = report::report(&made.analysis);
    let page = out.join("report.html");
    write_file(&page, &render_html(&report))?;
    data(&render_text(
        &report,
        terminal.width,
        terminal.stdout_colour,
    ));
    data(&show::run::demonstrated(&made, &page));
    Ok(made.ran.status())
}

fn explain(code: &str) -> Result<Status, Problem> {
    let code = Code::find(code).ok_or_else(|| {
        Problem::usage(E1001, format!("no diagnostic has the code {code}"))
            .help("a code is E or W and four digits, as it stands in a message: E0206")
    })?;
    data(code.page);
    Ok(Status::Done)
}

fn seal(text: Option<&str>) -> Result<Option<Hash>, Problem> {
    text.map(|text| {
        Hash::from_hex(text.strip_prefix("sha256:").unwrap_or(text)).ok_or_else(|| {
            Problem::usage(
                E0801,
                format!("--seal {text}: a seal is 64 lower-case hex digits"),
            )
        })
    })
    .transpose()
}

fn json<T: serde::Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data has a JSON form");
    text.push('\n');
    text
}

fn own_program() -> Result<PathBuf, Problem> {
    std::env::current_exe()
        .map_err(|error| Problem::world(E0902, format!("finding this program's own file: {error}")))
}

/// This very program keeps servers and serves the simulated engine.
fn programs() -> Result<Programs, Problem> {
    let own = own_program()?;
    Ok(Programs {
        keeper: own.clone(),
        keeper_arguments: vec!["keeper".into(), "--".into()],
        sim: own,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the application owns the environment"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "a file that the user named")]
fn read_file(path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| Problem {
        status: Status::Usage,
        ..Problem::usage(E1001, format!("{}: {error}", path.display()))
    })
}

#[expect(clippy::disallowed_methods, reason = "a file that the user named")]
fn write_file(path: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(path, text)
        .map_err(|error| Problem::world(E0902, format!("writing {}: {error}", path.display())))
}
