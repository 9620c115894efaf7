//! Gates on columns: one more reading of the ticks, row by row, with only the columns that the gates name.

use super::{Judged, Run, never_read, windows};
use crate::correlate::tell::round;
use crate::correlate::verdict::Caveat;
use crate::judge::gate::gauges::GaugeGate;
use crate::judge::gate::{Gate, GateError, Measure};
use crate::text;
use crate::ticks::{Reader, Row};

/// What became of every gate on a column, in their order. Each file is read once.
pub fn judge(gates: &[&Gate], run: &Run) -> Result<Vec<Judged>, GateError> {
    let gates: Vec<&&Gate> = gates.iter().filter(|gate| matches!(gate.measure, Measure::Gauge { .. })).collect();
    let Some(some) = gates.first() else { return Ok(Vec::new()) };
    let unreadable = |why: text::InputError| some.error(why.to_string());
    let mut found: Vec<Option<Result<Judged, GateError>>> = gates.iter().map(|_| None).collect();
    let mut missing: Vec<Option<GateError>> = gates.iter().map(|_| None).collect();
    for (path, host) in &run.files {
        let mut reader = Reader::open(path).map_err(unreadable)?;
        let header = reader.header().clone();
        let tick_s = if header.run.tick_ms > 0.0 { header.run.tick_ms / 1e3 } else { 1.0 };
        let mut followed = Vec::new();
        for (n, gate) in gates.iter().enumerate().filter(|(n, _)| found[*n].is_none()) {
            match GaugeGate::new(&host.map_or_else(|| (**gate).clone(), |host| gate.of_machine(host)), &header) {
                Ok(Some(follow)) => followed.push((n, windows(gate, run)?, follow)),
                Ok(None) => {}
                Err(why) => missing[n] = missing[n].take().or(Some(GateError { gate: gate.text.clone(), ..why })),
            }
        }
        if followed.is_empty() {
            continue;
        }
        let mut row = Row::default();
        while reader.next_row(&mut row).map_err(unreadable)? {
            let at_ms = row.unix_ms as f64;
            let late_ms = if row.late_ms.is_finite() { row.late_ms } else { 0.0 };
            for (_, windows, follow) in &mut followed {
                let counts = windows.iter().any(|(from, to)| (*from..*to).contains(&at_ms));
                follow.row((at_ms + late_ms) / 1e3, &row.cells, tick_s, counts);
            }
        }
        for (n, _, follow) in &followed {
            found[*n] = Some(told(gates[*n], follow, run));
        }
    }
    let each = found.into_iter().zip(missing).zip(gates);
    each.map(|((found, missing), gate)| found.unwrap_or_else(|| Err(missing.unwrap_or_else(|| gate.error("was not judged")))))
        .collect()
}

fn told(gate: &Gate, follow: &GaugeGate, run: &Run) -> Result<Judged, GateError> {
    let held = follow.held();
    if held.readings() == 0 {
        let place = gate.during.as_ref().map_or(String::new(), |phase| format!(" during {phase}"));
        return Err(gate.error(never_read(&place)));
    }
    let first = held.first();
    let caveat = follow.gap().filter(|(seconds, _)| first.is_none() && *seconds >= gate.for_s).map(|(seconds, since_s)| Caveat {
        code: "gate_gap",
        text: format!(
            "the gate {:?} saw nothing for {seconds:.0} s from t+{:.0} s on",
            gate.text,
            since_s - run.frame.run_start_ms() / 1e3
        ),
        todo: "see in the notes of the ticks why the target was silent, and run again".to_owned(),
        can_change_name: true,
    });
    Ok(Judged {
        value: round(held.worst(), 4).into(),
        passed: first.is_none(),
        broke_ms: first.map(|broken| broken.since_s * 1e3),
        lasted_s: held.longest_s(),
        coarse: false,
        caveat,
    })
}
