//! Where an arm's requests go: an endpoint, or a server that the run starts.

use std::collections::BTreeMap;

use assize_codes as codes;
use assize_plan::{
    ArmTarget, External, Roots, SERVER_FORMAT, ServerDef, ServerKind, SimServer, Tls,
};
use assize_study::ast::{
    Arm, Named, ServerFile, ServerKind as WrittenKind, ServerProcess, Signal, SimKey, SimSettings,
    Text,
};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Expr, Name};
use assize_study::lower::parse_server_file;
use assize_study::source::Span;
use assize_units::{DurNs, Ratio};

use crate::eval::{Evaluator, Kind};

/// Where a server that was not told otherwise listens.
const SIM_PORT: u32 = 8_000;
/// Where the simulated engine answers 200 once it is ready.
const SIM_READY: &str = "/health";
const HTTPS: &str = "https://";

/// An arm's target with the path of its base.
pub(crate) struct Target {
    pub target: ArmTarget,
    /// By what its peer proves who it is; none in cleartext.
    pub tls: Option<Tls>,
    /// The base's own path, without a slash at its end.
    pub base_path: String,
    pub external: Vec<External>,
    pub is_server: bool,
}

/// Resolves an arm's place.
pub(crate) fn target(eval: &Evaluator<'_>, arm: &Named<Arm>) -> Option<Target> {
    match (&arm.item.server, &arm.item.endpoint) {
        (Some(path), None) => server(eval, arm, path),
        (None, Some(endpoint)) => self::endpoint(eval, arm, endpoint),
        (both, _) => {
            let what = if both.is_some() {
                "both `server` and `endpoint`"
            } else {
                "neither `server` nor `endpoint`"
            };
            eval.context.report(
                Diagnostic::new(
                    codes::E0511,
                    arm.name.span,
                    format!("`{}` has {what}", arm.name),
                )
                .help("a server file says how to start one; an endpoint is there already"),
            );
            None
        }
    }
}

fn endpoint(eval: &Evaluator<'_>, arm: &Named<Arm>, endpoint: &Text) -> Option<Target> {
    let base_path = base_path(eval, endpoint)?;
    if !arm.item.args.is_empty() || !arm.item.env.is_empty() {
        eval.context.report(
            Diagnostic::new(
                codes::E0511,
                arm.name.span,
                format!(
                    "`{}` is an endpoint: nothing is started that could take `args` or `env`",
                    arm.name
                ),
            )
            .help("name a `server` file instead, or remove them"),
        );
    }
    let tls = if endpoint.value.starts_with(HTTPS) {
        Some(trust(eval, arm)?)
    } else {
        refuse_trust(eval, arm, "is not spoken to by `https`")?;
        None
    };
    Some(Target {
        tls,
        target: ArmTarget::Endpoint {
            base: endpoint.value.trim_end_matches('/').to_owned(),
        },
        base_path,
        external: Vec::new(),
        is_server: false,
    })
}

/// By what an `https` endpoint proves who it is.
fn trust(eval: &Evaluator<'_>, arm: &Named<Arm>) -> Option<Tls> {
    if arm.item.insecure.as_ref().is_some_and(|flag| flag.value) {
        return Some(Tls::Insecure);
    }
    let Some(ca) = &arm.item.ca else {
        return Some(Tls::Roots(Roots::System));
    };
    let bytes = eval.context.file(&ca.value, ca.span)?;
    let holds = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    let fault = if holds("PRIVATE KEY-----") {
        "holds a private key, and a plan is published"
    } else if !holds("-----BEGIN CERTIFICATE-----") {
        "holds no certificate in PEM"
    } else {
        return Some(Tls::Ca(eval.context.keep(bytes)));
    };
    eval.context.report(
        Diagnostic::new(codes::E0515, ca.span, format!("`{}` {fault}", ca.value))
            .help("name a file of the certificates alone, each between `-----BEGIN CERTIFICATE-----` and its end"),
    );
    None
}

/// Refuses `ca` and `insecure` where no peer proves anything.
fn refuse_trust(eval: &Evaluator<'_>, arm: &Named<Arm>, why: &str) -> Option<()> {
    let insecure = arm.item.insecure.as_ref().filter(|flag| flag.value);
    let ca = arm.item.ca.as_ref().map(|ca| ("ca", ca.span));
    let Some((key, span)) = ca.or(insecure.map(|flag| ("insecure", flag.span))) else {
        return Some(());
    };
    eval.context.report(
        Diagnostic::new(
            codes::E0515,
            span,
            format!("`{}` {why}: nothing could come of `{key}`", arm.name),
        )
        .help("write the endpoint as `https://`, or remove it"),
    );
    None
}

