//! The goals as a chart: each figure divided by its goal, so that one line
//! tells what is met. A box from quartile to quartile, whiskers to the ends.

use super::table::number;
use crate::goals::Judged;
use std::fmt::Write;

const LINE: f64 = 22.0;
const LABELS: f64 = 560.0;
const PLOT: f64 = 520.0;
const MARGIN: f64 = 30.0;
/// Figures further from their goal than so many times are drawn at the edge.
const SPAN: f64 = 4.0;

/// As SVG.
pub(crate) fn svg(judged: &[Judged]) -> String {
    let shown: Vec<&Judged> = judged.iter().filter(|judged| judged.figures.is_some()).collect();
    let height = MARGIN * 2.0 + LINE * shown.len() as f64;
    let width = LABELS + PLOT + 90.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (share, label) in [(0.25, "1/4"), (0.5, "1/2"), (1.0, "goal"), (2.0, "2 x"), (4.0, "4 x")] {
        let (x, colour) = (place(share), if share == 1.0 { "#222" } else { "#ddd" });
        let bottom = height - MARGIN;
        let _ =
            writeln!(svg, "<line x1=\"{x:.1}\" y1=\"{MARGIN}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", MARGIN - 10.0);
    }
    for (index, judged) in shown.iter().enumerate() {
        let Some(figures) = judged.figures else { continue };
        let middle = MARGIN + LINE * (index as f64 + 0.5);
        let colour = if judged.met == Some(true) { "#2a7f3f" } else { "#c0392b" };
        let against = judged.against.map_or(String::new(), |peer| format!(" / {}", peer.name()));
        let label = format!("{}: {}, {}{against}", judged.row, judged.measure, judged.ours.name());
        let [min, lower, median, upper, max] =
            [figures.min, figures.lower, figures.median, figures.upper, figures.max].map(|at| place(at / judged.goal));
        let baseline = middle + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 10.0,
            escaped(&label)
        );
        let _ = writeln!(
            svg,
            "<line x1=\"{min:.1}\" y1=\"{middle:.1}\" x2=\"{max:.1}\" y2=\"{middle:.1}\" stroke=\"{colour}\"/>"
        );
        let _ = writeln!(
            svg,
            "<rect x=\"{lower:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\" opacity=\"0.35\"/>",
            middle - 5.0,
            (upper - lower).max(1.0)
        );
        let _ = writeln!(svg, "<circle cx=\"{median:.1}\" cy=\"{middle:.1}\" r=\"4\" fill=\"{colour}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\">{} (≤ {})</text>",
            LABELS + PLOT + 5.0,
            number(figures.median),
            number(judged.goal)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// On a logarithmic scale with the goal in the middle.
fn place(share: f64) -> f64 {
    let share = if share.is_nan() { 1.0 } else { share.clamp(1.0 / SPAN, SPAN) };
    LABELS + PLOT * (share.ln() / SPAN.ln() + 1.0) / 2.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
