//! A real browser that opens pages.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_value::Value;

/// A headless Chromium that reaches this machine only, driven through its debugging pipe. Dropping it ends it.
pub struct Browser {
    child: Child,
    /// `None` when the browser was told to end.
    commands: Option<ChildStdin>,
    messages: BufReader<ChildStdout>,
    profile: PathBuf,
    session: Option<String>,
    commands_sent: i64,
    /// The events of the page so far, with their names.
    events: Vec<(String, Value)>,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// In pixels.
    pub width: i64,
    /// True if the user prefers dark pages.
    pub dark: bool,
}

/// A browser that hangs is ended after this many seconds, so that its test fails.
const LONGEST_SECONDS: &str = "3600";

/// The pipe is expected on the descriptors 3 and 4.
const LAUNCH: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

const OPTIONS: [&str; 12] = [
    "--headless",
    "--remote-debugging-pipe",
    // The user of a container may be root, who has no sandbox. The pages are those of tests.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    // Nothing but this machine has an address: whatever else a page asks for fails. `FOREIGN_HOST` is this machine, too.
    "--host-resolver-rules=MAP other.example 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
];

/// A name that the browser takes for this machine, so that a page of another site can be tried.
pub const FOREIGN_HOST: &str = "other.example";

/// How long a page may take until something holds. Only a failing test waits as long.
const WAIT_MS: u32 = 120_000;

impl Browser {
    /// Starts a browser with an empty page.
    pub fn start() -> Browser {
        static BROWSERS: AtomicU32 = AtomicU32::new(0);
        let number = BROWSERS.fetch_add(1, Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("anabranch-browser-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&profile).unwrap();
        let found = Command::new("chromium").arg("--version").env("HOME", &profile).output();
        assert!(found.is_ok(), "chromium is not on the path; `./dev test` installs it");
        let mut child = Command::new("timeout")
            .args(["--kill-after=10", LONGEST_SECONDS, "sh", "-c", LAUNCH, "sh", "chromium"])
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("HOME", &profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`timeout` is a part of every Linux");
        let commands = child.stdin.take();
        let messages = BufReader::new(child.stdout.take().unwrap());
        let (session, events) = (None, Vec::new());
        let mut browser = Browser { child, commands, messages, profile, session, commands_sent: 0, events };
        let target = browser.call("Target.createTarget", vec![("url", "about:blank".into())]);
        let target = target.get("targetId").unwrap().clone();
        let attached =
            browser.call("Target.attachToTarget", vec![("targetId", target), ("flatten", true.into())]);
        browser.session = attached.get("sessionId").and_then(Value::as_text).map(str::to_owned);
        for domain in ["Page", "Network", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), Vec::new());
        }
        browser.call("Page.setLifecycleEventsEnabled", vec![("enabled", true.into())]);
        browser
    }

    /// Opens a file and waits until it is loaded. Earlier complaints and requests are forgotten.
    pub fn open(&mut self, file: &Path, view: View) {
        self.visit(&format!("file://{}", file.canonicalize().unwrap().display()), view);
    }

    /// Opens an address and waits until it is loaded. Earlier complaints and requests are forgotten.
    pub fn visit(&mut self, address: &str, view: View) {
        self.look(view);
        // Another fragment of the same page is no load.
        self.navigate("about:blank");
        self.navigate(address);
    }

    /// Sets how the page is looked at.
    pub fn look(&mut self, View { width, dark }: View) {
        let size = vec![
            ("width", width.into()),
            ("height", 900.into()),
            ("deviceScaleFactor", 1.into()),
            ("mobile", (width < 600).into()),
        ];
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = Value::map([
            ("name", Value::from("prefers-color-scheme")),
            ("value", if dark { "dark" } else { "light" }.into()),
        ]);
        self.call("Emulation.setEmulatedMedia", vec![("features", Value::list([scheme]))]);
    }

    fn navigate(&mut self, address: &str) {
        self.events.clear();
        let started = self.call("Page.navigate", vec![("url", address.into())]);
        let loader = started.get("loaderId").expect("every visit is a load").clone();
        // The page before may still be loading, so that its events come as well.
        let is_loaded = |(name, event): &(String, Value)| {
            name == "Page.lifecycleEvent"
                && event.get("name") == Some(&"load".into())
                && event.get("loaderId") == Some(&loader)
        };
        while !self.events.iter().any(is_loaded) {
            let message = self.message();
            self.note(&message);
        }
    }

    /// The value of an expression in the page, or what its promise comes to. Must be JSON.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.evaluate_here(expression).unwrap_or_else(|| panic!("the page was left during: {expression}"))
    }

    /// Like `evaluate`, but `None` if the page is left meanwhile.
    fn evaluate_here(&mut self, expression: &str) -> Option<Value> {
        let options = vec![
            ("expression", expression.into()),
            ("returnByValue", true.into()),
            ("awaitPromise", true.into()),
            ("userGesture", true.into()),
        ];
        let reply = match self.try_call("Runtime.evaluate", options) {
            Ok(reply) => reply,
            Err(error) => {
                let message = error.get("message").and_then(Value::as_text).unwrap_or_default();
                let is_left = ["navigated", "context"].iter().any(|word| message.contains(word));
                assert!(is_left, "{expression}: {message}");
                return None;
            }
        };
        assert!(reply.get("exceptionDetails").is_none(), "{expression}: {}", reply.to_json());
        Some(reply.get("result").and_then(|result| result.get("value")).cloned().unwrap_or_default())
    }

