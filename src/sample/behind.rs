//! A file that is written behind: whoever writes to it never waits for the disk. A disk that stands still, or a pipe that
//! nobody reads, costs no tick; what was written goes out in its order when the file takes it again.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// How many bytes may wait for a file that takes nothing.
const MOST: usize = 64 << 20;

/// The front of the file. An error of the file is told by the next write, or at the end by [`Behind::close`].
pub struct Behind {
    lines: Option<Sender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiting: usize,
    wrong: Option<io::Error>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Behind {
    pub fn new(file: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = channel();
        let state = Arc::default();
        let seen = Arc::clone(&state);
        let thread = thread::Builder::new().name("writer".to_owned()).spawn(move || serve(file, &waiting, &seen))?;
        Ok(Self { lines: Some(lines), thread: Some(thread), state })
    }

    /// Waits until everything is written.
    pub fn close(mut self) -> io::Result<()> {
        self.end();
        lock(&self.state).wrong.take().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic; and if it did, nothing more could be written.
            let _ = thread.join();
        }
    }
}

fn serve(mut file: impl Write, lines: &Receiver<Vec<u8>>, state: &Mutex<State>) {
    for bytes in lines {
        let done = file.write_all(&bytes).and_then(|()| file.flush());
        let mut state = lock(state);
        state.waiting -= bytes.len();
        if let Err(why) = done {
            state.wrong = Some(why);
            return;
        }
    }
}

impl Write for Behind {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.state);
        if let Some(wrong) = state.wrong.take() {
            return Err(wrong);
        }
        if state.waiting + bytes.len() > MOST {
            let found = format!("it takes nothing, and {} MiB wait for it", MOST >> 20);
            return Err(io::Error::new(io::ErrorKind::TimedOut, found));
        }
        state.waiting += bytes.len();
        drop(state);
        match self.lines.as_ref().map(|lines| lines.send(bytes.to_vec())) {
            Some(Ok(())) => Ok(bytes.len()),
            _ => Err(io::Error::new(io::ErrorKind::BrokenPipe, "nothing more can be written")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that takes nothing until it is told to, and at most so many bytes.
    struct Slow {
        goes_on: Receiver<()>,
        taken: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Told once, it goes on for good.
            let _ = self.goes_on.recv();
            let mut taken = self.taken.lock().unwrap();
            if taken.len() + bytes.len() > self.room {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            taken.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow(room: usize) -> (Behind, Sender<()>, Arc<Mutex<Vec<u8>>>) {
        let (go_on, goes_on) = channel();
        let taken = Arc::default();
        (Behind::new(Slow { goes_on, taken: Arc::clone(&taken), room }).unwrap(), go_on, taken)
    }

    #[test]
    fn a_file_that_takes_nothing_holds_nobody_up_and_gets_everything_in_its_order() {
        let (mut behind, go_on, taken) = slow(usize::MAX);
        let rows: Vec<String> = (0..1000).map(|row| format!("row {row}\n")).collect();
        for row in &rows {
            behind.write_all(row.as_bytes()).unwrap();
        }
        assert_eq!(taken.lock().unwrap().len(), 0);
        drop(go_on);
        behind.close().unwrap();
        assert_eq!(*taken.lock().unwrap(), rows.concat().as_bytes());
    }

    #[test]
    fn a_full_disk_is_told_once_it_is_known_and_nothing_is_written_after_it() {
        let (mut behind, go_on, taken) = slow(8);
        behind.write_all(b"row 0\n").unwrap();
        behind.write_all(b"row 1\n").unwrap();
        drop(go_on);
        assert_eq!(behind.close().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(*taken.lock().unwrap(), b"row 0\n");
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut behind, go_on, _) = slow(usize::MAX);
        let much = vec![b'x'; MOST];
        behind.write_all(&much).unwrap();
        let wrong = behind.write_all(b"x").unwrap_err();
        assert!(wrong.to_string().contains("64 MiB wait for it"), "{wrong}");
        drop(go_on);
    }
}
