//! Every story that can be made, in the order of the command `--all`.

mod mysql;

use crate::stage::Stage;

/// One real run with a planted cause.
pub struct Story {
    /// The name of its folder.
    pub name: &'static str,
    /// Plays it.
    pub make: fn(&Stage) -> anyhow::Result<()>,
}

/// All of them.
pub const STORIES: &[Story] =
    &[Story { name: "mysql-hot-row", make: mysql::hot_row }, Story { name: "mysql-many-rows", make: mysql::many_rows }];
