//! HAProxy's statistics (`show stat`, `/stats;csv`) as a pure function of their bytes.
//!
//! Cells are found by the name in the first row, whose first cell is `# pxname`: every release adds columns. An empty cell is
//! usual and means that the row has no such number; so do `-1` and `NaN`. A row that has fewer cells than the first one is
//! broken and left out. A text with a comma, quote or line end stands in quotes, quotes doubled.

/// The columns that are read.
const COLUMNS: [&str; 21] = [
    "qcur",
    "scur",
    "slim",
    "stot",
    "dreq",
    "dcon",
    "ereq",
    "econ",
    "eresp",
    "wretr",
    "wredis",
    "act",
    "bck",
    "chkdown",
    "hrsp_5xx",
    "req_tot",
    "qtime",
    "ctime",
    "rtime",
    "ttime",
    "intercepted",
];

/// What a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What clients connect to.
    Frontend,
    /// All servers together, and what waits for any of them.
    Backend,
    /// One server.
    Server,
    /// One `bind` line, where those are counted.
    Listener,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The proxy's name.
    pub(super) proxy: String,
    /// What it counts.
    pub(super) kind: Kind,
    /// `UP`, `DOWN`, `no check`, `MAINT`, `OPEN`, … with what follows it.
    pub(super) status: String,
    /// `tcp` or `http`, where the release tells.
    pub(super) mode: String,
    values: [Option<f64>; COLUMNS.len()],
}

impl Row {
    /// The number under a column's name; `None` where the row has none.
    pub(super) fn value(&self, column: &str) -> Option<f64> {
        COLUMNS.iter().position(|name| *name == column).and_then(|at| self.values[at])
    }
}

/// A broken table of thousands of rows need not be told in full.
const MOST_ODDITIES: usize = 8;

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// In the order of the configuration.
    pub(super) rows: Vec<Row>,
    /// What was strange, one short phrase each.
    pub(super) oddities: Vec<String>,
}

/// Reads whole lines; `None` where they are no such table.
pub(super) fn parse(body: &[u8]) -> Option<Table> {
    let mut lines = Lines(body.trim_ascii_start());
    let header = lines.next()?;
    if header.first()? != "# pxname" {
        return None;
    }
    let column = |name: &str| header.iter().position(|found| found == name);
    let (service, status, mode, kind) = (column("svname")?, column("status")?, column("mode"), column("type"));
    let places: Vec<Option<usize>> = COLUMNS.iter().map(|name| column(name)).collect();
    let mut table = Table::default();
    for cells in lines {
        if cells.len() == 1 && cells[0].trim().is_empty() {
            continue;
        }
        if cells.len() < header.len() {
            table
                .oddities
                .push(format!("a row of fewer cells than the first: {:?}", cells[0].chars().take(40).collect::<String>()));
            continue;
        }
        let Some(kind) = self::kind(kind.map(|at| cells[at].as_str()), &cells[service]) else {
            table.oddities.push(format!("a row of no known type: {:?}", cells[service].chars().take(40).collect::<String>()));
            continue;
        };
        let mut values = [None; COLUMNS.len()];
        for ((value, place), name) in values.iter_mut().zip(&places).zip(COLUMNS) {
            let Some(cell) = place.map(|at| cells[at].trim()) else { continue };
            *value = number(cell);
            if value.is_none() && !matches!(cell, "" | "-1" | "NaN" | "nan") {
                table.oddities.push(format!("{name}: expected a count, got {:?}", cell.chars().take(40).collect::<String>()));
            }
        }
        table.rows.push(Row {
            proxy: cells[0].clone(),
            kind,
            status: cells[status].clone(),
            mode: mode.map(|at| cells[at].clone()).unwrap_or_default(),
            values,
        });
    }
    table.oddities.truncate(MOST_ODDITIES);
    (!table.rows.is_empty()).then_some(table)
}

