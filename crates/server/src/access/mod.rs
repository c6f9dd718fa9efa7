//! Access control: tokens with scopes.
//!
//! A request sends its token in `Authorization: Bearer TOKEN`. The scope of the token must include the scope of the
//! route, which is in the table of [`api`](crate::api). Requests over the Unix socket need no token: a process that may
//! open the socket may do everything.

mod files;
mod token;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

pub use files::{Error, TokenFiles, TokenRecord};
pub use token::{NotAScope, Scope, Token};

/// The rules of access to a service.
#[derive(Clone, Debug, Default)]
pub struct Access {
    rules: Rules,
}

#[derive(Clone, Debug, Default)]
enum Rules {
    /// Every caller may do everything.
    #[default]
    Open,
    Tokens {
        files: Arc<TokenFiles>,
        /// The scope of requests without a token.
        anonymous: Option<Scope>,
    },
}

impl Access {
    /// Every caller may do everything. For programs that embed the service behind their own access control.
    pub fn open() -> Access {
        Access::default()
    }

    /// Requests need one of these tokens. Those without a token have the scope `anonymous`, if any.
    pub fn with_tokens(files: TokenFiles, anonymous: Option<Scope>) -> Access {
        Access { rules: Rules::Tokens { files: Arc::new(files), anonymous } }
    }

    /// Whether responses depend on the caller, so that caches must not keep them.
    pub(crate) fn is_restricted(&self) -> bool {
        matches!(self.rules, Rules::Tokens { .. })
    }

    /// The caller of a request, with its scope.
    pub(crate) fn caller(&self, headers: &HeaderMap, peer: Peer) -> Result<Caller, Denial> {
        let nameless = |scope| Caller { name: peer.name(), scope };
        let Rules::Tokens { files, anonymous } = &self.rules else {
            return Ok(nameless(Scope::Admin));
        };
        if peer == Peer::Socket {
            return Ok(nameless(Scope::Admin));
        }
        match bearer(headers)? {
            None => anonymous.map(nameless).ok_or(Denial::Missing),
            Some(token) => {
                let found = files.find(&token)?;
                match found.expires {
                    Some(expires) if expires <= wall_clock() => Err(Denial::Expired { name: found.name }),
                    _ => Ok(Caller { name: found.name, scope: found.scope }),
                }
            }
        }
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The Unix socket in the folder of the store.
    Socket,
    /// Another program, by its address.
    Network(IpAddr),
    /// Not known, because a program calls the router itself.
    Unknown,
}

impl Peer {
    /// The name of a caller without a token. A client of IPv6 usually has all addresses of a network of 64 bits, so they
    /// have one name.
    pub(crate) fn name(self) -> Arc<str> {
        match self.site() {
            Peer::Socket => "socket".into(),
            Peer::Network(IpAddr::V6(network)) if !network.is_loopback() => format!("{network}/64").into(),
            Peer::Network(ip) => ip.to_string().into(),
            Peer::Unknown => "unknown".into(),
        }
    }

    /// The client that an address belongs to: for IPv6, its network of 64 bits.
    pub(crate) fn site(self) -> Peer {
        let Peer::Network(ip) = self else { return self };
        Peer::Network(match ip.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            other => other,
        })
    }
}

/// The caller of a request that passed the access check. Its handler has it in `CallInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The name of the token, or the address that the request comes from.
    pub(crate) name: Arc<str>,
    /// The scope of the caller.
    pub(crate) scope: Scope,
}

impl Caller {
    /// The caller of a route that needs no token.
    pub(crate) fn nobody(peer: Peer) -> Caller {
        Caller { name: peer.name(), scope: Scope::Read }
    }

    /// Whether the caller may use a route of this scope.
    pub(crate) fn check(&self, needed: Scope) -> Result<(), Denial> {
        match self.scope >= needed {
            true => Ok(()),
            false => Err(Denial::TooLittle { caller: self.clone(), needed }),
        }
    }
}

/// The reason why a request is not allowed.
#[derive(Debug)]
pub(crate) enum Denial {
    /// The request has no token.
    Missing,
    /// The header is not exactly one bearer token.
    Malformed,
    /// The server does not know the token.
    Unknown,
    /// The token has expired.
    Expired { name: Arc<str> },
    /// The token's scope does not include the needed one.
    TooLittle { caller: Caller, needed: Scope },
    /// The token file cannot be read.
    Unreadable,
}

impl Denial {
    /// The message for the caller, with advice.
    pub(crate) fn message(&self) -> String {
        const HINT: &str = "send `Authorization: Bearer TOKEN`; the server's token file has a token, and `anabranch \
                            token add NAME` makes others";
        match self {
            Denial::Missing => format!("this server needs a token: {HINT}"),
            Denial::Malformed => format!("the Authorization header is not one bearer token: {HINT}"),
            Denial::Unknown => format!("the token is not one of this server's: {HINT}"),
            Denial::Expired { name } => {
                format!("the token {} has expired: {HINT}", anabranch_text::quote(name))
            }
            Denial::TooLittle { caller, needed } => format!(
                "{} has the scope `{}`, and this call needs `{needed}`; `anabranch token add NAME --scope {needed}` \
                 makes a token that has it",
                anabranch_text::quote(&caller.name),
                caller.scope
            ),
            Denial::Unreadable => "the tokens of this server cannot be read; its log says why".to_owned(),
        }
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Result<Option<Token>, Denial> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = shown.next() else { return Ok(None) };
    let text = value.to_str().map_err(|_| Denial::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(Denial::Malformed)?;
    match scheme.eq_ignore_ascii_case("bearer") && shown.next().is_none() {
        true => Ok(Some(Token::parse(token.trim()).ok_or(Denial::Unknown)?)),
        false => Err(Denial::Malformed),
    }
}

/// The current date. An expiry is a date, so it is compared with the wall clock.
#[allow(
    clippy::disallowed_methods,
    reason = "dates of expiry outlive the process; the engine's clock does not"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with a network of addresses has one share of everything.
    #[test]
    fn clients_of_ipv6_are_named_by_their_network() {
        let name = |ip: &str| Peer::Network(ip.parse().unwrap()).name().to_string();
        assert_eq!(name("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(name("2001:db8:1:2:ffff::1"), name("2001:db8:1:2::7"));
        assert_ne!(name("2001:db8:1:3::1"), name("2001:db8:1:2::1"));
        assert_eq!((&*name("::1"), &*name("127.0.0.1")), ("::1", "127.0.0.1"));
        assert_eq!(name("::ffff:192.0.2.7"), "192.0.2.7", "an address of IPv4");
    }
}
