//! The other watchers: collectd, and Prometheus' exporters with a scraper.

use super::Servers;
use super::process::{Cost, Watcher};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where a program is, if it is.
fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&folders).chain(usual).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("{name} is not installed: left out");
    }
    found
}

fn quiet(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// collectd with the plugins for the same targets, every value kept in its memory and written nowhere.
pub fn collectd(servers: &Servers, tick: Duration, folder: &Path) -> Option<Watcher> {
    let program = program("collectd")?;
    let log = folder.join("collectd.log");
    let host_and_port = |address: &str| {
        let (host, port) = address.rsplit_once(':').expect("HOST:PORT");
        (host.to_owned(), port.to_owned())
    };
    let (memcached_host, memcached_port) = host_and_port(servers.get("MEMCACHED_ADDRESS"));
    let number = |path: &str| format!("<Key \"{path}\">\nType \"gauge\"\n</Key>");
    let pool =
        ["listen queue", "idle processes", "active processes", "accepted conn", "max children reached"].map(number).join("\n");
    let config = format!(
        "Hostname \"bench\"\nBaseDir \"{folder}\"\nPIDFile \"{folder}/collectd.pid\"\nInterval {interval}\n\
         LoadPlugin logfile\n<Plugin logfile>\nLogLevel warning\nFile \"{log}\"\n</Plugin>\n\
         LoadPlugin cpu\nLoadPlugin memory\nLoadPlugin swap\nLoadPlugin vmem\nLoadPlugin disk\nLoadPlugin interface\nLoadPlugin load\n\
         LoadPlugin contextswitch\nLoadPlugin conntrack\nLoadPlugin protocols\n\
         LoadPlugin mysql\n<Plugin mysql>\n<Database shop>\nHost \"127.0.0.1\"\nPort {mysql}\nUser \"root\"\nInnodbStats true\n</Database>\n</Plugin>\n\
         LoadPlugin postgresql\n<Plugin postgresql>\n<Database shop>\nHost \"127.0.0.1\"\nPort \"{postgres}\"\nUser \"postgres\"\nSSLMode \"disable\"\n</Database>\n</Plugin>\n\
         LoadPlugin redis\n<Plugin redis>\n<Node \"one\">\nHost \"127.0.0.1\"\nPort \"{redis}\"\nTimeout 2000\n</Node>\n</Plugin>\n\
         LoadPlugin memcached\n<Plugin memcached>\n<Instance \"one\">\nHost \"{memcached_host}\"\nPort \"{memcached_port}\"\n</Instance>\n</Plugin>\n\
         LoadPlugin apache\n<Plugin apache>\n<Instance \"one\">\nURL \"{apache}\"\n</Instance>\n</Plugin>\n\
         LoadPlugin nginx\n<Plugin nginx>\nURL \"{nginx}\"\n</Plugin>\n\
         LoadPlugin curl_json\n<Plugin curl_json>\n<URL \"{fpm}?json\">\nInstance \"fpm\"\n{pool}\n</URL>\n</Plugin>\n",
        folder = folder.display(),
        interval = tick.as_secs_f64(),
        log = log.display(),
        mysql = servers.get("MYSQL_PORT"),
        postgres = servers.get("POSTGRES18_PORT"),
        redis = servers.get("REDIS_PORT"),
        apache = servers.get("APACHE_STATUS_URL"),
        nginx = servers.get("NGINX_STATUS_URL"),
        fpm = servers.get("NGINX_FPM_STATUS_URL"),
    );
    let path = folder.join("collectd.conf");
    std::fs::write(&path, config).expect("its configuration is written");
    let mut child = quiet(Command::new(program).args(["-f", "-C"]).arg(&path));
    // What it cannot read costs it less: that must be seen.
    std::thread::sleep(Duration::from_secs(3));
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let trouble: Vec<&str> = said.lines().filter(|line| ["error", "fail"].iter().any(|word| line.contains(word))).collect();
    if !trouble.is_empty() {
        eprintln!("collectd is in trouble:\n{}", trouble.join("\n"));
    }
    let ended = child.try_wait().expect("its state");
    if ended.is_some() {
        eprintln!("collectd ended by itself: left out");
        return None;
    }
    Some(Watcher::new("collectd", vec![child]))
}

/// An exporter of Debian: its program, options, environment, and the line by which it says that it reads its server.
struct Exporter {
    program: &'static str,
    listen: &'static str,
    args: Vec<String>,
    env: Option<(&'static str, String)>,
    reads: &'static str,
}

fn wanted(servers: &Servers) -> Vec<Exporter> {
    let exporter = |program, args: &[&str], env, reads| Exporter {
        program,
        listen: match program {
            "prometheus-nginx-exporter" => "-web.listen-address",
            "prometheus-apache-exporter" => "--telemetry.address",
            _ => "--web.listen-address",
        },
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env,
        reads,
    };
    let mysql = format!("root@(127.0.0.1:{})/", servers.get("MYSQL_PORT"));
    let postgres = format!("{}?sslmode=disable", servers.get("POSTGRES18_URL"));
    vec![
        exporter("prometheus-node-exporter", &[], None, "node_load1 "),
        exporter("prometheus-mysqld-exporter", &[], Some(("DATA_SOURCE_NAME", mysql)), "mysql_up 1"),
        exporter("prometheus-postgres-exporter", &[], Some(("DATA_SOURCE_NAME", postgres)), "pg_up 1"),
        exporter("prometheus-redis-exporter", &["--redis.addr", servers.get("REDIS_URL")], None, "redis_up 1"),
        exporter("prometheus-apache-exporter", &["--scrape_uri", servers.get("APACHE_STATUS_URL")], None, "apache_up 1"),
        exporter("prometheus-nginx-exporter", &["-nginx.scrape-uri", servers.get("NGINX_STATUS_URL")], None, "nginx_up 1"),
        exporter(
            "prometheus-memcached-exporter",
            &["--memcached.address", servers.get("MEMCACHED_ADDRESS")],
            None,
            "memcached_up 1",
        ),
    ]
}

/// One scrape; the page, or nothing where it did not come.
fn scrape(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

/// Every exporter that is installed, alone with its server, scraped at the tick.
pub fn exporters(servers: &Servers, tick: Duration, for_long: Duration) -> Vec<(&'static str, Cost)> {
    let mut costs = Vec::new();
    let mut running = Vec::new();
    for exporter in wanted(servers) {
        let Some(program) = program(exporter.program) else { continue };
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let mut command = Command::new(program);
        command.arg(format!("{}=127.0.0.1:{port}", exporter.listen)).args(&exporter.args).envs(exporter.env.clone());
        let watcher = Watcher::new(exporter.program, vec![quiet(&mut command)]);
        let began = Instant::now();
        let page = loop {
            match scrape(port) {
                Some(page) => break page,
                None if began.elapsed() > Duration::from_secs(10) => break String::new(),
                None => std::thread::sleep(Duration::from_millis(100)),
            }
        };
        if !page.contains(exporter.reads) {
            eprintln!("{} does not read its server: left out", exporter.program);
            continue;
        }
        running.push((exporter.program, port, watcher));
    }
    // All at once, each scraped by a thread of its own, as a Prometheus does it.
    let stop = Arc::new(AtomicBool::new(false));
    let scrapers: Vec<_> = running
        .iter()
        .map(|(_, port, _)| {
            let (stop, port) = (Arc::clone(&stop), *port);
            std::thread::spawn(move || {
                let mut next = Instant::now();
                // One that ends while it is measured is found there.
                while !stop.load(Ordering::Relaxed) && scrape(port).is_some() {
                    next = (next + tick).max(Instant::now());
                    std::thread::sleep(next - Instant::now().min(next));
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    let measuring: Vec<_> = running
        .into_iter()
        .map(|(name, _, watcher)| (name, std::thread::spawn(move || watcher.measure_now(tick, for_long))))
        .collect();
    for (name, measuring) in measuring {
        costs.push((name, measuring.join().expect("measured")));
    }
    stop.store(true, Ordering::Relaxed);
    for scraper in scrapers {
        scraper.join().expect("the scraper ends");
    }
    costs
}
