//! The plans that read from Redis as a good engineer would write them by hand for just this purpose: tokio, the same
//! client crate, plain vectors, one pipelined trip for each level of reads.
//!
//! Twice: by the letter of the plan, which reads the viewer and every user's country, needed or not; and the leanest
//! program with the same answer. And once as it is often done: a command at a time, whole hashes, each awaited.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncCommands, AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};
use redis::{RedisResult, pipe};

use super::data::VIEWER;
use super::plans::{KEPT, WEIGHT};

/// A row of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) score: Option<f64>,
    pub(super) country: Option<String>,
}

/// Connections that all requests share, each taken in turn.
#[derive(Clone)]
pub(super) struct Connections {
    all: Arc<[MultiplexedConnection]>,
    next: Arc<AtomicUsize>,
}

impl Connections {
    pub(super) async fn open(port: u16, count: usize) -> RedisResult<Connections> {
        let login =
            RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        let address = redis::ConnectionAddr::Tcp("127.0.0.1".to_owned(), port);
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info = address.into_connection_info()?.set_redis_settings(login).set_tcp_settings(tcp);
        let client = Client::open(info)?;
        let timeouts = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            all.push(client.get_multiplexed_async_connection_with_config(&timeouts).await?);
        }
        Ok(Connections { all: all.into(), next: Arc::default() })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn next(&self) -> MultiplexedConnection {
        self.all[self.next.fetch_add(1, Relaxed) % self.all.len()].clone()
    }
}

/// How faithful to the words of a plan a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// What the answer needs.
    Lean,
    /// All that the plan names.
    Letter,
    /// All that the plan names, a command at a time.
    Naive,
}

/// `feed_N`.
pub(super) async fn feed(connections: &Connections, fanout: usize, style: Style) -> RedisResult<Vec<Row>> {
    let mut connection = connections.next();
    let ids = match style {
        Style::Lean => feed_lean(&mut connection, fanout).await?,
        Style::Letter => feed_by_the_letter(&mut connection, fanout).await?,
        Style::Naive => feed_naive(&connection, fanout).await?,
    };
    Ok(best(ids))
}

async fn feed_lean(connection: &mut MultiplexedConnection, fanout: usize) -> RedisResult<Vec<i64>> {
    let users = fan_out(connection, fanout).await?;
    media_of(connection, &users).await
}

async fn feed_by_the_letter(connection: &mut MultiplexedConnection, fanout: usize) -> RedisResult<Vec<i64>> {
    let _viewer: Option<String> = connection.hget(format!("user:{VIEWER}"), "country").await?;
    let users = fan_out(connection, fanout).await?;
    let _countries = countries_of(connection, &users).await?;
    media_of(connection, &users).await
}

/// Whom the viewer follows, and who is recommended to them.
async fn fan_out(connection: &mut MultiplexedConnection, fanout: usize) -> RedisResult<Vec<i64>> {
    let last = fanout as isize - 1;
    let mut lists = pipe();
    lists.lrange(format!("follow:{VIEWER}"), 0, last).lrange(format!("recommendation:{VIEWER}"), 0, last);
    let (mut users, recommended): (Vec<i64>, Vec<i64>) = lists.query_async(connection).await?;
    users.extend(recommended);
    Ok(users)
}

async fn media_of(connection: &mut MultiplexedConnection, users: &[i64]) -> RedisResult<Vec<i64>> {
    let mut lists = redis::Pipeline::with_capacity(users.len());
    for user in users {
        lists.lrange(format!("media:{user}"), 0, 9);
    }
    let media: Vec<Vec<i64>> = lists.query_async(connection).await?;
    Ok(media.into_iter().flatten().collect())
}

async fn countries_of(
    connection: &mut MultiplexedConnection,
    users: &[i64],
) -> RedisResult<Vec<Option<String>>> {
    let mut hashes = redis::Pipeline::with_capacity(users.len());
    for user in users {
        hashes.hget(format!("user:{user}"), "country");
    }
    hashes.query_async(connection).await
}

