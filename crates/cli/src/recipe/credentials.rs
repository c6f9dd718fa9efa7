//! The token and the certificates for the server of `--server`.

use std::path::{Path, PathBuf};

use anabranch_content::Store;
use anabranch_server::{ClientError, Code, ServerAddress, Token};
use clap::Args;

use crate::failure::Failure;
use crate::local_token;

/// How to talk to a server.
#[derive(Args)]
pub(super) struct Credentials {
    /// The file of the token for --server. The default is the token in ANABRANCH_TOKEN, or, for a server that owns the
    /// store of --data, the token in that folder.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// A PEM file of the authorities to trust for https:// instead of the system's.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_CA_FILE", hide_env_values = true)]
    ca_file: Option<PathBuf>,
}

/// The environment variable with a token.
const TOKEN: &str = "ANABRANCH_TOKEN";

impl Credentials {
    /// The server at a URL, with the token for it if there is one.
    pub(super) fn address(&self, url: &str, data: &Path) -> Result<ServerAddress, Failure> {
        let of_file = |file: &Path| {
            Token::of_file(file).map_err(|error| Failure::of(format!("cannot read the token: {error}")))
        };
        let token = match (&self.token_file, std::env::var(TOKEN)) {
            (Some(file), _) => Some(of_file(file)?),
            (None, Ok(text)) => Some(Token::parse(text.trim()).ok_or_else(|| {
                Failure::Wrong(format!("{TOKEN} is not a token: printable ASCII without spaces"))
            })?),
            (None, Err(_)) => own_token_file(url, data)?.map(|file| of_file(&file)).transpose()?,
        };
        Ok(ServerAddress { url: url.to_owned(), token, authorities: self.ca_file.clone() })
    }
}

/// The token file of the folder if the process that owns the store serves at this URL. No other server gets this token.
fn own_token_file(url: &str, data: &Path) -> Result<Option<PathBuf>, Failure> {
    let url = url.trim_end_matches('/').replacen("://localhost:", "://127.0.0.1:", 1);
    if Store::announced(data).is_none_or(|announced| announced != url) {
        return Ok(None);
    }
    Ok(local_token::find(data)?.filter(|file| file.is_file()))
}

/// The server of a store whose owner has no socket.
pub(super) fn of_owner(listens_on: &str, data: &Path) -> ServerAddress {
    let token = local_token::find(data).ok().flatten().and_then(|file| Token::of_file(&file).ok());
    ServerAddress { url: listens_on.to_owned(), token, authorities: None }
}

/// A failure because of a missing token, with advice for commands.
pub(super) fn explained(failure: Failure) -> Failure {
    let Failure::Failed(error) = &failure else { return failure };
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Call { code: Code::Unauthenticated, message }) => Failure::of(format!(
            "{message}; this command takes a token from --token-file FILE or from the variable {TOKEN}"
        )),
        _ => failure,
    }
}