/// The path of a base address; one that is none is reported.
fn base_path(eval: &Evaluator<'_>, base: &Text) -> Option<String> {
    let rest = base
        .value
        .strip_prefix("http://")
        .or_else(|| base.value.strip_prefix(HTTPS));
    let found = rest.and_then(|rest| {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let plain = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_graphic() && !b"@?#\\\"<>".contains(&b))
        };
        (!authority.is_empty() && plain(authority) && plain(path))
            .then(|| path.trim_end_matches('/').to_owned())
    });
    if found.is_none() {
        eval.context.report(
            Diagnostic::new(
                codes::E0511,
                base.span,
                format!("`{}` is no base address", base.value),
            )
            .help("write `http://host:port/v1`, without credentials, query or fragment"),
        );
    }
    found
}

fn server(eval: &Evaluator<'_>, arm: &Named<Arm>, path: &Text) -> Option<Target> {
    let text = eval.context.text_file(&path.value, path.span)?;
    let file: ServerFile = eval.context.parse(&path.value, &text, parse_server_file)?;
    refuse_trust(
        eval,
        arm,
        "is started by the run, which speaks to it in cleartext",
    )?;
    let (definition, external, base_path) = match &file.kind {
        WrittenKind::Process(process) => {
            let base_path = base_path(eval, &process.base)?;
            refuse_https(eval, &process.base)?;
            (
                command(eval, arm, process)?,
                externals(eval, &process.external),
                base_path,
            )
        }
        WrittenKind::Sim(settings) => {
            if !arm.item.args.is_empty() || !arm.item.env.is_empty() {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0511,
                        arm.name.span,
                        format!(
                            "`{}` is simulated: it takes no `args` and no `env`",
                            arm.name
                        ),
                    )
                    .help("make a server file for each setting"),
                );
            }
            (
                sim(eval, settings, arm.item.model.as_ref())?,
                Vec::new(),
                "/v1".to_owned(),
            )
        }
    };
    let (_, bytes) = definition.to_object();
    let object = eval.context.keep(bytes);
    Some(Target {
        tls: None,
        target: ArmTarget::Server { object },
        base_path,
        external,
        is_server: true,
    })
}

/// A server that the run starts is asked in cleartext whether it is ready.
fn refuse_https(eval: &Evaluator<'_>, base: &Text) -> Option<()> {
    if !base.value.starts_with(HTTPS) {
        return Some(());
    }
    eval.context.report(
        Diagnostic::new(
            codes::E0511,
            base.span,
            "a server that the run starts is spoken to by `http`",
        )
        .help("for `https`, start it outside and name it as an `endpoint`"),
    );
    None
}

fn command(eval: &Evaluator<'_>, arm: &Named<Arm>, process: &ServerProcess) -> Option<ServerDef> {
    let texts = |list: &[Text]| {
        list.iter()
            .map(|text| text.value.clone())
            .collect::<Vec<_>>()
    };
    let mut command = texts(&process.command.value);
    command.extend(texts(&arm.item.args));
    let env: BTreeMap<String, String> = process
        .env
        .iter()
        .chain(&arm.item.env)
        .map(|(name, value)| (name.value.clone(), value.value.clone()))
        .collect();
    let stop = process.stop.within.as_ref();
    let stop_within_ns = match stop {
        Some(expr) => eval.duration(expr, &[], "`stop.within`")?,
        None => DurNs(30_000_000_000),
    };
    let mut pass = texts(&process.pass);
    pass.sort();
    pass.dedup();
    Some(ServerDef {
        format: SERVER_FORMAT.to_owned(),
        base: process.base.value.trim_end_matches('/').to_owned(),
        ready_path: process.ready.get.value.clone(),
        ready_within_ns: eval.duration(&process.ready.within, &[], "`ready.within`")?,
        kind: ServerKind::Command {
            command,
            env,
            pass,
            stop_signal: process
                .stop
                .signal
                .as_ref()
                .map_or(Signal::Term, |signal| signal.value)
                .word()
                .to_owned(),
            stop_within_ns,
        },
    })
}

