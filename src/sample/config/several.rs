//! One name that stands for several machines: a file or a list of endpoints, or a host name with several addresses. Each
//! becomes an instance of its own, settled before the first row: `app_1`, `app_2`, … or as the file names them.

use super::super::cli::{is_name, split_name};
use super::super::role::host_of;
use super::{Asked, Config, TargetConfig, Wrong};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// The setting by which an HTTP target is told which of a name's addresses it is to ask.
const ADDRESS: &str = "connect_to";

/// So many machines of one name at most: each costs its columns in every row.
const MOST: usize = 64;

/// How long a name may take to be resolved: as long as that the run's begin waits.
const RESOLVE: Duration = Duration::from_secs(3);

/// Every target of a file or a list as a target of its own.
pub(super) fn listed(asked: Vec<Asked>) -> Result<Vec<Asked>, Wrong> {
    let mut all = Vec::with_capacity(asked.len());
    for mut target in asked {
        let further = std::mem::take(&mut target.further);
        let endpoints = match file_of(&target.endpoint) {
            Some((path, rest)) => from_file(Path::new(path), rest)?,
            None if further.is_empty() => {
                all.push(target);
                continue;
            }
            None => std::iter::once(target.endpoint.clone()).chain(further).map(|endpoint| (None, endpoint)).collect(),
        };
        let name = target.name.clone().unwrap_or_else(|| target.spec.name.to_owned());
        if endpoints.len() > MOST {
            return Err(Wrong::new(format!("{name}: {} endpoints", endpoints.len())).hint(format!("at most {MOST} of one name")));
        }
        for (n, (own, endpoint)) in endpoints.into_iter().enumerate() {
            let own = own.unwrap_or_else(|| format!("{name}_{}", n + 1));
            all.push(Asked { name: Some(own), endpoint, one_of: Some(name.clone()), ..target.clone() });
        }
    }
    Ok(all)
}

/// `@FILE`, or `@FILE::REST` where the endpoint goes on. `@name` alone may be an abstract Unix socket.
fn file_of(endpoint: &str) -> Option<(&str, Option<&str>)> {
    let (path, rest) = match endpoint.strip_prefix('@')?.split_once("::") {
        Some((path, rest)) => (path, Some(rest)),
        None => (&endpoint[1..], None),
    };
    (path.contains(['.', '/']) || Path::new(path).is_file()).then_some((path, rest))
}

/// The endpoints of a file, one a line, each perhaps with a name of its own.
fn from_file(path: &Path, rest: Option<&str>) -> Result<Vec<(Option<String>, String)>, Wrong> {
    let text = std::fs::read_to_string(path).map_err(|why| {
        Wrong::new(format!("the endpoints of {}: cannot be read: {why}", path.display()))
            .hint("one endpoint a line, or NAME=ENDPOINT; # begins a comment")
    })?;
    let lines = text.lines().map(|line| line.split_once(" #").map_or(line, |(line, _)| line).trim());
    let endpoints: Vec<_> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, endpoint) = split_name(line);
            let rest = rest.map(|rest| format!("::{rest}")).unwrap_or_default();
            (name.filter(|name| is_name(name)).map(str::to_owned), format!("{endpoint}{rest}"))
        })
        .collect();
    if endpoints.is_empty() {
        return Err(Wrong::new(format!("the endpoints of {}: there is none", path.display())).hint("one endpoint a line"));
    }
    Ok(endpoints)
}

/// Gives a name's addresses.
pub type Resolver = fn(&str) -> Vec<IpAddr>;

/// The system's resolver, waited for a little: one that hangs is left to itself.
pub fn resolve(host: &str) -> Vec<IpAddr> {
    let (send, receive) = std::sync::mpsc::channel();
    let name = host.to_owned();
    std::thread::spawn(move || {
        let found = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0));
        let _ = send.send(found.map(|found| found.map(|found| found.ip()).collect()).unwrap_or_default());
    });
    receive.recv_timeout(RESOLVE).unwrap_or_default()
}

