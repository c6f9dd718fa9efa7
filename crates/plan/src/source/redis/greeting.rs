//! The first commands on a connection: protocol, login and database, in one write.

use super::config::RedisConfig;
use super::connection::Connection;
use super::encode::command;
use super::sink::Value;

/// Greets the server. One that does not know `HELLO` is spoken to in RESP2.
pub(super) async fn greet(connection: &mut Connection, config: &RedisConfig) -> Result<(), String> {
    let user = config.username.as_deref().unwrap_or("default");
    let mut hello = vec!["HELLO", "3"];
    if let Some(password) = &config.password {
        hello.extend(["AUTH", user, password]);
    }
    hello.extend(["SETNAME", "anabranch"]);
    let replies = ask(connection, &[hello], config).await?;
    match error_in(&replies) {
        None => return Ok(()),
        Some(message) if !is_unknown(message) => return Err(explained(message, config)),
        Some(_) => {}
    }
    let login = match (&config.username, &config.password) {
        (Some(user), Some(password)) => Some(vec!["AUTH", user, password]),
        (None, Some(password)) => Some(vec!["AUTH", password]),
        (_, None) => None,
    };
    let replies = ask(connection, &Vec::from_iter(login), config).await?;
    match error_in(&replies) {
        None => Ok(()),
        Some(message) => Err(explained(message, config)),
    }
}

/// Sends these commands and chooses the database.
async fn ask(
    connection: &mut Connection,
    commands: &[Vec<&str>],
    config: &RedisConfig,
) -> Result<Vec<Value>, String> {
    let mut bytes = Vec::new();
    commands.iter().for_each(|words| command(&mut bytes, words));
    let database = config.database.to_string();
    if config.database != 0 {
        command(&mut bytes, &["SELECT", &database]);
    }
    let count = commands.len() + usize::from(config.database != 0);
    if count == 0 {
        return Ok(Vec::new());
    }
    let sink = connection.ask(bytes, count as u32).await.map_err(|end| end.cause)?;
    Ok(sink.into_values())
}

fn error_in(replies: &[Value]) -> Option<&str> {
    replies.iter().find_map(|reply| match reply {
        Value::Error(message) => Some(message.as_str()),
        _ => None,
    })
}

/// True if a server is too old for `HELLO`, or for the version that it names.
fn is_unknown(message: &str) -> bool {
    message.starts_with("NOPROTO") || message.to_ascii_lowercase().contains("unknown command")
}

/// An error with advice. Some servers and proxies repeat the arguments of a command that they refuse.
fn explained(message: &str, config: &RedisConfig) -> String {
    let password = config.password.as_deref().filter(|password| !password.is_empty());
    let message = &password.map_or_else(|| message.to_owned(), |password| message.replace(password, "***"));
    if message.starts_with("NOAUTH") {
        return format!("{message} (write user and password in the URL: redis://user:password@host)");
    }
    if message.starts_with("WRONGPASS") || message.contains("invalid password") {
        return format!("the server refused the login: {message}");
    }
    message.clone()
}
