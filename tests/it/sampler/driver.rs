//! A wrapped driver, and the signals that end a run.

use crate::support::sampler::{Folder, Ran, signal, until};
use std::io::Write;
use std::process::Stdio;

#[test]
fn an_interrupt_and_a_termination_end_a_run_cleanly() {
    for name in ["INT", "TERM"] {
        let folder = Folder::new();
        let child = folder.start(&["--tick=50ms"]);
        folder.until_rows(3);
        signal(child.id(), name);
        let ran = Ran::end(child);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        assert!(ran.err.contains("wrote ticks.tsv and waits.tsv"), "{}", ran.err);
    }
}

#[test]
fn the_driver_keeps_its_streams_and_its_code_is_passed_on() {
    let folder = Folder::new();
    let ran = folder.run(&["--tick=50ms", "--rest=200ms", "--cool=0", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "out\n"));
    assert!(ran.err.contains("err\n"));
    let ticks = folder.ticks();
    assert_eq!(ticks.children.len(), 2);
    assert_eq!(ticks.children[1].code, Some(3));
    let ran = folder.run(&["--force", "--", "./no-such-driver"]);
    assert_eq!(ran.code, 127);
    assert!(ran.err.contains("no-such-driver cannot be started: not found"), "{}", ran.err);
}

#[test]
fn a_process_by_the_drivers_name_is_the_drivers_own_and_need_not_be_there_before_it() {
    let folder = Folder::new();
    // A program of a name that nothing else has.
    let program = folder.path("whatgives-drv");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let flag = "--process=drv=whatgives-drv";
    let ran = folder.run(&[flag, "--no-host", "--tick=50ms", "--rest=300ms", "--cool=0", "--", program.to_str().unwrap(), "2"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ticks = folder.ticks();
    let (up, processes) = (ticks.column("drv.up").unwrap(), ticks.column("drv.processes").unwrap());
    assert!(up[0] == 0.0 && up.contains(&1.0), "{up:?}");
    assert!(processes.iter().zip(up).all(|(processes, up)| if *up == 1.0 { *processes == 1.0 } else { processes.is_nan() }));
    assert_eq!(ticks.header.targets[0].about["role"], "driver");
    // Another's process has to be there.
    let ran = folder.run(&["--process=whatgives-none", "--no-host", "--force", "--", "true"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
}

#[test]
fn a_termination_is_passed_on_once_and_the_run_goes_on_until_the_driver_has_ended() {
    let folder = Folder::new();
    let script =
        "trap 'echo told; told=1' TERM; echo runs > started; while [ -z \"$told\" ]; do sleep 0.05; done; sleep 0.3; exit 9";
    let child = folder.start(&["--tick=50ms", "--rest=0", "--cool=10s", "--", "sh", "-c", script]);
    until("the driver runs", || folder.path("started").exists());
    signal(child.id(), "TERM");
    let ran = Ran::end(child);
    assert_eq!((ran.code, ran.out.as_str()), (9, "told\n"), "{}", ran.err);
    let ticks = folder.ticks();
    let end = ticks.children[1].end_unix_ms.unwrap();
    // Sampled to the driver's end, and no cool stretch after a signal.
    assert!((end - ticks.unix_ms.last().unwrap()).abs() < 1000, "{end} {:?}", ticks.unix_ms.last());
}

#[test]
fn a_second_signal_kills_a_driver_that_does_not_heed_the_first() {
    let folder = Folder::new();
    let script = "trap '' TERM; echo runs > started; exec sleep 60";
    let child = folder.start(&["--tick=50ms", "--rest=0", "--", "sh", "-c", script]);
    until("the driver runs", || folder.path("started").exists());
    signal(child.id(), "TERM");
    folder.until_rows(folder.ticks().tick.len() + 3);
    signal(child.id(), "TERM");
    assert_eq!(Ran::end(child).code, 128 + 9);
}

#[test]
fn a_signal_in_the_resting_stretch_ends_the_run_before_the_driver_starts() {
    let folder = Folder::new();
    let child = folder.start(&["--tick=50ms", "--rest=30s", "--", "sh", "-c", "touch started"]);
    folder.until_rows(3);
    signal(child.id(), "TERM");
    assert_eq!(Ran::end(child).code, 128 + 15);
    assert!(!folder.path("started").exists());
}

#[test]
fn on_a_terminal_there_is_a_line_of_progress_and_an_interrupt_reaches_the_driver_once() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_sampler");
    folder.write("driver", "trap 'echo told to end; sleep 0.4; exit 5' INT; echo runs > started; while :; do sleep 0.1; done");
    // `script` gives it a terminal; what is written to its standard input is typed there. It runs the command with $SHELL;
    // a shell that stayed would be interrupted as well, and end with 130 of its own.
    let mut child = std::process::Command::new("script")
        .args(["-qec", &format!("exec {program} --tick=50ms --rest=300ms -- sh driver"), "/dev/null"])
        .current_dir(folder.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until("the driver runs", || folder.path("started").exists());
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let ran = Ran::end(child);
    assert_eq!(ran.code, 5, "{}", ran.out);
    assert_eq!(ran.out.matches("told to end").count(), 1, "{}", ran.out);
    assert!(ran.out.contains("resting, 0 s of 0 s · 1 of 1 target up"), "{}", ran.out);
    assert!(ran.out.contains("waiting for the driver to end"), "{}", ran.out);
}
