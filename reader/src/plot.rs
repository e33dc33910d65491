//! The plots of a report as SVG, alone as files or inside the page; and that of a calibration.
//!
//! A plot is 360 units wide and as high as its rows ask for: it is read at that width on a narrow
//! screen, and stands beside others on a wide one. Coordinates are drawn at four times the size,
//! so that whole numbers place a dot to a quarter of a pixel. Colours are attributes that a style
//! sheet replaces by its variables; without one they are the light ones.

mod blocks;
mod calibration;
mod canvas;
mod effects;

use crate::report::{ArmFigure, Report};

pub use blocks::{render_svg_blocks, shown_figures};
pub use calibration::render_svg_calibration;
pub use effects::render_svg_effects;

pub(crate) use blocks::inline_blocks;
pub(crate) use canvas::{PALETTE_CSS, PLOT_CSS};
pub(crate) use effects::inline_effects;

/// A plot with the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SvgFile {
    /// A plain file name of letters, digits, dots and hyphens.
    pub name: String,
    /// The SVG.
    pub svg: String,
}

/// Every plot of a report: the effects of each hypothesis, then the figures of each cell.
///
/// Files are numbered in the report's order; names of a study never enter a file's name.
pub fn svg_files(report: &Report) -> Vec<SvgFile> {
    let mut files = Vec::new();
    for (f, family) in report.families.iter().enumerate() {
        let pairs = family.verdict.hypotheses.iter().zip(&family.marks);
        for (h, (hypothesis, marks)) in pairs.enumerate() {
            files.push(SvgFile {
                name: format!("effects-{}-{}.svg", f + 1, h + 1),
                svg: render_svg_effects(hypothesis, marks),
            });
        }
    }
    for (c, rows) in cells(report).into_iter().enumerate() {
        for figure in shown_figures(rows) {
            files.push(SvgFile {
                name: format!("cell-{}-{}.svg", c + 1, figure_slug(figure)),
                svg: render_svg_blocks(rows, figure),
            });
        }
    }
    files
}

/// The rows of each cell, one for each arm.
pub(crate) fn cells(report: &Report) -> Vec<&[crate::report::ArmCell]> {
    report
        .by_arm
        .chunk_by(|a, b| a.set == b.set && a.cell == b.cell)
        .collect()
}

fn figure_slug(figure: &ArmFigure) -> String {
    let from = figure.from.map(|from| format!("-from-{}", from.name()));
    let stat = figure.stat.map(|stat| format!("-{stat}"));
    let name = figure.name.replace('_', "-");
    format!(
        "{name}{}{}",
        from.unwrap_or_default(),
        stat.unwrap_or_default()
    )
}
