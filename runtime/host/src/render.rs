//! From a plan's cell to what the core sends: heads, bodies, instants, limits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{CellSpec, ConnectionPolicy, LoadSpec, ReceiveMode, RequestSpec, Target};
use assize_plan::{
    Arm, Bundle, BundleRefusal, Cell, Connections, Hash, HeaderText, Load, Receive, RequestClass,
};
use assize_units::DurNs;

use crate::address::Base;
use crate::mask::Secrets;

/// A cell, rendered: what the core runs, and what the recorder writes of each send.
#[derive(Debug)]
pub struct RenderedCell {
    /// What the core runs.
    pub spec: Arc<CellSpec>,
    /// What each request is.
    pub requests: Vec<Planned>,
    /// Heads with their credentials masked; none where no head has any.
    masked: Vec<Vec<u8>>,
}

/// Which request of the plan a rendered one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its class, a place in the plan's `requests`.
    pub class: u32,
    /// Its prompt, a place in the class's `bodies`.
    pub prompt: u32,
    /// The hash of its body.
    pub body: Hash,
}

/// Why a cell cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The bundle lacks something.
    #[error(transparent)]
    Bundle(#[from] BundleRefusal),
    /// A secret is not known.
    #[error("the environment variable `{0}` is not set")]
    Secret(String),
    /// The plan names something that does not exist.
    #[error("the plan's cell `{0}` names a class or a prompt that does not exist")]
    Dangling(String),
}

impl RenderedCell {
    /// A cell of no plan. Its heads are recorded as they are: they may hold no credential.
    pub fn without_plan(spec: Arc<CellSpec>) -> RenderedCell {
        let planned = |request: &RequestSpec| Planned {
            class: 0,
            prompt: 0,
            body: Hash::of(&request.body),
        };
        RenderedCell {
            requests: spec.requests.iter().map(planned).collect(),
            spec,
            masked: Vec::new(),
        }
    }

    /// The head of a request as it may be written: credentials masked.
    pub fn masked_head(&self, req: u32) -> &[u8] {
        self.masked
            .get(req as usize)
            .unwrap_or(&self.spec.requests[req as usize].head)
    }

    /// The hash of a request's body.
    pub fn body_of(&self, req: u32) -> Hash {
        self.requests[req as usize].body
    }
}

/// Renders one cell for one arm at one target, whose base is `base`.
pub fn render_cell(
    bundle: &Bundle,
    arm: &Arm,
    cell: &Cell,
    base: &Base,
    target: Target,
    secrets: &Secrets,
) -> Result<RenderedCell, RenderError> {
    let trace = bundle.trace(cell.load.trace())?;
    let dangling = || RenderError::Dangling(cell.name.clone());
    let mut bodies: BTreeMap<Hash, Arc<[u8]>> = BTreeMap::new();
    let mut rendered = Vec::with_capacity(trace.len());
    let mut planned = Vec::with_capacity(trace.len());
    let mut masked = Vec::new();
    for index in 0..trace.len() {
        let class_place = cell
            .classes
            .get(trace.class_of(index) as usize)
            .ok_or_else(dangling)?;
        let class = bundle.plan.class(*class_place).ok_or_else(dangling)?;
        let prompt = trace.prompts[index];
        let hash = *class.bodies.get(prompt as usize).ok_or_else(dangling)?;
        let body = match bodies.get(&hash) {
            Some(body) => body.clone(),
            None => bodies
                .entry(hash)
                .or_insert(Arc::from(bundle.object(hash)?))
                .clone(),
        };
        let head = render_head(
            class,
            arm,
            base,
            body.len(),
            &cell.request_id(index),
            secrets,
        )?;
        if !secrets.is_empty() {
            let mut hidden = head.clone();
            secrets.mask(&mut hidden);
            masked.push(hidden);
        }
        planned.push(Planned {
            class: *class_place,
            prompt,
            body: hash,
        });
        rendered.push(RequestSpec {
            target: 0,
            head,
            body,
            timeout: class.timeout_ns,
            connect_timeout: class.connect_timeout_ns,
            idle_timeout: class.idle_timeout_ns,
        });
    }
    let load = match &cell.load {
        Load::Open { cap, .. } => LoadSpec::Open {
            offsets: trace.offsets_ns.unwrap_or_default(),
            cap: *cap,
        },
        Load::Closed { clients, .. } => LoadSpec::Closed { clients: *clients },
    };
    let spec = CellSpec {
        requests: rendered,
        load,
        targets: vec![target],
        connections: match cell.connections {
            Connections::Fresh => ConnectionPolicy::Fresh,
            Connections::Reuse { idle_ns } => ConnectionPolicy::Reuse { idle: idle_ns },
            Connections::Preopened { n } => ConnectionPolicy::Preopened { n },
        },
        drain: cell.drain_ns,
        limits: Limits {
            body_bytes: bundle.plan.max_response_bytes.0,
            ..Limits::default()
        },
        spin: DurNs(bundle.plan.spin_ns.0),
        receive: match cell.receive {
            Receive::Reap => ReceiveMode::Reap,
            Receive::Kernel { gather_ns } => ReceiveMode::Kernel { gather: gather_ns },
        },
    };
    Ok(RenderedCell {
        spec: Arc::new(spec),
        requests: planned,
        masked,
    })
}

/// Request line, Host, the class's headers, the arm's, Content-Length, X-Request-Id, the credential.
fn render_head(
    class: &RequestClass,
    arm: &Arm,
    base: &Base,
    body_len: usize,
    id: &str,
    secrets: &Secrets,
) -> Result<Vec<u8>, RenderError> {
    let mut head = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\n",
        class.method, class.path, base.authority
    );
    for (name, value) in class.headers.iter().chain(&arm.headers) {
        let value = match value {
            HeaderText::Text(text) => text,
            HeaderText::Env(variable) => secret(secrets, variable)?,
        };
        write!(head, "{name}: {value}\r\n").expect("a string takes all");
    }
    write!(head, "content-length: {body_len}\r\nx-request-id: {id}\r\n")
        .expect("a string takes all");
    if let Some(variable) = &arm.key_env {
        write!(
            head,
            "authorization: Bearer {}\r\n",
            secret(secrets, variable)?
        )
        .expect("a string takes all");
    }
    head.push_str("\r\n");
    // There is one for each planned request: what it grew by is given back.
    head.shrink_to_fit();
    Ok(head.into_bytes())
}

fn secret<'s>(secrets: &'s Secrets, variable: &str) -> Result<&'s str, RenderError> {
    secrets
        .get(variable)
        .ok_or_else(|| RenderError::Secret(variable.to_owned()))
}
