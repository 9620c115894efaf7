//! Every target in a task of its own. At a tick all are asked at once; each has its own deadline, and a late one costs its
//! own cells and nothing else. One read is in flight: a late read is left to end by itself, its answer is dropped, and until
//! then the target is not asked again. After 30 s it is cancelled. There is no back-off.

use super::config::TargetConfig;
use super::schedule::{Schedule, Tick};
use collectors::api::{Collector, Fault, FaultKind, Gauge, Lack, Reading, Support};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// When a read that does not end is cancelled.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// What a target's cells of one tick are made of.
#[derive(Debug)]
pub enum Outcome {
    /// It is read less often: not due is not missed.
    NotDue,
    /// It answered in time.
    Answered {
        /// How long the read took.
        took: Duration,
        /// What it gave.
        reading: Reading,
        /// What it turned out to be, where it was down at the start.
        first: Option<Box<Support>>,
    },
    /// It answered that it cannot.
    Failed {
        /// How long that took.
        took: Duration,
        /// Why.
        fault: Fault,
    },
    /// It did not answer in time, or still not since an earlier tick.
    Silent {
        /// How long it has been waited for.
        waited: Duration,
    },
}

enum Order {
    Start,
    Read,
}

enum Answer {
    Started(Box<Support>),
    Read(Reading, Option<Box<Support>>),
}

struct Reply {
    target: usize,
    /// Counts the orders of this target, so that a late answer is told from the one that is waited for.
    order: u64,
    took: Duration,
    result: Result<Answer, Fault>,
}

struct Slot {
    config: TargetConfig,
    columns: Vec<Gauge>,
    unsettled: Option<Lack>,
    orders: UnboundedSender<(u64, Order)>,
    task: JoinHandle<()>,
    sent: u64,
    busy_since: Option<Instant>,
    /// The first tick at which it is due again.
    due: u64,
    every: u64,
}

/// All targets of a run.
pub struct Collect {
    slots: Vec<Slot>,
    replies: UnboundedReceiver<Reply>,
    reply: UnboundedSender<Reply>,
    give_up: Duration,
}

impl Collect {
    /// Opens every target: no I/O yet. The error names the target that cannot be.
    pub fn open(targets: &[TargetConfig], tick: Duration) -> Result<Self, (usize, Fault)> {
        Self::open_with(targets, tick, GIVE_UP)
    }

    fn open_with(targets: &[TargetConfig], tick: Duration, give_up: Duration) -> Result<Self, (usize, Fault)> {
        let (reply, replies) = unbounded_channel();
        let mut slots = Vec::with_capacity(targets.len());
        for (n, config) in targets.iter().enumerate() {
            let collector = (config.spec.open)(&config.section).map_err(|fault| (n, fault))?;
            let (columns, unsettled) = (collector.columns(), collector.unsettled());
            let (orders, task) = serve(n, collector, give_up, reply.clone());
            let every = config.every.map_or(1.0, |every| (every.as_secs_f64() / tick.as_secs_f64()).round().max(1.0)) as u64;
            let config = config.clone();
            slots.push(Slot { config, columns, unsettled, orders, task, sent: 0, busy_since: None, due: 0, every });
        }
        Ok(Self { slots, replies, reply, give_up })
    }

    /// The columns of a target as far as they are known without asking.
    pub fn columns(&self, target: usize) -> &[Gauge] {
        &self.slots[target].columns
    }

    /// Which columns a target has only where it answers at the start.
    pub fn unsettled(&self, target: usize) -> Option<&Lack> {
        self.slots[target].unsettled.as_ref()
    }

    /// Asks every target at once what it is, each for at most `limit`.
    pub async fn start(&mut self, limit: Duration) -> Vec<Result<Support, Fault>> {
        let began = Instant::now();
        let mut found: Vec<Option<Result<Support, Fault>>> = self.slots.iter().map(|_| None).collect();
        for slot in &mut self.slots {
            slot.send(Order::Start, began);
        }
        while found.iter().any(Option::is_none) {
            let Some(reply) = self.next_reply(began + limit).await else { break };
            let target = reply.target;
            if let Some(current) = self.accept(reply) {
                found[target] = Some(match current.result {
                    Ok(Answer::Started(support) | Answer::Read(_, Some(support))) => Ok(*support),
                    Ok(Answer::Read(_, None)) => Err(Fault::new(FaultKind::Nonsense, "answered before it was started")),
                    Err(fault) => Err(fault),
                });
            }
        }
        let silent = |n: usize| {
            let slot = &self.slots[n];
            let what = if slot.task.is_finished() { "its collector failed inside" } else { "no answer" };
            Err(Fault::new(FaultKind::Unreachable, format!("{what} in {}", super::config::show(limit))))
        };
        found.into_iter().enumerate().map(|(n, found)| found.unwrap_or_else(|| silent(n))).collect()
    }

