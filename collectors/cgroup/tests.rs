use super::*;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/cgroup");

fn opened(endpoint: &str, root: &Path, proc: &Path) -> Box<dyn Collector> {
    let settings = format!("root = {root:?}\nproc = {proc:?}");
    open(&Section::of("app", endpoint, &settings)).unwrap()
}

fn fixture(endpoint: &str, root: &str) -> Box<dyn Collector> {
    opened(endpoint, &Path::new(FIXTURE).join(root), &Path::new(FIXTURE).join("proc"))
}

fn copied(from: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("app")).unwrap();
    for entry in std::fs::read_dir(Path::new(FIXTURE).join(from)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join("app").join(path.file_name().unwrap())).unwrap();
    }
    dir
}

#[tokio::test]
async fn a_group_of_v2_gives_every_gauge() {
    for endpoint in ["app", "/app", "77"] {
        let mut group = fixture(endpoint, "v2");
        let support = group.start().await.unwrap();
        assert_eq!((support.version.as_str(), support.lacks.len()), ("v2", 0));
        assert_eq!(support.columns, GAUGES, "{endpoint}");
        let reading = group.read().await.unwrap();
        assert_eq!((reading.get("cpu_limit"), reading.get("cpu_seconds_total")), (Some(1.5), Some(12.5)));
        assert_eq!((reading.get("throttled_periods_total"), reading.get("throttled_us_total")), (Some(40.0), Some(2_500_000.0)));
        assert_eq!(reading.get("memory_working_bytes"), Some(150_000_000.0));
        assert_eq!((reading.get("oom_kills_total"), reading.get("pids_max")), (Some(1.0), Some(512.0)));
        assert_eq!(reading.get("psi_cpu_some_us_total"), Some(7_654_321.0));
    }
}

#[tokio::test]
async fn a_group_of_v1_is_found_in_each_hierarchy_by_its_files() {
    let mut group = fixture("app", "v1");
    let support = group.start().await.unwrap();
    assert_eq!(support.version, "v1");
    assert_eq!(support.lacks, []);
    let reading = group.read().await.unwrap();
    assert_eq!(reading.get("cpu_limit"), Some(0.2));
    assert!(reading.get("throttled_us_total").unwrap() > 1e5, "{reading:?}");
    assert!(reading.get("cpu_seconds_total").unwrap() > 0.1);
    assert_eq!(reading.get("memory_max_bytes"), None, "no limit");
    let working = support.columns.iter().find(|gauge| gauge.name == "memory_working_bytes").unwrap();
    assert_eq!(working.capacity, Capacity::None);
    assert_eq!(reading.get("pids"), Some(2.0));
}

#[tokio::test]
async fn a_process_of_v1_is_looked_for_in_the_hierarchy_of_each_controller_alone() {
    // Its memory is elsewhere than its processor time: /other holds files of memory too, and they are not its.
    let mut group = fixture("78", "v1");
    let support = group.start().await.unwrap();
    let reading = group.read().await.unwrap();
    assert_eq!((reading.get("cpu_limit"), reading.get("memory_bytes")), (Some(0.2), Some(4096.0)));
    assert!(support.lacks[0].what.contains("pids"), "{:?}", support.lacks);
}

#[tokio::test]
async fn the_root_of_v2_beside_v1_does_not_tell_its_processor_time_for_that_of_the_group() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("79/cgroup", "3:cpuacct:/app\n2:cpu:/app\n0::/\n"),
        ("cpu/app/cpu.cfs_quota_us", "40000\n"),
        ("cpu/app/cpu.cfs_period_us", "100000\n"),
        ("cpuacct/app/cpuacct.usage", "3000000000\n"),
        ("unified/cgroup.controllers", ""),
        ("unified/cpu.stat", "usage_usec 9000000000\n"),
    ] {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut group = opened("79", dir.path(), dir.path());
    group.start().await.unwrap();
    let reading = group.read().await.unwrap();
    assert_eq!((reading.get("cpu_seconds_total"), reading.get("cpu_limit")), (Some(3.0), Some(0.4)));
}

#[tokio::test]
async fn torn_values_are_left_out_and_a_group_made_anew_is_believed_in_the_end() {
    let dir = copied("v2/app");
    let file = dir.path().join("app/cpu.stat");
    let mut group = opened("app", dir.path(), dir.path());
    group.start().await.unwrap();
    for torn in ["usage_usec 12000000\n", "usage_usec 99999999999\n"] {
        std::fs::write(&file, torn).unwrap();
        let reading = group.read().await.unwrap();
        assert_eq!(reading.get("cpu_seconds_total"), None, "{torn}");
        assert!(reading.notes[0].contains("cannot be"), "{:?}", reading.notes);
        assert!(reading.get("memory_bytes").is_some(), "the rest of the row goes on");
        std::fs::write(&file, "usage_usec 12500001\n").unwrap();
        assert!(group.read().await.unwrap().get("cpu_seconds_total").is_some());
    }
    std::fs::write(&file, "usage_usec 1000000\n").unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(group.read().await.unwrap().get("cpu_seconds_total"));
    }
    assert_eq!(seen, [None, None, Some(1.0)]);
}

#[tokio::test]
async fn a_group_that_is_gone_is_a_fault_and_one_file_that_is_gone_a_note() {
    let dir = copied("v2/app");
    let mut group = Cgroup {
        instance: "app".to_owned(),
        endpoint: "app".to_owned(),
        root: dir.path().to_owned(),
        proc: dir.path().to_owned(),
        sources: Vec::new(),
        cpu: Plausible::default(),
        cores: 2.0,
        buffer: Vec::new(),
    };
    group.start().await.unwrap();
    let reopen = |group: &mut Cgroup| {
        for source in &mut group.sources {
            source.file = ProcFile::new(source.file.path().to_owned());
        }
    };
    std::fs::remove_file(dir.path().join("app/memory.current")).unwrap();
    reopen(&mut group);
    let reading = group.read().await.unwrap();
    assert!(reading.notes[0].contains("memory.current") && reading.get("pids").is_some(), "{reading:?}");
    assert_eq!((reading.get("memory_bytes"), reading.get("memory_working_bytes")), (None, None));
    std::fs::remove_dir_all(dir.path().join("app")).unwrap();
    reopen(&mut group);
    let fault = group.read().await.unwrap_err();
    assert!(fault.kind == FaultKind::Unreachable && fault.hint.unwrap().contains("gone"), "{}", fault.message);
}

#[tokio::test]
async fn what_is_not_there_is_said_with_the_place_that_was_looked_at() {
    let fault = fixture("nothing", "v2").start().await.unwrap_err();
    assert!(fault.message.contains("nothing") && fault.message.contains("v2"), "{fault}");
    let fault = fixture("99", "v2").start().await.unwrap_err();
    assert!(fault.message.contains("99/cgroup"), "{fault}");
}
