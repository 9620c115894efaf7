//! An application of few threads whose payment provider becomes slow: only its own counters tell.

use super::{climb, open, page};
use crate::open_loop::load::{Answer, App, Visit};
use crate::open_loop::requests::Outcome;
use crate::stage::Stage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Threads of the application.
const THREADS: usize = 16;
/// How long a payment takes, at first and from when on: 160 a second are paid at first, and 32 from then on.
const QUICK_MS: u64 = 100;
const SLOW_MS: u64 = 500;
const FROM: Duration = Duration::from_secs(27);

struct Executor {
    threads: Semaphore,
    queued: AtomicU64,
    completed: AtomicU64,
    payment_ms: AtomicU64,
}

impl Executor {
    async fn pay(&self) -> Option<()> {
        self.queued.fetch_add(1, Relaxed);
        let thread = self.threads.acquire().await;
        self.queued.fetch_sub(1, Relaxed);
        let _thread = thread.ok()?;
        tokio::time::sleep(Duration::from_millis(self.payment_ms.load(Relaxed))).await;
        self.completed.fetch_add(1, Relaxed);
        Some(())
    }

    fn page(&self) -> String {
        let active = THREADS - self.threads.available_permits();
        format!(
            r#"{{"executor":{{"pool_size":{THREADS},"active":{active},"queued":{},"completed":{}}}}}"#,
            self.queued.load(Relaxed),
            self.completed.load(Relaxed)
        )
    }
}

pub fn slow(stage: &Stage) -> anyhow::Result<()> {
    let executor = Arc::new(Executor {
        threads: Semaphore::new(THREADS),
        queued: AtomicU64::new(0),
        completed: AtomicU64::new(0),
        payment_ms: AtomicU64::new(QUICK_MS),
    });
    let page = page::serve("application/json", {
        let executor = executor.clone();
        move || executor.page()
    })?;
    stage.sampled(None, &["--json", &format!("app=http://{page}/stats")], |log| {
        open(climb(10.0, 60.0), None, log, async {
            let provider = executor.clone();
            tokio::spawn(async move {
                tokio::time::sleep(FROM).await;
                provider.payment_ms.store(SLOW_MS, Relaxed);
            });
            let app: App = Arc::new(move |_: Visit| {
                let executor = executor.clone();
                Box::pin(async move {
                    let outcome = if executor.pay().await.is_some() { Outcome::Ok } else { Outcome::Fail };
                    Answer { step: "pay", outcome, code: None }
                })
            });
            Ok(app)
        })
    })
}
