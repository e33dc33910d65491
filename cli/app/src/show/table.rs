//! Plain tables for a terminal: columns as wide as they must be, numbers to the right.

/// Lines of a table. The first row is the heading; the first column is text, the others numbers.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let gap = widths[column] - cell.chars().count();
            if column == 0 {
                line.push_str(cell);
                line.push_str(&" ".repeat(gap));
            } else {
                line.push_str("  ");
                line.push_str(&" ".repeat(gap));
                line.push_str(cell);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [
            vec![String::new(), "p50".into()],
            vec!["ttft".into(), "8.02 ms".into()],
        ];
        assert_eq!(table(&rows), "            p50\n  ttft  8.02 ms\n");
    }
}
