//! The console: the page and the files of `web/`, embedded into the binary.
//!
//! Plain files without a build step. The page loads nothing from other origins, and its content security policy forbids
//! it. Everybody may read these files. The page reads its data from the API with the user's token.

use std::borrow::Cow;
use std::sync::Arc;

use anabranch_content::Address;
use anabranch_text::palette;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tonic::Code;

use crate::failure::Failure;

/// Forbids scripts, styles, fonts, images and requests of other origins, inline scripts and styles, and framing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The policy of the frame for timelines and reports, which contain inline styles and scripts. The frame has no origin,
/// so it reaches neither the token nor the server. It makes no requests. Only the console may embed it.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
                            style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                            frame-ancestors 'self'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! file {
    ($path:literal, $kind:expr) => {
        ($path, $kind, include_str!(concat!("../../../../web/", $path)))
    };
}

const PAGE: &str = "index.html";
const FRAME: &str = "frame.html";

/// The files, with their types.
const FILES: [(&str, &str, &str); 26] = [
    file!("index.html", HTML),
    file!("frame.html", HTML),
    file!("icon.svg", SVG),
    file!("style.css", CSS),
    file!("views.css", CSS),
    file!("theme.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("buttons.js", SCRIPT),
    file!("cells.js", SCRIPT),
    file!("chart.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("graph.js", SCRIPT),
    file!("grid.js", SCRIPT),
    file!("list.js", SCRIPT),
    file!("timeline.js", SCRIPT),
    file!("pages/dataset.js", SCRIPT),
    file!("pages/datasets.js", SCRIPT),
    file!("pages/file.js", SCRIPT),
    file!("pages/overview.js", SCRIPT),
    file!("pages/plan.js", SCRIPT),
    file!("pages/plans.js", SCRIPT),
    file!("pages/recipes.js", SCRIPT),
    file!("pages/run.js", SCRIPT),
    file!("pages/runs.js", SCRIPT),
    file!("pages/sign-in.js", SCRIPT),
];

struct Asset {
    path: &'static str,
    kind: &'static str,
    body: Cow<'static, str>,
    /// The hash of the body, in quotes.
    tag: String,
}

impl Asset {
    fn new(path: &'static str, kind: &'static str, body: Cow<'static, str>) -> Asset {
        let tag = format!("\"{}\"", Address::of(body.as_bytes()));
        Asset { path, kind, body, tag }
    }
}

/// The page at `/` and its files under `/console/`, for the service and for programs with their own API.
pub fn routes() -> Router {
    let files = FILES.into_iter().map(|(path, kind, body)| Asset::new(path, kind, body.into()));
    let palette = Asset::new("palette.css", CSS, palette::css().into());
    let assets: Arc<[Asset]> = files.chain([palette]).collect();
    Router::new().route("/", get(page)).route("/console/{*path}", get(file)).with_state(assets)
}

async fn page(State(assets): State<Arc<[Asset]>>, headers: HeaderMap) -> Response {
    find(&assets, PAGE, &headers).expect("the page is one of the files")
}

async fn file(
    State(assets): State<Arc<[Asset]>>,
    path: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    // A path that is not UTF-8 is not the path of a file.
    let path = path.map(|Path(path)| path).unwrap_or_default();
    find(&assets, &path, &headers).unwrap_or_else(|| {
        Failure::new(Code::NotFound, format!("there is nothing at {}", uri.path())).into_response()
    })
}

/// A file, or "not modified" if the client has it. Browsers revalidate each time, so a page and its scripts have one
/// version.
fn find(assets: &[Asset], path: &str, headers: &HeaderMap) -> Option<Response> {
    const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
    const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    let asset = assets.iter().find(|asset| asset.path == path)?;
    let (policy, framing) = if path == FRAME { (FRAME_POLICY, "SAMEORIGIN") } else { (POLICY, "DENY") };
    let described = [
        (CONTENT_TYPE, asset.kind),
        (ETAG, &asset.tag),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, framing),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER, "same-origin"),
        (RESOURCE, "same-origin"),
    ];
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let is_known =
        tags.flat_map(|tags| tags.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == asset.tag);
    Some(match is_known {
        true => (StatusCode::NOT_MODIFIED, described).into_response(),
        false => (described, asset.body.clone().into_owned()).into_response(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
    }

    fn files_in(folder: &std::path::Path, before: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{before}{}", entry.file_name().into_string().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => files_in(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let mut found = Vec::new();
        files_in(&folder(), "", &mut found);
        found.sort_unstable();
        let mut served: Vec<&str> = FILES.iter().map(|(path, ..)| *path).collect();
        served.sort_unstable();
        assert_eq!(found, served);
    }

    #[test]
    fn a_file_is_sent_once() {
        let assets = [Asset::new("a.js", SCRIPT, "let a;".into())];
        let mut headers = HeaderMap::new();
        let first = find(&assets, "a.js", &headers).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[CONTENT_SECURITY_POLICY], POLICY);
        headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(find(&assets, "a.js", &headers).unwrap().status(), StatusCode::NOT_MODIFIED);
        headers.insert(IF_NONE_MATCH, "\"other\"".parse().unwrap());
        assert_eq!(find(&assets, "a.js", &headers).unwrap().status(), StatusCode::OK);
        assert!(find(&assets, "../a.js", &headers).is_none());
    }

    #[test]
    fn no_file_names_another_origin() {
        for (path, _, body) in FILES {
            let namespace = "http://www.w3.org/2000/svg";
            let rest = body.replace(namespace, "");
            for scheme in ["http://", "https://", "ws://", "wss://"] {
                assert!(!rest.contains(scheme), "{path}: {scheme}");
            }
            // The frame shows pages. Its policy removes their origin.
            for inline in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                if path == FRAME {
                    continue;
                }
                assert!(!body.contains(inline), "{path}: {inline} makes markup of text");
            }
        }
    }
}
