//! The HTTP client of all models: pooled connections, TLS, proxies, and bounds on time and size.

mod connect;
mod tls;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::error::Error;
use crate::remote::retry_after;
use connect::Dial;

/// Settings for connections to servers.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub proxy: ProxySettings,
    /// A PEM file with certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The timeout of connecting.
    pub connect_timeout: Duration,
    /// The most idle connections per server. It should not be below the largest `max_parallel_requests`.
    pub max_idle: usize,
    /// The size limit of a reply in bytes.
    pub max_reply_bytes: usize,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            proxy: ProxySettings::default(),
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            max_idle: 256,
            max_reply_bytes: 64 << 20,
        }
    }
}

/// Proxies, in the form of the environment variables of these names. `None` means none.
#[derive(Clone, Default)]
pub struct ProxySettings {
    /// `HTTP_PROXY`: for servers without TLS.
    pub http: Option<String>,
    /// `HTTPS_PROXY`: for servers with TLS.
    pub https: Option<String>,
    /// `NO_PROXY`: hosts, domains and address ranges that are reached directly, separated by commas.
    pub no: Option<String>,
}

/// Without the proxies' addresses, which may contain passwords.
impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxySettings")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("no", &self.no)
            .finish()
    }
}

impl ProxySettings {
    /// The settings that `lookup` finds under the usual names of environment variables, in capitals or not.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> ProxySettings {
        let find = |name: &str| {
            let found = lookup(name).or_else(|| lookup(&name.to_ascii_lowercase()));
            found.filter(|value| !value.trim().is_empty())
        };
        let all = find("ALL_PROXY");
        ProxySettings {
            http: find("HTTP_PROXY").or_else(|| all.clone()),
            https: find("HTTPS_PROXY").or(all),
            no: find("NO_PROXY"),
        }
    }

    fn matcher(&self) -> Matcher {
        let value = |setting: &Option<String>| setting.clone().unwrap_or_default();
        Matcher::builder().http(value(&self.http)).https(value(&self.https)).no(value(&self.no)).build()
    }
}

/// A pool of connections, shared by all models. Clones share it.
#[derive(Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
    /// The headers that every call of this handle has besides its own.
    headers: Arc<HeaderMap>,
}

struct Shared {
    client: Client<HttpsConnector<Dial>, Full<Bytes>>,
    /// The proxies that requests without TLS are sent to, which may want a password in each of them.
    forwarding: Option<Arc<Matcher>>,
    clock: Arc<dyn Clock>,
    max_reply_bytes: usize,
}

/// The longest timeout of a call that can be set, so that deadlines stay within the range of a clock.
const LONGEST_CALL: Duration = Duration::from_secs(7 * 24 * 3600);

/// The content type header of all calls.
pub(crate) const JSON: (HeaderName, HeaderValue) =
    (CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// One POST of a JSON text.
pub(crate) struct Call {
    pub(crate) endpoint: Arc<str>,
    pub(crate) uri: Uri,
    /// With [`JSON`].
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) timeout: Duration,
}

/// A server's response with any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The reply of [`HttpClient::post_json`], with any status.
#[derive(Clone, Debug)]
pub struct JsonReply {
    pub status: u16,
    /// The pause that the server requests.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

impl HttpClient {
    /// A client that reaches servers as `settings` say. Connections are made when they are needed.
    pub fn new(settings: &HttpSettings, clock: Arc<dyn Clock>) -> Result<HttpClient, Error> {
        let proxies = Arc::new(settings.proxy.matcher());
        let tls = tls::config(settings.ca_file.as_deref())?;
        let forwarding = settings.proxy.http.is_some().then(|| Arc::clone(&proxies));
        let dial = Dial::new(settings.connect_timeout, &tls, proxies);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(dial);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .pool_max_idle_per_host(settings.max_idle)
            .build(connector);
        let max_reply_bytes = settings.max_reply_bytes;
        let shared = Shared { client, forwarding, clock, max_reply_bytes };
        Ok(HttpClient { shared: Arc::new(shared), headers: Arc::default() })
    }

    /// A handle to the same connections whose calls also have these headers, such as those of a distributed trace.
    pub fn with_headers(&self, headers: &[(&'static str, &str)]) -> Result<HttpClient, Error> {
        let mut all = HeaderMap::clone(&self.headers);
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|_| {
                Error::Setup(format!("the value of header `{name}` is not text for a header"))
            })?;
            all.insert(HeaderName::from_static(name), value);
        }
        Ok(HttpClient { shared: Arc::clone(&self.shared), headers: Arc::new(all) })
    }

    /// Posts a JSON text to any server, and reads the whole reply.
    pub fn post_json(
        &self,
        url: &str,
        body: String,
        timeout: Duration,
    ) -> impl Future<Output = Result<JsonReply, Error>> + Send + 'static {
        let uri = url.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        let mut headers = HeaderMap::new();
        let (content_type, json) = JSON;
        headers.insert(content_type, json);
        let call = uri
            .map(|uri| Call {
                endpoint: uri.authority().map_or("", |authority| authority.host()).into(),
                uri,
                headers,
                body: body.into_bytes(),
                timeout,
            })
            .ok_or_else(|| Error::Setup(format!("`{url}` is not an http:// or https:// URL")));
        let client = self.clone();
        async move {
            let answer = client.send(call?).await?;
            let retry_after = retry_after(&answer.headers);
            Ok(JsonReply { status: answer.status, retry_after, body: answer.body.to_vec() })
        }
    }

    /// Posts a call and reads the whole answer, within the call's time.
    pub(crate) async fn send(&self, call: Call) -> Result<Answer, Error> {
        let Call { endpoint, uri, mut headers, body, timeout } = call;
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        let clock = &self.shared.clock;
        let timeout = timeout.min(LONGEST_CALL);
        let too_late = clock.sleep_until(clock.now() + timeout);
        let exchange = pin!(self.shared.exchange(&endpoint, uri, headers, body));
        match select(exchange, too_late).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(Error::Timeout { endpoint: Arc::clone(&endpoint), after: timeout }),
        }
    }
}

impl Shared {
    async fn exchange(
        &self,
        endpoint: &Arc<str>,
        uri: Uri,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, Error> {
        let no_connection = |cause: String| Error::Connection { endpoint: Arc::clone(endpoint), cause };
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = hyper::Method::POST;
        *request.headers_mut() = headers;
        if let Some(proxies) = &self.forwarding
            && uri.scheme_str() == Some("http")
            && let Some(auth) = proxies.intercept(&uri).and_then(|proxy| proxy.basic_auth().cloned())
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, auth);
        }
        *request.uri_mut() = uri;
        let response = self.client.request(request).await.map_err(|error| no_connection(chain(&error)))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, self.max_reply_bytes).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                let limit = anabranch_text::size::format(self.max_reply_bytes as u64);
                let found = format!("it is longer than {limit}");
                Error::Malformed { endpoint: Arc::clone(endpoint), found }
            } else {
                no_connection(format!("the reply broke off: {}", chain(&*error)))
            }
        })?;
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() })
    }
}

/// An error and its causes, at most eight, each said once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let mut text = String::new();
    for cause in causes.take(8) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    crate::error::shorten(&text)
}