fn sim(eval: &Evaluator<'_>, settings: &SimSettings, model: Option<&Text>) -> Option<ServerDef> {
    let duration = |key: SimKey, default_us: u64| match settings.get(key) {
        Some(expr) => eval.duration(expr, &[], &format!("`{}`", key.word())),
        None => Some(DurNs(default_us * 1_000)),
    };
    let count = |key: SimKey, default: u32, least: u32| match settings.get(key) {
        Some(expr) => eval.count(expr, &[], &format!("`{}`", key.word()), least, u32::MAX),
        None => Some(default),
    };
    let jitter = settings.get(SimKey::Jitter).map(|expr| ppm(eval, expr));
    let port = count(SimKey::Port, SIM_PORT, 1).filter(|port| *port <= 65_535);
    if port.is_none() {
        eval.context.report(Diagnostic::new(
            codes::E0316,
            settings.span,
            "`port` is from 1 to 65535",
        ));
    }
    let server = SimServer {
        model: model.map_or_else(|| "sim".to_owned(), |model| model.value.clone()),
        prefill_base_ns: duration(SimKey::PrefillBase, 2_000)?,
        prefill_per_token_ns: duration(SimKey::PrefillPerToken, 20)?,
        step_ns: duration(SimKey::Step, 8_000)?,
        step_per_seq_ns: duration(SimKey::StepPerSeq, 200)?,
        max_seqs: count(SimKey::MaxSeqs, 64, 1)?,
        tokens_per_event: count(SimKey::TokensPerEvent, 1, 1)?,
        jitter_ppm: jitter.unwrap_or(Some(0))?,
        seed: count(SimKey::Seed, 0, 0)?,
        startup_ns: DurNs(0),
        faults: Vec::new(),
    };
    Some(ServerDef {
        format: SERVER_FORMAT.to_owned(),
        base: format!("http://127.0.0.1:{}/v1", port?),
        ready_path: SIM_READY.to_owned(),
        ready_within_ns: DurNs(30_000_000_000),
        kind: ServerKind::Sim(server),
    })
}

/// A percent in whole millionths.
fn ppm(eval: &Evaluator<'_>, expr: &Expr) -> Option<u32> {
    let share = eval.number(expr, &[], Kind::SHARE, "`jitter`")?;
    let ppm = share.value.mul(Ratio::whole(1_000_000)).ok()?;
    eval.whole(ppm, expr.span, "`jitter` in millionths", 0, 1_000_000)
}

fn externals(eval: &Evaluator<'_>, list: &[Text]) -> Vec<External> {
    let mut found = Vec::new();
    for path in list {
        match eval.context.world.external(&path.value) {
            Ok((hash, bytes)) => found.push(External {
                path: path.value.clone(),
                hash,
                bytes,
            }),
            Err(error) => eval.context.report(Diagnostic::new(
                codes::E0216,
                path.span,
                format!("`{}`: {error}", path.value),
            )),
        }
    }
    found
}

/// Headers of an arm or a request: lower-case names, sorted; what the run writes itself and
/// literal credentials are refused.
pub(crate) fn headers(
    eval: &Evaluator<'_>,
    written: &[(Text, Text)],
) -> Option<Vec<(String, assize_plan::HeaderText)>> {
    const OWN: &[&str] = &[
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "x-request-id",
        "accept-encoding",
        "expect",
    ];
    const CREDENTIALS: &[&str] = &[
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
    ];
    let mut fine = true;
    let mut list: Vec<(String, assize_plan::HeaderText)> = Vec::new();
    let mut report = |code, span: Span, text: String, help: &str| {
        eval.context
            .report(Diagnostic::new(code, span, text).help(help));
        fine = false;
    };
    for (name, value) in written {
        let lower = name.value.to_ascii_lowercase();
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if lower.is_empty()
            || !lower.bytes().all(token)
            || value
                .value
                .bytes()
                .any(|b| b < b' ' && b != b'\t' || b == 127)
        {
            report(
                codes::E0513,
                name.span,
                format!("`{}` is no header field", name.value),
                "a name is letters, digits and dashes; a value has no line end",
            );
        } else if CREDENTIALS.contains(&lower.as_str()) {
            report(
                codes::E0512,
                value.span,
                format!(
                    "`{}` would carry a credential, and a plan is published",
                    name.value
                ),
                "name an environment variable instead: `key: EXAMPLE_API_KEY` of the arm",
            );
        } else if OWN.contains(&lower.as_str()) {
            report(
                codes::E0513,
                name.span,
                format!("`{}` is written by the run", name.value),
                "remove it",
            );
        } else if list.iter().any(|(known, _)| *known == lower) {
            report(
                codes::E0513,
                name.span,
                format!("`{}` is given twice", name.value),
                "a field stands once, whatever the case of its letters",
            );
        } else {
            list.push((lower, assize_plan::HeaderText::Text(value.value.clone())));
        }
    }
    list.sort_by(|a, b| a.0.cmp(&b.0));
    fine.then_some(list)
}

/// The name of the environment variable that holds an arm's key.
pub(crate) fn key_env(eval: &Evaluator<'_>, key: &Text, arm: &Name) -> Option<String> {
    let plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let is_name = key.value.bytes().all(plain)
        && key
            .value
            .bytes()
            .next()
            .is_some_and(|b| !b.is_ascii_digit());
    if is_name {
        return Some(key.value.clone());
    }
    eval.context.report(
        Diagnostic::new(
            codes::E0512,
            key.span,
            format!("`key` of `{arm}` is the name of an environment variable, in capitals"),
        )
        .help("a key itself never stands in a study: `key: EXAMPLE_API_KEY`"),
    );
    None
}