/// The machines behind a name. One machine has an address of each family often, so that only those of one family are told
/// apart: of the family that has more of them.
fn machines(mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.sort();
    addresses.dedup();
    let (old, new): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv4);
    if new.len() > old.len() { new } else { old }
}

/// The host name of a target that is asked over HTTP, where it has one and no address was chosen for it.
fn name_to_resolve(target: &TargetConfig) -> Option<String> {
    let endpoint = &target.section.endpoint;
    let over_http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
    let means_http = !endpoint.contains("://") && target.spec.sample_config.contains("\"http://");
    let host = (over_http || means_http).then(|| host_of(endpoint)).flatten()?;
    (host.parse::<IpAddr>().is_err() && !target.section.settings.contains_key(ADDRESS)).then_some(host)
}

impl TargetConfig {
    /// Which of its name's addresses it is asked at, where that was chosen.
    pub fn address(&self) -> Option<&str> {
        self.section.settings.get(ADDRESS).and_then(toml::Value::as_str)
    }
}

impl Config {
    /// Every target whose host name has several addresses as one target an address.
    pub fn each_address(&mut self, resolve: Resolver) -> Result<(), Wrong> {
        let mut all = Vec::with_capacity(self.targets.len());
        for target in std::mem::take(&mut self.targets) {
            let host = name_to_resolve(&target);
            let addresses = host.as_deref().map(|host| machines(resolve(host))).unwrap_or_default();
            if addresses.len() < 2 {
                all.push(target);
                continue;
            }
            let (name, host) = (&target.section.instance, host.unwrap_or_default());
            if addresses.len() > MOST {
                return Err(Wrong::new(format!("{name}: {host} has {} addresses", addresses.len()))
                    .hint(format!("at most {MOST}; name those that matter in a file: {name}=@FILE")));
            }
            let mut told = Vec::new();
            for (n, address) in addresses.iter().enumerate() {
                let mut one = target.clone();
                one.section.instance = format!("{name}_{}", n + 1);
                one.section.settings.insert(ADDRESS.to_owned(), toml::Value::String(address.to_string()));
                (one.one_of, one.named) = (Some(name.clone()), true);
                told.push(format!("{} at {address}", one.section.instance));
                all.push(one);
            }
            self.notes.push(format!(
                "note: {host} has {} addresses, each is read as a machine of its own: {}",
                told.len(),
                told.join(", ")
            ));
        }
        for (n, target) in all.iter().enumerate() {
            let name = &target.section.instance;
            if all[..n].iter().any(|other| other.section.instance == *name) {
                return Err(Wrong::new(format!("two targets are called {name}")).hint("give each instance a name of its own"));
            }
        }
        self.targets = all;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cli;
    use super::super::effective;
    use super::*;
    use std::ffi::OsString;

    fn config(args: &[&str]) -> Result<Config, Wrong> {
        let args: Vec<OsString> = ["sampler", "--no-host"].iter().chain(args).map(OsString::from).collect();
        effective(collectors::REGISTRY, &cli::parse(collectors::REGISTRY, args.into_iter()).map_err(|(text, _)| Wrong::new(text))?)
    }

    fn told(config: &Config) -> Vec<(&str, &str)> {
        config.targets.iter().map(|target| (target.section.instance.as_str(), target.section.endpoint.as_str())).collect()
    }

    fn addresses(host: &str) -> Vec<IpAddr> {
        let all: &[&str] = match host {
            "app" => &["10.0.0.9", "10.0.0.2", "fd00::1", "10.0.0.2"],
            "localhost" => &["127.0.0.1", "::1"],
            "six" => &["fd00::2", "fd00::1"],
            _ => &[],
        };
        all.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn a_file_of_endpoints_gives_an_instance_each_with_its_own_name_or_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("apps.txt");
        std::fs::write(&file, "# the shop\nhttp://a:8080/metrics   # the first\n\nspare=http://b:8080/metrics\nc:8080\n").unwrap();
        let found = config(&[&format!("--metrics=app=@{}", file.display())]).unwrap();
        assert_eq!(told(&found), [("app_1", "http://a:8080/metrics"), ("spare", "http://b:8080/metrics"), ("app_3", "c:8080")]);
        assert!(found.targets.iter().all(|target| target.one_of.as_deref() == Some("app")));
        let found = config(&[&format!("--query=@{}::SELECT 1 AS x", file.display())]).unwrap();
        assert_eq!(told(&found)[2], ("query_3", "c:8080::SELECT 1 AS x"));
        std::fs::write(&file, "# none\n").unwrap();
        assert!(config(&[&format!("--metrics=@{}", file.display())]).err().unwrap().message.contains("there is none"));
        let missing = config(&["--metrics=app=@nowhere.txt"]).err().unwrap();
        assert!(missing.message.contains("nowhere.txt: cannot be read") && missing.hint.is_some(), "{missing}");
        assert_eq!(told(&config(&["--memcached=cache=@abstract"]).unwrap()), [("cache", "@abstract")]);
    }

    #[test]
    fn a_list_in_the_configuration_gives_an_instance_each_with_the_same_settings() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(
            &file,
            "[[metrics]]\nname = \"app\"\nurl = [\"http://a:1\", \"http://b:1\"]\nuser = \"u\"\nevery = \"5s\"\n",
        )
        .unwrap();
        let found = config(&["--config", file.to_str().unwrap()]).unwrap();
        assert_eq!(told(&found), [("app_1", "http://a:1"), ("app_2", "http://b:1")]);
        assert!(found.targets.iter().all(|target| target.section.settings.contains_key("user") && target.every.is_some()));
        std::fs::write(&file, "[[metrics]]\nurl = [\"http://a:1\", 7]\n").unwrap();
        assert!(
            config(&["--config", file.to_str().unwrap()])
                .err()
                .unwrap()
                .message
                .contains("url: expected a text or a list of texts")
        );
        std::fs::write(&file, "[[metrics]]\nurl = []\n").unwrap();
        assert!(config(&["--config", file.to_str().unwrap()]).is_err());
    }

