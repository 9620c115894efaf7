use super::*;
use proptest::prelude::*;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../fixtures/listen/linux-6.18/", $name))
    };
}

const INET: &[u8] = fixture!("inet-0.bin");
const INET_END: &[u8] = fixture!("inet-1.bin");
const INET6: &[u8] = fixture!("inet6-0.bin");
const UNIX: &[u8] = fixture!("unix-0.bin");

fn tcp_of(datagram: &[u8]) -> Vec<Tcp> {
    let mut found = Vec::new();
    assert_eq!(tcp(datagram, 7, &mut found), Ok(Step::More));
    found
}

#[test]
fn a_real_answer_gives_depth_and_limit_of_each_listener() {
    let found = tcp_of(INET);
    let of = |port: u16| found.iter().filter(move |socket| socket.port == port);
    let one = of(31001).next().unwrap();
    assert_eq!((one.address, one.depth, one.limit), (Ipv4Addr::LOCALHOST.into(), 3, Some(8)));
    assert_eq!(of(31005).count(), 2, "two sockets share the port");
    assert_eq!(of(31005).map(|socket| socket.depth).sum::<u64>(), 5);
    assert_eq!(found.len(), 4);
    assert_eq!(tcp(INET_END, 7, &mut Vec::new()), Ok(Step::Done));
}

#[test]
fn a_real_answer_tells_which_ipv6_sockets_leave_ipv4_to_others() {
    let found = tcp_of(INET6);
    let of = |port: u16| found.iter().find(|socket| socket.port == port).unwrap();
    assert_eq!((of(31002).address, of(31002).depth, of(31002).limit), (Ipv6Addr::LOCALHOST.into(), 2, Some(5)));
    assert!(of(31004).v6_only && !of(31003).v6_only);
}

#[test]
fn a_real_answer_names_unix_sockets_by_path_and_by_file() {
    let mut found = Vec::new();
    assert_eq!(unix(UNIX, 7, &mut found), Ok(Step::More));
    let of = |name: &[u8]| found.iter().find(|socket| socket.name == name).unwrap();
    let app = of(b"/tmp/cap/app.sock");
    assert_eq!((app.depth, app.limit), (3, 2), "one more than the limit is let in");
    assert_eq!(app.file, Some((10_051_830, 0x0fe0_0000)));
    assert_eq!(of(b"rel.sock").file, Some((10_051_831, 0x0fe0_0000)));
    let hidden = of(b"\0whatgives-abstract");
    assert_eq!((hidden.depth, hidden.limit, hidden.file), (2, 4, None));
}

#[test]
fn answers_to_an_earlier_question_are_passed_over() {
    let mut found = Vec::new();
    assert_eq!(tcp(INET, 8, &mut found), Ok(Step::More));
    assert_eq!(tcp(INET_END, 8, &mut found), Ok(Step::More));
    assert_eq!(found, []);
}

#[test]
fn a_refusal_carries_its_error_number() {
    let mut refusal = Vec::new();
    refusal.extend(36_u32.to_ne_bytes());
    refusal.extend(NLMSG_ERROR.to_ne_bytes());
    refusal.extend([0; 2]);
    refusal.extend(7_u32.to_ne_bytes());
    refusal.extend([0; 4]);
    refusal.extend((-13_i32).to_ne_bytes());
    refusal.extend([0; 16]);
    assert_eq!(tcp(&refusal, 7, &mut Vec::new()), Ok(Step::Refused(13)));
}

#[test]
fn a_question_has_the_documented_length_and_asks_for_listeners_of_the_port_alone() {
    let question = ask_tcp(true, 8080, 9);
    assert_eq!((question.len(), &question[..4]), (72, &72_u32.to_ne_bytes()[..]));
    assert_eq!((question[16], question[17], &question[20..24]), (AF_INET6, IPPROTO_TCP, &1024_u32.to_ne_bytes()[..]));
    assert_eq!(&question[24..26], &8080_u16.to_be_bytes());
    assert_eq!(ask_unix(9).len(), 40);
}

#[test]
fn a_cut_answer_is_garbled_or_has_fewer_sockets_but_never_other_numbers() {
    let whole = tcp_of(INET);
    for end in 0..INET.len() {
        let mut found = Vec::new();
        let step = tcp(&INET[..end], 7, &mut found);
        assert!(step == Err(Garbled) || step == Ok(Step::More), "{step:?} after a cut at byte {end}");
        assert_eq!(found, whole[..found.len()], "cut at byte {end}");
    }
    let mut all = Vec::new();
    let _ = unix(UNIX, 7, &mut all);
    for end in 0..UNIX.len() {
        let mut found = Vec::new();
        let _ = unix(&UNIX[..end], 7, &mut found);
        assert_eq!(found, all[..found.len()], "cut at byte {end}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_readers_panic_or_loop(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = tcp(&bytes, 7, &mut Vec::new());
        let _ = unix(&bytes, 7, &mut Vec::new());
    }

    #[test]
    fn no_changed_bytes_make_the_readers_panic_or_loop(at in 0..INET.len(), byte in any::<u8>(), of_unix in 0..UNIX.len()) {
        let mut changed = INET.to_vec();
        changed[at] = byte;
        let _ = tcp(&changed, 7, &mut Vec::new());
        let mut changed = UNIX.to_vec();
        changed[of_unix] = byte;
        let _ = unix(&changed, 7, &mut Vec::new());
    }
}