    /// Waits until an expression in the page is true, and gives its value. A link that was followed may end the page that
    /// was asked first; then the next one is asked.
    pub fn wait(&mut self, expression: &str) -> Value {
        let until = format!(
            "new Promise((resolve) => {{ const end = performance.now() + {WAIT_MS}; const look = () => {{ let found = null; \
             try {{ found = ({expression}); }} catch {{ }} if (found || performance.now() > end) resolve(found && typeof found === 'object' ? true : found ?? null); \
             else setTimeout(look, 15); }}; look(); }})"
        );
        let found = loop {
            if let Some(found) = self.evaluate_here(&until) {
                break found;
            }
        };
        let is_true =
            !matches!(found, Value::Null) && found != false.into() && found != "".into() && found != 0.into();
        if !is_true {
            let text = self.evaluate("document.body.innerText");
            panic!("never true: {expression}\n{}\n{:?}", text.to_json(), self.complaints());
        }
        found
    }

    /// Presses a key: a character, or a name like `Enter`.
    pub fn press(&mut self, key: &str) {
        let number = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            "ArrowDown" => 40,
            "ArrowUp" => 38,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        let mut down =
            vec![("type", "keyDown".into()), ("key", key.into()), ("windowsVirtualKeyCode", number.into())];
        let text = if key == "Enter" { "\r" } else { key };
        if number == 0 || key == "Enter" {
            down.push(("text", text.into()));
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", vec![("type", "keyUp".into()), ("key", key.into())]);
    }

    /// Types a text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", vec![("text", text.into())]);
    }

    /// Clicks on the middle of the first element of a selector.
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.middle(selector);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, x, y);
        }
    }

    /// Moves the pointer over the first element of a selector: so far from its left and upper edge.
    pub fn point(&mut self, selector: &str, right: f64, down: f64) {
        self.middle(selector);
        let edge = |browser: &mut Browser, side: &str| {
            let edge = format!("document.querySelector({selector:?}).getBoundingClientRect().{side}");
            browser.evaluate(&edge).as_number().unwrap()
        };
        let (x, y) = (edge(self, "left"), edge(self, "top"));
        self.mouse("mouseMoved", x + right, y + down);
    }

    fn middle(&mut self, selector: &str) -> (f64, f64) {
        self.wait(&format!("document.querySelector({selector:?})"));
        let part = |browser: &mut Browser, start: &str, size: &str| {
            let place = format!(
                "(() => {{ const found = document.querySelector({selector:?}); found.scrollIntoView({{ block: 'center' }}); \
                 const box = found.getBoundingClientRect(); return box.{start} + box.{size} / 2; }})()"
            );
            browser.evaluate(&place).as_number().unwrap()
        };
        (part(self, "left", "width"), part(self, "top", "height"))
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let mut event = vec![("type", kind.into()), ("x", x.into()), ("y", y.into())];
        if kind != "mouseMoved" {
            event.extend([("button", "left".into()), ("clickCount", 1.into())]);
        }
        self.call("Input.dispatchMouseEvent", event);
    }

    /// A picture of the upper part of the page, as PNG.
    pub fn screenshot(&mut self, width: i64, height: i64) -> Vec<u8> {
        let clip = Value::map([
            ("x", Value::from(0)),
            ("y", 0.into()),
            ("width", width.into()),
            ("height", height.into()),
            ("scale", 1.into()),
        ]);
        let options = vec![("format", "png".into()), ("captureBeyondViewport", true.into()), ("clip", clip)];
        let reply = self.call("Page.captureScreenshot", options);
        let data = reply.get("data").and_then(Value::as_text).unwrap().to_owned();
        data_encoding::BASE64.decode(data.as_bytes()).unwrap()
    }

    /// The addresses that the page asked for, itself first.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|(name, _)| name == "Network.requestWillBeSent");
        let address = |event: &Value| event.get("request")?.get("url")?.as_text().map(str::to_owned);
        sent.filter_map(|(_, event)| address(event)).collect()
    }

    /// Errors and everything else that the page or the browser wrote to the console, and dialogs, as JSON.
    pub fn complaints(&self) -> Vec<String> {
        const COMPLAINTS: [&str; 4] = [
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        ];
        let complaints = self.events.iter().filter(|(name, _)| COMPLAINTS.contains(&name.as_str()));
        complaints.map(|(name, event)| format!("{name}: {}", event.to_json())).collect()
    }

    fn call(&mut self, method: &str, params: Vec<(&str, Value)>) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {}", error.to_json()))
    }

    fn try_call(&mut self, method: &str, params: Vec<(&str, Value)>) -> Result<Value, Value> {
        self.commands_sent += 1;
        let id = self.commands_sent;
        let mut command = vec![("id", id.into()), ("method", method.into()), ("params", Value::map(params))];
        if let Some(session) = &self.session {
            command.push(("sessionId", session.as_str().into()));
        }
        let commands = self.commands.as_mut().unwrap();
        commands.write_all(format!("{}\0", Value::map(command).to_json()).as_bytes()).unwrap();
        loop {
            let message = self.message();
            if message.get("id") == Some(&id.into()) {
                if let Some(error) = message.get("error") {
                    return Err(error.clone());
                }
                return Ok(message.get("result").cloned().unwrap_or_default());
            }
            self.note(&message);
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.messages.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser ended, or took longer than {LONGEST_SECONDS} s");
        Value::from_json(std::str::from_utf8(&bytes).unwrap()).unwrap()
    }

    fn note(&mut self, message: &Value) {
        if let Some(method) = message.get("method").and_then(Value::as_text) {
            let params = message.get("params").cloned().unwrap_or_default();
            self.events.push((method.to_owned(), params));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A browser whose pipe is closed ends.
        self.commands = None;
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
