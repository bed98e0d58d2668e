//! Frames as HTML tables, for notebooks.

use std::fmt::Write;

use fleetcast_core::model::time;
use fleetcast_core::query::{Frame, FrameColumn};

/// Rows that a table shows at most.
const ROWS_MAX: usize = 20;

/// Returns the first rows of a frame as a table, with the number of all rows.
pub(crate) fn table(frame: &Frame) -> String {
    let mut html = String::from("<table><thead><tr>");
    for (name, _) in &frame.columns {
        let _ = write!(html, "<th>{}</th>", escaped(name)); // a write into a text cannot fail
    }
    html.push_str("</tr></thead><tbody>");
    for row in 0..frame.row_count.min(ROWS_MAX) {
        html.push_str("<tr>");
        for (_, column) in &frame.columns {
            let _ = write!(html, "<td>{}</td>", escaped(&cell(column, row)));
        }
        html.push_str("</tr>");
    }
    let _ = write!(html, "</tbody></table><p>{} rows</p>", frame.row_count);
    html
}

fn cell(column: &FrameColumn, row: usize) -> String {
    match column {
        FrameColumn::TimeNs(times) => {
            let mut text = Vec::new();
            time::write_rfc3339(&mut text, times[row]);
            String::from_utf8_lossy(&text).into_owned()
        }
        FrameColumn::Float(values) if values[row].is_nan() => String::new(),
        FrameColumn::Float(values) => values[row].to_string(),
        FrameColumn::Bool(values) => values[row].map(|value| value.to_string()).unwrap_or_default(),
        FrameColumn::Text(values) => values[row].clone().unwrap_or_default(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
