//! What the collectors of SQL servers share: rows as text, errors without secrets, addresses, statements without values.

pub mod address;
pub mod pg;
pub mod statement;

use sqlx::mysql::MySqlRow;
use sqlx::{Column as _, Row as _, ValueRef as _};

/// One row of a reply, every cell as the server wrote it; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// The cells of a row of MySQL that came by the text protocol, whatever their types: parsing is then a pure function of text,
/// and no type that this build cannot decode (dates, decimals) costs a column. PostgreSQL's are [`pg::cells`].
pub fn text_cells(row: &MySqlRow) -> Row {
    row.columns()
        .iter()
        .map(|column| {
            let raw = row.try_get_raw(column.ordinal()).ok()?;
            if raw.is_null() {
                return None;
            }
            row.try_get_unchecked::<&[u8], _>(column.ordinal()).ok().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        })
        .collect()
}

/// The cell at `at`, where there is one and it is not NULL.
pub fn cell(row: &Row, at: usize) -> Option<&str> {
    row.get(at).and_then(Option::as_deref)
}

/// Whether the connection is of no more use after this error. An answer of the server, even an error, leaves it whole.
pub fn breaks_connection(error: &sqlx::Error) -> bool {
    !matches!(error, sqlx::Error::Database(_))
}

/// What an error says, on one line and without anything that was sent. sqlx keeps no password in its errors, but its
/// wording of a failed connection hides the cause behind a phrase of its own.
pub fn describe(error: &sqlx::Error) -> String {
    let text = match error {
        sqlx::Error::Io(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        sqlx::Error::Io(why) => why.to_string(),
        sqlx::Error::Tls(why) => format!("TLS: {why}"),
        sqlx::Error::Protocol(why) => format!("not what the protocol allows: {why}"),
        sqlx::Error::Configuration(why) => why.to_string(),
        sqlx::Error::Database(why) => why.message().to_owned(),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_connection_is_told_in_words_and_ends_it() {
        let error = sqlx::Error::Io(std::io::ErrorKind::UnexpectedEof.into());
        assert_eq!(describe(&error), "the server closed the connection");
        assert!(breaks_connection(&error));
    }

    #[test]
    fn a_missing_cell_and_null_are_both_nothing() {
        let row: Row = vec![Some("1".to_owned()), None];
        assert_eq!((cell(&row, 0), cell(&row, 1), cell(&row, 2)), (Some("1"), None, None));
    }
}