    /// Reads every target that is due, all at once; done when all have answered or the last deadline is over.
    pub async fn tick(&mut self, tick: &Tick, schedule: &Schedule) -> Vec<Outcome> {
        // What came in since the last tick is late, and frees its target.
        while let Ok(reply) = self.replies.try_recv() {
            self.accept(reply);
        }
        let began = Instant::now();
        let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(self.slots.len());
        let mut deadlines: Vec<Instant> = Vec::with_capacity(self.slots.len());
        for n in 0..self.slots.len() {
            if self.slots[n].task.is_finished() {
                self.reopen(n);
            }
            let slot = &mut self.slots[n];
            deadlines.push(schedule.deadline(tick, began, slot.config.section.timeout));
            if tick.number < slot.due {
                outcomes.push(Some(Outcome::NotDue));
                continue;
            }
            slot.due = (tick.number / slot.every + 1) * slot.every;
            outcomes.push(if let Some(since) = slot.busy_since {
                Some(Outcome::Silent { waited: began - since })
            } else {
                slot.send(Order::Read, began);
                None
            });
        }
        let pending = |outcomes: &[Option<Outcome>]| (0..outcomes.len()).filter(|n| outcomes[*n].is_none()).collect::<Vec<_>>();
        loop {
            let waiting = pending(&outcomes);
            let Some(until) = waiting.iter().map(|n| deadlines[*n]).min() else { break };
            if let Some(reply) = self.next_reply(until).await {
                let target = reply.target;
                // A target whose deadline is over already said nothing at this tick.
                if let (Some(current), None) = (self.accept(reply), &outcomes[target]) {
                    outcomes[target] = Some(current.outcome());
                }
                continue;
            }
            let now = Instant::now();
            for n in waiting.into_iter().filter(|n| deadlines[*n] <= now) {
                outcomes[n] = Some(Outcome::Silent { waited: deadlines[n] - began });
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::NotDue)).collect()
    }

    /// The next reply, if one comes by then.
    async fn next_reply(&mut self, until: Instant) -> Option<Reply> {
        tokio::select! {
            biased;
            reply = self.replies.recv() => return reply,
            () = sleep_until(until) => {}
        }
        // After a stall of this process the answer may be there, unread: the tasks get one turn before the target is blamed.
        for _ in 0..2 {
            tokio::task::yield_now().await;
            if let Ok(reply) = self.replies.try_recv() {
                return Some(reply);
            }
        }
        None
    }

    /// Frees the reply's target; gives the reply back if it is the one that is waited for.
    fn accept(&mut self, reply: Reply) -> Option<Reply> {
        let slot = &mut self.slots[reply.target];
        if reply.order != slot.sent {
            return None;
        }
        slot.busy_since = None;
        Some(reply)
    }

    /// A collector that failed inside is replaced; that costs nothing but its own cells.
    fn reopen(&mut self, n: usize) {
        let slot = &mut self.slots[n];
        if let Ok(collector) = (slot.config.spec.open)(&slot.config.section) {
            let (orders, task) = serve(n, collector, self.give_up, self.reply.clone());
            slot.orders = orders;
            slot.task = task;
            slot.busy_since = None;
        }
    }
}

impl Slot {
    fn send(&mut self, order: Order, now: Instant) {
        self.sent += 1;
        self.busy_since = Some(now);
        // A task that is gone never answers; the deadline says so.
        let _ = self.orders.send((self.sent, order));
    }
}

impl Reply {
    fn outcome(self) -> Outcome {
        let took = self.took;
        match self.result {
            Ok(Answer::Read(reading, first)) => Outcome::Answered { took, reading, first },
            Ok(Answer::Started(support)) => Outcome::Answered { took, reading: Reading::default(), first: Some(support) },
            Err(fault) => Outcome::Failed { took, fault },
        }
    }
}

/// A target's task: one order after the other, until nobody gives any.
fn serve(
    target: usize,
    mut collector: Box<dyn Collector>,
    give_up: Duration,
    reply: UnboundedSender<Reply>,
) -> (UnboundedSender<(u64, Order)>, JoinHandle<()>) {
    let (send, mut orders) = unbounded_channel();
    let task = tokio::spawn(async move {
        let mut started = false;
        while let Some((number, order)) = orders.recv().await {
            let began = Instant::now();
            let work = async {
                let mut first = None;
                if !started || matches!(order, Order::Start) {
                    first = Some(Box::new(collector.start().await?));
                    started = true;
                }
                match (order, first) {
                    (Order::Start, Some(support)) => Ok(Answer::Started(support)),
                    (_, first) => Ok(Answer::Read(collector.read().await?, first)),
                }
            };
            let result = match timeout(give_up, work).await {
                Ok(result) => result,
                Err(_) => {
                    Err(Fault::new(FaultKind::Unreachable, format!("no answer in {}: given up", super::config::show(give_up))))
                }
            };
            if reply.send(Reply { target, order: number, took: began.elapsed(), result }).is_err() {
                return;
            }
        }
    });
    (send, task)
}

#[cfg(test)]
mod tests;