/// By its number or, in releases without one, by its name.
fn kind(code: Option<&str>, service: &str) -> Option<Kind> {
    match (code.map(str::trim), service) {
        (Some("0"), _) | (None, "FRONTEND") => Some(Kind::Frontend),
        (Some("1"), _) | (None, "BACKEND") => Some(Kind::Backend),
        (Some("2") | None, _) => Some(Kind::Server),
        (Some("3"), _) => Some(Kind::Listener),
        _ => None,
    }
}

/// A count: digits alone, below 2^63.
fn number(cell: &str) -> Option<f64> {
    if !cell.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    cell.parse::<u64>().ok().filter(|number| *number < 1 << 63).map(|number| number as f64)
}

/// The cells of one line after the other; a quoted cell may go over several.
struct Lines<'a>(&'a [u8]);

impl Iterator for Lines<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        if self.0.is_empty() {
            return None;
        }
        let (mut cells, mut cell, mut quoted) = (Vec::new(), Vec::new(), false);
        let mut at = 0;
        while at < self.0.len() {
            let byte = self.0[at];
            at += 1;
            match byte {
                b'"' if quoted && self.0.get(at) == Some(&b'"') => {
                    cell.push(b'"');
                    at += 1;
                }
                b'"' => quoted = !quoted,
                b',' if !quoted => cells.push(text(std::mem::take(&mut cell))),
                b'\n' if !quoted => break,
                b'\r' if !quoted => {}
                other => cell.push(other),
            }
        }
        self.0 = &self.0[at..];
        cells.push(text(cell));
        Some(cells)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|why| String::from_utf8_lossy(why.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::whole_lines;
    use proptest::prelude::*;

    const IDLE: &[u8] = include_bytes!("../../fixtures/haproxy/2.6.12/stats.csv");
    const QUEUED: &[u8] = include_bytes!("../../fixtures/haproxy/2.6.12/queued.csv");

    fn row<'a>(table: &'a Table, proxy: &str, kind: Kind) -> &'a Row {
        table.rows.iter().find(|row| row.proxy == proxy && row.kind == kind).unwrap()
    }

    #[test]
    fn cells_are_found_by_name_and_empty_ones_are_missing() {
        let table = parse(IDLE).unwrap();
        assert_eq!(table.oddities, Vec::<String>::new());
        let kinds: Vec<_> = table.rows.iter().map(|row| (row.proxy.as_str(), row.kind)).collect();
        assert_eq!(kinds, [("fe", Kind::Frontend), ("be", Kind::Server), ("be", Kind::Backend), ("st", Kind::Frontend)]);
        let frontend = row(&table, "fe", Kind::Frontend);
        assert_eq!((frontend.value("scur"), frontend.value("slim"), frontend.value("req_tot")), (Some(0.0), Some(20.0), Some(8.0)));
        assert_eq!((frontend.value("qcur"), frontend.value("econ"), frontend.value("chkdown")), (None, None, None));
        assert_eq!(frontend.value("nonsense"), None);
        let backend = row(&table, "be", Kind::Backend);
        assert_eq!(
            (backend.value("qcur"), backend.value("qtime"), backend.value("ttime")),
            (Some(0.0), Some(4458.0), Some(7476.0))
        );
        assert_eq!((backend.status.as_str(), backend.mode.as_str()), ("UP", "http"));
        assert_eq!(row(&table, "be", Kind::Server).value("slim"), Some(2.0));
    }

    #[test]
    fn what_waits_for_any_server_stands_in_the_backends_row_alone() {
        let table = parse(QUEUED).unwrap();
        let backend = row(&table, "app", Kind::Backend);
        assert_eq!((backend.value("qcur"), backend.value("scur"), backend.value("slim")), (Some(8.0), Some(24.0), Some(40.0)));
        let server = row(&table, "app", Kind::Server);
        assert_eq!((server.value("qcur"), server.value("scur"), server.value("slim")), (Some(0.0), Some(16.0), Some(16.0)));
    }

    /// A table of these columns and rows.
    fn table(header: &str, rows: &[&str]) -> Table {
        parse(format!("# pxname,svname,status,type,{header},\n{}\n", rows.join("\n")).as_bytes()).unwrap()
    }

    #[test]
    fn unknown_columns_and_their_order_change_nothing_and_unset_numbers_are_missing() {
        let found = table("new,qcur,slim,scur", &["a,BACKEND,UP,1,x,3,NaN,-1,", "a,s1,UP 1/3,2,,,18446744073709551615,7,"]);
        assert_eq!(
            (found.rows[0].value("qcur"), found.rows[0].value("slim"), found.rows[0].value("scur")),
            (Some(3.0), None, None)
        );
        assert_eq!((found.rows[1].value("scur"), found.rows[1].value("slim")), (Some(7.0), None));
        assert_eq!(found.oddities.len(), 1, "{:?}", found.oddities);
        let without_type = parse(b"# pxname,svname,qcur,status\nweb,FRONTEND,,OPEN\nweb,BACKEND,2,UP\nweb,a,1,UP\n").unwrap();
        assert_eq!(without_type.rows.iter().map(|row| row.kind).collect::<Vec<_>>(), [Kind::Frontend, Kind::Backend, Kind::Server]);
    }

    #[test]
    fn quoted_texts_may_hold_commas_quotes_and_line_ends() {
        let found = table("last_chk,qcur", &["a,s1,UP,2,\"said \"\"no, never\"\"\nagain\",4,", "a,BACKEND,UP,1,,5,"]);
        assert_eq!(found.rows.iter().map(|row| row.value("qcur")).collect::<Vec<_>>(), [Some(4.0), Some(5.0)]);
        assert_eq!(found.oddities, Vec::<String>::new());
    }

    #[test]
    fn broken_rows_are_left_out_and_said() {
        let found = table("qcur", &["a,s1,UP,2", "a,s2,UP,9,1,", "a,s3,UP,2,x,", "", "a,BACKEND,UP,1,2,"]);
        assert_eq!(found.rows.iter().map(|row| row.value("qcur")).collect::<Vec<_>>(), [None, Some(2.0)]);
        assert_eq!(found.oddities.len(), 3, "{:?}", found.oddities);
    }

    #[test]
    fn other_pages_are_none() {
        let metrics: &[u8] = include_bytes!("../../fixtures/metrics/haproxy-2.6.prom");
        let info: &[u8] = include_bytes!("../../fixtures/haproxy/2.6.12/info.txt");
        for page in [metrics, info, b"", b"# pxname,svname,qcur\n", b"# pxname", b"<html>", b"pxname,svname,status\na,b,c\n"] {
            assert_eq!(parse(page), None, "{}", crate::http::sniff::excerpt(page));
        }
    }

    #[test]
    fn a_table_cut_anywhere_has_the_same_rows_or_fewer() {
        for body in [IDLE, QUEUED] {
            let full = parse(body).unwrap();
            for end in 0..body.len() {
                let Some(cut) = parse(whole_lines(&body[..end])) else { continue };
                assert!(full.rows.starts_with(&cut.rows), "cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&body);
            let _ = parse(&[b"# pxname,svname,status,qcur\n", body.as_slice()].concat());
        }

        #[test]
        fn a_changed_byte_never_makes_a_value_that_is_not_written_there(at in 0..QUEUED.len(), to in any::<u8>()) {
            let mut body = QUEUED.to_vec();
            body[at] = to;
            let text = String::from_utf8_lossy(&body).into_owned();
            let written: Vec<f64> =
                text.split([',', '\n']).filter_map(|cell| cell.trim().replace(['"', '\r'], "").parse().ok()).collect();
            for row in parse(&body).into_iter().flat_map(|table| table.rows) {
                for value in row.values.into_iter().flatten() {
                    prop_assert!(written.contains(&value), "{value}");
                }
            }
        }

        #[test]
        fn quoting_is_undone(cells in proptest::collection::vec(".{0,12}", 1..6)) {
            let line: Vec<String> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
            let found = Lines(format!("{}\n", line.join(",")).as_bytes()).next().unwrap();
            prop_assert_eq!(found, cells);
        }
    }
}
