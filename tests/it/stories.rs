//! The recorded stories: real runs with a planted cause, judged again by the correlate of today.
//! They are made by `examples/stories`.

#[path = "../../examples/stories/truth.rs"]
mod truth;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use truth::Truth;

fn runs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs")
}

fn is_told_as_planted(name: &str) {
    let folder = runs().join(name);
    let truth = Truth::read(&folder).unwrap();
    let correlate = |more: &[&str]| {
        let args = truth::arguments(&folder, &truth).unwrap();
        Command::new(env!("CARGO_BIN_EXE_correlate")).args(args).args(more).output().expect("correlate runs")
    };
    let said = correlate(&["--json"]);
    let verdict = serde_json::from_slice(&said.stdout).unwrap_or_else(|why| panic!("{why}: {said:?}"));
    let wrong = truth.compare(&verdict);
    let text = correlate(&[]).stdout;
    assert!(wrong.is_empty(), "{} (made {})\n{}\n{}", truth.about, truth.made, wrong.join("\n"), String::from_utf8_lossy(&text));
}

macro_rules! stories {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            is_told_as_planted($name);
        })*

        #[test]
        fn every_recorded_story_is_judged_here() {
            let judged = BTreeSet::from([$($name.to_owned()),*]);
            let entries = std::fs::read_dir(runs()).unwrap().map(|entry| entry.unwrap().path());
            // A story that was never told as planted has its truth only: it is made, and not judged here.
            let has_ticks = |path: &PathBuf| {
                let mut files = std::fs::read_dir(path).into_iter().flatten().flatten();
                files.any(|file| file.file_name().to_string_lossy().contains("ticks.tsv"))
            };
            let recorded = entries.filter(has_ticks).map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
            let recorded: BTreeSet<String> = recorded.filter(|name| !name.starts_with("sim-")).collect();
            assert_eq!(judged, recorded);
        }
    };
}

stories! {
    a_hot_row_of_mysql_is_named "mysql-hot-row",
    bookings_spread_over_many_rows_name_no_lock "mysql-many-rows",
    connections_that_mysql_refuses_at_its_limit_are_named "mysql-max-connections",
    a_hot_row_of_postgresql_is_named "postgres-hot-row",
    an_advisory_lock_of_postgresql_is_named "postgres-advisory-lock",
    clients_who_wait_for_a_connection_of_pgbouncer_are_named "pgbouncer-pool",
    an_applications_own_pool_is_named_and_not_the_database_behind_it "app-pool",
    a_light_load_names_nothing "nothing",
    a_driver_with_too_few_workers_is_blamed_and_no_target "driver-bottleneck",
    the_workers_of_a_web_server_are_named_on_a_ladder_of_closed_loops "ladder",
    memory_that_is_never_given_back_is_told_of_a_plateau "leak",
    the_queue_before_the_children_of_php_fpm_is_named "phpfpm-children",
    the_queue_before_the_workers_of_apache_is_named "apache-workers",
    the_queue_before_a_server_of_haproxy_is_named "haproxy-queue",
    a_memcached_that_is_too_small_is_named_by_what_it_throws_out "memcached-evictions",
    a_key_that_expires_for_all_at_once_is_named_by_the_hit_ratio "redis-stampede",
    a_control_group_that_may_use_too_little_processor_is_named "cpu-limited",
    an_outbox_that_grows_old_unfelt_is_named "outbox",
    of_the_on_sale_the_pool_gives_way_first "on-sale-pool",
    of_the_on_sale_with_both_put_right_only_the_spike_brings_out_the_processor "on-sale-cpu",
    a_spike_that_is_worked_off_is_told_to_have_recovered "spike-recovers",
    a_spike_that_leaves_a_storm_behind_is_told_not_to_have_recovered "spike-no-recovery",
    a_hot_row_of_mariadb_is_named "mariadb-hot-row",
    a_table_of_mysql_that_is_locked_as_a_whole_is_named "mysql-table-lock",
    a_change_of_a_table_behind_a_report_is_named_by_its_metadata_lock "mysql-migration",
    a_maintenance_pass_that_grows_is_told_of_a_soak "soak",
    a_script_that_blocks_redis_is_named_by_the_round_trip "redis-slow-script",
    a_unique_key_of_postgresql_that_all_insert_is_named "postgres-unique-key",
    connections_of_postgresql_that_are_all_taken_are_named "postgres-max-connections",
    threads_held_by_a_slow_dependency_are_named "slow-dependency",
    open_files_of_a_process_that_are_used_up_are_named "open-files",
    two_that_give_way_at_once_are_tied "two-at-once",
    two_that_give_way_one_after_the_other_are_told_in_order "two-in-order",
    a_job_that_comes_whatever_the_load_names_nothing "nightly-job",
    the_queue_before_the_processes_of_apache_is_named "apache-prefork",
    connections_that_nginx_drops_are_named "nginx-connections",
    connections_that_memcached_refuses_are_named "memcached-connections",
    writes_that_redis_refuses_for_lack_of_memory_are_named "redis-memory",
    of_the_on_sale_with_a_wide_pool_the_cache_gives_way_first "on-sale-cache",
}