/// The best [`KEPT`] by falling score, the earlier first where scores are equal.
fn best(ids: Vec<i64>) -> Vec<Row> {
    let mut scored: Vec<(f64, u32, i64)> =
        ids.into_iter().zip(0..).map(|(id, place)| (id as f64 * WEIGHT, place, id)).collect();
    let falling = |a: &(f64, u32, i64), b: &(f64, u32, i64)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if scored.len() > KEPT {
        scored.select_nth_unstable_by(KEPT, falling);
        scored.truncate(KEPT);
    }
    scored.sort_unstable_by(falling);
    scored.into_iter().map(|(score, _, id)| Row { id, score: Some(score), country: None }).collect()
}

async fn feed_naive(connection: &MultiplexedConnection, fanout: usize) -> RedisResult<Vec<i64>> {
    let _viewer = hash_of(&mut connection.clone(), VIEWER).await?;
    let branch = async |list: &str| {
        let mut connection = connection.clone();
        let users: Vec<i64> = connection.lrange(format!("{list}:{VIEWER}"), 0, fanout as isize - 1).await?;
        for user in &users {
            hash_of(&mut connection, *user).await?;
        }
        let mut media = Vec::new();
        for user in &users {
            let more: Vec<i64> = connection.lrange(format!("media:{user}"), 0, 9).await?;
            media.extend(more);
        }
        RedisResult::Ok(media)
    };
    let (mut media, recommended) =
        futures_util::future::try_join(branch("follow"), branch("recommendation")).await?;
    media.extend(recommended);
    Ok(media)
}

async fn hash_of(connection: &mut MultiplexedConnection, user: i64) -> RedisResult<HashMap<String, String>> {
    connection.hgetall(format!("user:{user}")).await
}

/// `follow_N`.
pub(super) async fn follow(connections: &Connections, fanout: usize, style: Style) -> RedisResult<Vec<Row>> {
    let mut connection = connections.next();
    let list = format!("follow:{VIEWER}");
    let (mut users, mut countries): (Vec<i64>, _);
    match style {
        Style::Lean => {
            users = connection.lrange(list, 0, fanout.min(KEPT) as isize - 1).await?;
            countries = countries_of(&mut connection, &users).await?;
        }
        Style::Letter => {
            let _viewer: Option<String> = connection.hget(format!("user:{VIEWER}"), "country").await?;
            users = connection.lrange(list, 0, fanout as isize - 1).await?;
            countries = countries_of(&mut connection, &users).await?;
        }
        Style::Naive => {
            let _viewer = hash_of(&mut connection, VIEWER).await?;
            users = connection.lrange(list, 0, fanout as isize - 1).await?;
            countries = Vec::with_capacity(users.len());
            for user in &users {
                countries.push(hash_of(&mut connection, *user).await?.remove("country"));
            }
        }
    }
    users.truncate(KEPT);
    countries.truncate(KEPT);
    let rows = users.into_iter().zip(countries).map(|(id, country)| Row { id, score: None, country });
    Ok(rows.collect())
}

/// The trips of a request, those that wait for one another, and its commands.
pub(super) struct Reads {
    pub(super) trips: usize,
    pub(super) in_a_row: usize,
    pub(super) commands: usize,
}

impl Style {
    pub(super) fn reads_of_feed(self, fanout: usize) -> Reads {
        let (trips, in_a_row, commands) = match self {
            Style::Lean => (2, 2, 2 + 2 * fanout),
            Style::Letter => (4, 4, 3 + 4 * fanout),
            Style::Naive => (3 + 4 * fanout, 2 + 2 * fanout, 3 + 4 * fanout),
        };
        Reads { trips, in_a_row, commands }
    }

    pub(super) fn reads_of_follow(self, fanout: usize) -> Reads {
        let (trips, in_a_row, commands) = match self {
            Style::Lean => (2, 2, 1 + fanout.min(KEPT)),
            Style::Letter => (3, 3, 2 + fanout),
            Style::Naive => (2 + fanout, 2 + fanout, 2 + fanout),
        };
        Reads { trips, in_a_row, commands }
    }
}
