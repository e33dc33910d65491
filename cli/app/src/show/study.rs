//! What `check`, `plan` and `freeze` say of a study.

use std::path::Path;

use assize_plan::{Bundle, Deeds};
use assize_units::format_duration;
use assize_verbs::Problem;
use assize_verbs::consent;
use assize_verbs::study::{Compiled, Preview};

use super::table::table;
use super::wrapped::indented;
use crate::output::printable;

/// One line after the diagnostics.
pub fn checked(compiled: &Compiled) -> String {
    let (errors, warnings) = compiled.diagnostics.counts();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => "the study is sound\n".to_owned(),
        (0, warnings) => format!(
            "the study can be frozen, with {}\n",
            count(warnings, "warning")
        ),
        (errors, 0) => format!("the study cannot be frozen: {}\n", count(errors, "error")),
        (errors, warnings) => {
            format!(
                "the study cannot be frozen: {}, {}\n",
                count(errors, "error"),
                count(warnings, "warning")
            )
        }
    }
}

/// The line that runs a plan.
pub fn run_line(folder: &Path, bundle: &Bundle) -> Result<String, Problem> {
    let consent = if consent::is_needed(&Deeds::of(bundle)?) {
        format!(" --approve {}", bundle.hash.short())
    } else {
        String::new()
    };
    Ok(format!("assize run {}{consent}", folder.display()))
}

/// The preview, for a person.
pub fn preview(preview: &Preview, width: usize) -> String {
    let mut text = format!(
        "study {}, plan {}\n{} units, {} requests; schedules and settling take {}, and {} closed cells what the server takes\n",
        printable(&preview.study),
        preview.plan,
        preview.units,
        preview.requests,
        format_duration(preview.scheduled_ns),
        preview.closed_cells,
    );
    for set in &preview.sets {
        text.push_str(&format!(
            "\n{}: {} blocks × {} arms × {} cells{}\n",
            printable(&set.name),
            set.blocks,
            set.arms.len(),
            set.cells.len(),
            if set.excluded {
                ", excluded from every figure"
            } else {
                ""
            }
        ));
        let heading = ["cell", "load", "requests"].map(str::to_owned).to_vec();
        let rows = set.cells.iter().map(|cell| {
            vec![
                printable(&cell.name),
                printable(&cell.load),
                cell.requests.to_string(),
            ]
        });
        text.push_str(&table(
            &std::iter::once(heading).chain(rows).collect::<Vec<_>>(),
        ));
    }
    for family in &preview.families {
        text.push_str(&format!("\nfamily {}\n", printable(&family.name)));
        for line in &family.lines {
            text.push_str(&indented(2, line, width.saturating_sub(2)));
        }
    }
    if preview.families.is_empty() {
        text.push_str("\nno hypothesis: the report is descriptive\n");
    }
    text
}
