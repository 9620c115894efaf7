//! The shop's cache: Redis or memcached.

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, AsyncConnectionConfig, SetExpiry, SetOptions};
use std::time::{SystemTime, UNIX_EPOCH};

pub enum Cache {
    Redis(MultiplexedConnection),
    Memcached(memcache::Client),
}

impl Cache {
    /// The one of the two that is given.
    pub async fn open(redis: Option<&str>, memcached: Option<&str>) -> anyhow::Result<Option<Self>> {
        if let Some(url) = redis {
            return Ok(Some(Self::Redis(patient(url).await?)));
        }
        let Some(address) = memcached else { return Ok(None) };
        let url = format!("memcache://{address}?protocol=ascii");
        let opened = tokio::task::spawn_blocking(move || memcache::Client::with_pool_size(url, 8)).await??;
        Ok(Some(Self::Memcached(opened)))
    }

    pub async fn get(&self, key: &str) -> anyhow::Result<Option<String>> {
        match self {
            Self::Redis(connection) => Ok(connection.clone().get(key).await?),
            Self::Memcached(client) => {
                let (client, key) = (client.clone(), key.to_owned());
                Ok(tokio::task::spawn_blocking(move || client.get(&key)).await??)
            }
        }
    }

    /// Keeps it; 0 seconds are for ever.
    pub async fn set(&self, key: &str, value: String, seconds: u32) -> anyhow::Result<()> {
        match self {
            Self::Redis(connection) if seconds == 0 => Ok(connection.clone().set(key, value).await?),
            Self::Redis(connection) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
                let next = (now + 1).next_multiple_of(u64::from(seconds));
                let until = SetOptions::default().with_expiration(SetExpiry::EXAT(next));
                Ok(connection.clone().set_options(key, value, until).await?)
            }
            Self::Memcached(client) => {
                let (client, key) = (client.clone(), key.to_owned());
                Ok(tokio::task::spawn_blocking(move || client.set(&key, value, seconds)).await??)
            }
        }
    }
}

/// A connection to Redis that waits for every answer, so that its wait is seen and not cut off.
pub async fn patient(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}