    #[test]
    fn a_host_name_with_several_addresses_of_one_family_is_several_machines() {
        let mut found = config(&[
            "--metrics=shop=http://app:8080/metrics",
            "--status=local=http://localhost/server-status",
            "--metrics=six=six:8080",
            "--json=number=http://10.0.0.7/x",
            "--mysql=db=mysql://app/",
        ])
        .unwrap();
        found.each_address(addresses).unwrap();
        let names: Vec<_> = told(&found).iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut expected = ["db", "local", "shop_1", "shop_2", "six_1", "six_2", "number"];
        expected.sort_unstable();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        let chosen: Vec<_> = found
            .targets
            .iter()
            .filter(|target| target.one_of.as_deref() == Some("shop"))
            .map(|target| target.address().unwrap())
            .collect();
        assert_eq!(chosen, ["10.0.0.2", "10.0.0.9"], "in an order of their own, whatever the name server's");
        assert!(found.notes.iter().any(|note| note.contains("app has 2 addresses") && note.contains("shop_2 at 10.0.0.9")));
    }

    #[test]
    fn a_name_that_is_taken_by_a_number_is_refused() {
        let mut found = config(&["--metrics=app=http://app:1/metrics", "--metrics=app_1=http://b:1/metrics"]).unwrap();
        assert!(found.each_address(addresses).err().unwrap().message.contains("two targets are called app_1"));
    }

    #[test]
    fn the_systems_resolver_knows_this_machine_and_no_name_that_is_none() {
        assert!(resolve("localhost").iter().any(IpAddr::is_loopback));
        assert_eq!(resolve("no name at all"), Vec::<IpAddr>::new());
    }
}
