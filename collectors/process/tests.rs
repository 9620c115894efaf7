use super::*;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/process/linux-6.18");

fn opened(endpoint: &str, proc: Option<&Path>) -> Result<Box<dyn Collector>, Fault> {
    open(&Section::of("server", endpoint, &proc.map(|proc| format!("proc = {proc:?}")).unwrap_or_default()))
}

/// A `/proc` with these processes: number, name, ticks, start.
fn folder(processes: &[(u32, &str, u64, u64)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for process in processes {
        write(dir.path(), *process);
    }
    dir
}

fn write(root: &Path, (number, name, ticks, began): (u32, &str, u64, u64)) {
    let folder = root.join(number.to_string());
    std::fs::create_dir_all(folder.join("fd")).unwrap();
    let line = format!("{number} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 2 0 {began} 1 2 3\n");
    std::fs::write(folder.join("stat"), line).unwrap();
    std::fs::write(folder.join("status"), "VmRSS:\t 100 kB\n").unwrap();
    std::fs::write(folder.join("cmdline"), format!("/usr/sbin/{name}: worker\0")).unwrap();
}

#[tokio::test]
async fn a_real_process_gives_every_gauge_by_number_and_by_name() {
    for endpoint in ["4242", "redis-server", "/usr/bin/redis-server"] {
        let mut process = opened(endpoint, Some(Path::new(FIXTURE))).unwrap();
        let support = process.start().await.unwrap();
        assert_eq!((support.product.as_str(), support.lacks.len()), ("redis-server", 0));
        assert_eq!(support.columns, GAUGES);
        let reading = process.read().await.unwrap();
        assert_eq!((reading.get("open_files"), reading.get("open_files_max")), (Some(7.0), Some(20_000.0)));
        assert_eq!((reading.get("threads"), reading.get("cores")), (Some(5.0), Some(2.0)));
        assert_eq!((reading.get("processes"), reading.get("cpu_seconds_total")), (Some(1.0), Some(0.05)));
        assert!(reading.get("resident_bytes").unwrap() > 1e6);
    }
}

#[tokio::test]
async fn the_sums_of_a_name_never_fall_when_one_of_its_processes_ends_and_a_new_one_counts_from_its_start() {
    let dir = folder(&[(10, "work", 100, 1), (11, "work", 300, 2), (12, "worker", 999, 3)]);
    let mut process = opened("work", Some(dir.path())).unwrap();
    process.start().await.unwrap();
    let both = process.read().await.unwrap();
    assert_eq!((both.get("processes"), both.get("cpu_seconds_total")), (Some(2.0), Some(4.0)));
    assert_eq!(both.get("resident_bytes"), Some(204_800.0));

    // The same number, another process.
    write(dir.path(), (11, "work", 5, 77));
    let one = process.read().await.unwrap();
    assert_eq!((one.get("processes"), one.get("cpu_seconds_total")), (Some(1.0), Some(4.0)));
    assert_eq!(one.notes, ["process 11 has ended"]);
    tokio::time::sleep(SEARCH).await;
    let again = process.read().await.unwrap();
    assert_eq!((again.get("processes"), again.get("cpu_seconds_total")), (Some(2.0), Some(4.05)));
}

#[tokio::test]
async fn a_process_that_ended_is_missing_and_never_0_and_a_name_is_found_again() {
    let dir = folder(&[(10, "work", 100, 1)]);
    let mut process = opened("work", Some(dir.path())).unwrap();
    process.start().await.unwrap();
    std::fs::write(dir.path().join("10/stat"), "10 (work) Z 1 1 1 0 -1 0 0 0 0 0 9 0 0 0 20 0 1 0 1 1 2 3\n").unwrap();
    let fault = process.read().await.unwrap_err();
    assert!(fault.kind == FaultKind::Unreachable && fault.message.contains("\"work\""), "{fault}");
    write(dir.path(), (20, "work", 7, 50));
    let found = process.read().await.unwrap();
    assert_eq!((found.get("cpu_seconds_total"), found.notes.len()), (Some(1.07), 1));
}

#[tokio::test]
async fn open_files_that_may_not_be_seen_are_a_lack_and_no_0() {
    let dir = folder(&[(10, "work", 100, 1)]);
    std::fs::remove_dir(dir.path().join("10/fd")).unwrap();
    let support = opened("10", Some(dir.path())).unwrap().start().await.unwrap();
    assert!(support.lacks[0].what.contains("open_files"), "{:?}", support.lacks);
    assert!(!support.columns.iter().any(|gauge| gauge.name.starts_with("open_files")));
    assert_eq!(support.columns[0].capacity, Capacity::None, "no cores are told in that /proc");
}

#[tokio::test]
async fn what_is_not_there_or_no_process_is_said() {
    let dir = folder(&[]);
    assert!(opened("77", Some(dir.path())).unwrap().start().await.unwrap_err().message.contains("no process 77"));
    assert!(opened("", None).err().unwrap().message.contains("number or name"));
    assert!(opened("/", None).err().unwrap().message.contains("a name"));
    assert!(opened("99999999999", None).err().unwrap().message.contains("number"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_sampler_itself_is_read_and_its_work_is_seen() {
    let mut process = opened("self", None).unwrap();
    let support = process.start().await.unwrap();
    assert_eq!(support.lacks, []);
    let before = process.read().await.unwrap();
    let (began, mut sum) = (Instant::now(), 0_u64);
    while began.elapsed() < Duration::from_millis(1500) && sum < u64::MAX / 2 {
        sum = sum.wrapping_add(u64::from(began.elapsed().subsec_nanos()));
    }
    let files: Vec<_> = (0..50).map(|_| std::fs::File::open("/proc/self/stat").unwrap()).collect();
    let after = process.read().await.unwrap();
    let grown = |name: &str| after.get(name).unwrap() - before.get(name).unwrap();
    assert!(grown("cpu_seconds_total") > 0.05, "{}", grown("cpu_seconds_total"));
    assert!(grown("open_files") >= 40.0, "{} of {}", grown("open_files"), files.len());
    assert!(grown("context_switches_total") > 0.0);
}
