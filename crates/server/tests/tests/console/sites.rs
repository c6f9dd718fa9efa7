//! A page of another site, in a real browser, against the real server.

use anabranch_testkit::FOREIGN_HOST;
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::{WIDE, shows, with_browser};
use crate::guard::send;
use crate::support::{Server, soon};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// What a page of another site gets when it tries: `refused`, or what it could read.
fn tries(server: &str) -> String {
    format!(
        "(async () => {{ const tried = async (path, options) => {{ try {{ const answer = await fetch('{server}' + path, options); \
         return answer.type === 'opaque' ? 'refused' : answer.status + ' ' + await answer.text(); }} catch {{ return 'refused'; }} }}; \
         const json = {{ 'Content-Type': 'application/json' }}; \
         return JSON.stringify([await tried('/'), await tried('/v1/status'), await tried('/console/main.js'), \
         await tried('/v1/refs/stolen', {{ method: 'PUT', headers: json, body: '{{\"target\":\"precious\"}}' }}), \
         await tried('/v1/refs/precious', {{ method: 'DELETE' }}), \
         await tried('/v1/recipes', {{ method: 'POST', mode: 'no-cors', body: '{{}}' }}), \
         await tried('/v1/blobs', {{ method: 'POST', mode: 'no-cors', body: 'evil' }})]); }})()"
    )
}

#[test]
fn a_page_of_another_site_can_neither_read_nor_write() {
    let runtime = runtime();
    let (server, port) = runtime.block_on(async {
        let server = Server::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = format!("<!doctype html><title>evil</title><a href=\"{}/\">console</a>", server.url);
        let router = Router::new().fallback(get(move || async move { Html(link) }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        (server, port)
    });
    let precious = runtime.block_on(async {
        let client = server.client().await;
        let precious = client.put("precious").await.unwrap().address;
        client.set_ref("precious", Some(precious)).await.unwrap();
        precious
    });
    let blobs = || server.executor.status().store.blobs;
    let before = blobs();
    with_browser(|browser| {
        browser.visit(&format!("http://{FOREIGN_HOST}:{port}/"), WIDE);
        let got = browser.evaluate(&tries(&server.url));
        assert_eq!(
            got,
            "[\"refused\",\"refused\",\"refused\",\"refused\",\"refused\",\"refused\",\"refused\"]".into()
        );
        // Nor can it show the console in a frame and have it clicked.
        browser.evaluate(&format!(
            "new Promise((resolve) => {{ const frame = document.createElement('iframe'); frame.onload = resolve; frame.src = '{}/'; document.body.append(frame); }})",
            server.url
        ));
        let reached = browser
            .evaluate("(() => { try { return frames[0].document.title; } catch { return 'refused'; } })()");
        assert_eq!(reached, "refused".into());
        // A link to the console works, as it does for any other tool.
        browser.click("a");
        browser.wait(&shows("Overview"));
        // A page of another program of this machine is not of another site, but cannot stop a run.
        browser.visit(&format!("http://127.0.0.1:{port}/"), WIDE);
        let cancel = "/v1/runs/1/cancel', { method: 'POST', mode: 'no-cors' }).catch(() => 'sent')";
        assert_eq!(browser.evaluate(&format!("fetch('{}{cancel}", server.url)), "sent".into());
        let refused = "route=\"/v1/runs/{id}/cancel\",status=\"415\"} 1";
        runtime.block_on(soon(async {
            while !send(&server, "GET /metrics", &[], b"").await.1.contains(refused) {}
        }));
        // A name that somebody pointed at this machine is not the server's.
        let address = server.url.replace("127.0.0.1", FOREIGN_HOST);
        browser.visit(&address, WIDE);
        browser.wait("document.body.innerText.includes('is not one of this server')");
    });
    assert_eq!(blobs(), before, "nothing was stored");
    let found = runtime.block_on(async { server.executor.find("precious").await.unwrap() });
    assert_eq!(found, precious);
}
