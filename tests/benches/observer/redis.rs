//! Redis: sessions that each send a pipeline of SET and GET and wait for its answers.

use super::server::Server;
use super::{Plan, Subject, Work};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Commands in one pipeline, half of each kind.
const PIPELINE: u64 = 20;

fn commands(session: u64) -> (Vec<u8>, usize) {
    let (mut request, mut answer) = (Vec::new(), 0);
    for at in 0..PIPELINE / 2 {
        let key = format!("observer:{session:03}:{at:02}");
        let (key, value) = (format!("${}\r\n{key}\r\n", key.len()), "$5\r\nvalue\r\n");
        request.extend(format!("*3\r\n$3\r\nSET\r\n{key}{value}*2\r\n$3\r\nGET\r\n{key}").into_bytes());
        answer += "+OK\r\n".len() + value.len();
    }
    (request, answer)
}

/// The server under its load.
pub fn subject(server: &Server, plan: &Plan, work: &Work) -> Subject {
    let port: u16 = server.get("REDIS_PORT").parse().expect("a port");
    // As many as keep one thread of the server busy: a hundred would measure the machine's scheduler.
    let sessions = plan.sessions.min(8);
    let work = work.clone();
    let thread = std::thread::spawn(move || {
        std::thread::scope(|scope| {
            for session in 0..sessions {
                let work = work.clone();
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server lets one more session in");
                    stream.set_nodelay(true).expect("an option of the socket");
                    let (request, length) = commands(session);
                    let mut answer = vec![0; length];
                    loop {
                        stream.write_all(&request).expect("it takes the commands");
                        stream.read_exact(&mut answer).expect("it answers");
                        if !work.did(PIPELINE) {
                            break;
                        }
                    }
                });
            }
        });
    });
    Subject {
        collector: "redis",
        url: server.get("REDIS_PROBE_URL").to_owned(),
        load: format!("{sessions} sessions send pipelines of {PIPELINE} SET and GET"),
        unit: "commands",
        other: None,
        thread,
    }
}
