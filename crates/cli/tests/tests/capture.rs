//! `plan capture`, `plan replay`, `plan captures`, `plan diff`.

use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::{Value, json};

use crate::binary::{CommandOutput, anabranch, in_folder, patient_examples, root, scratch};

/// A folder for a store that is not there yet.
fn fresh(test: &str) -> PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn capture(store: &Path, plan: &str, user: u64, set: &str) -> CommandOutput {
    let request = json!({"user_id": user}).to_string();
    let store = store.to_str().unwrap();
    anabranch(&["plan", "capture", plan, "--store", store, "--set", set], &request)
}

fn address(said: &CommandOutput) -> String {
    said.stderr.lines().find_map(|line| line.strip_prefix("captured: ")).unwrap().to_owned()
}

fn with_store(store: &Path, args: &[&str]) -> CommandOutput {
    anabranch(&[args, &["--store", store.to_str().unwrap()]].concat(), "")
}

/// The example feed, changed, in a file.
fn changed(folder: &Path, name: &str, change: impl FnOnce(&mut Value)) -> String {
    let text = std::fs::read_to_string(patient_examples().join("plans/feed.plan.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    plan["plan_name"] = json!(name);
    change(&mut plan);
    let file = folder.join(format!("{name}.plan.json"));
    std::fs::write(&file, plan.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Without times, which are never the same, nor the widths of columns, which follow from them.
fn shown(said: &CommandOutput) -> String {
    let line = |line: &str| match line.split_once(", ms") {
        Some((what, _)) => format!("{what}, ms ..."),
        None if line.starts_with("---") => "---".to_owned(),
        None => line.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    said.shown().lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn a_captured_request_is_answered_again() {
    let store = fresh("capture_replay").join("store");
    let said = capture(&store, "feed", 7, "monday");
    let address = address(&said);
    assert_eq!(said.ids().len(), 10);
    let again = with_store(&store, &["plan", "replay", &address]);
    assert_eq!((again.stdout, again.stderr, again.code), (said.stdout, String::new(), 0));
    let unknown = "0".repeat(64);
    let mut told = with_store(&store, &["plan", "replay", &unknown]).shown();
    told += &with_store(&store, &["plan", "replay", "abc"]).shown();
    told += &anabranch(&["plan", "replay", &unknown, "--store", "nowhere"], "").shown();
    // A folder of something else stays as it is.
    told += &anabranch(&["plan", "replay", &unknown, "--store", "registry"], "").shown();
    told += &with_store(&store, &["plan", "captures"]).shown();
    told += &with_store(&store, &["plan", "captures", "--set", "sunday"]).shown();
    expect![[r#"
        stderr: error: 0000000000000000000000000000000000000000000000000000000000000000 is no capture of this store
        exit 1
        stderr: error: invalid value 'abc' for '<ADDRESS>': expected the address of a capture: 64 hex digits, or at least its first 4; `anabranch plan captures` lists them
        stderr:
        stderr: For more information, try '--help'.
        exit 2
        stderr: error: there is no capture store in nowhere; `anabranch plan capture` creates one
        exit 1
        stderr: error: there is no capture store in registry; `anabranch plan capture` creates one
        exit 1
        set     captures
        ------  --------
        monday         1
        exit 0
        stderr: error: there is no set of captures `sunday`; there are: monday
        exit 1
    "#]].assert_eq(&told);
    let listed = with_store(&store, &["plan", "captures", "--set", "monday"]).shown();
    assert!(listed.contains(&address) && listed.contains("feed"), "{listed}");
    assert!(listed.contains("answered"), "{listed}");
}

#[test]
fn the_first_digits_of_an_address_will_do() {
    let store = fresh("capture_short").join("store");
    let first = address(&capture(&store, "feed", 7, "monday"));
    let short = &first[..8];
    let whole = with_store(&store, &["plan", "replay", &first]);
    assert_eq!(with_store(&store, &["plan", "replay", short]).stdout, whole.stdout);
    assert_eq!(with_store(&store, &["plan", "why", short, "-7"]).code, 0);
    let other = if first.starts_with('f') { "0000" } else { "ffff" };
    let said = with_store(&store, &["plan", "replay", other]).shown().replace(other, "DIGITS");
    expect![[r#"
        stderr: error: no capture has an address that begins with DIGITS
        exit 1
    "#]]
    .assert_eq(&said);
}

#[test]
fn captures_are_listed_as_json_and_by_time() {
    let store = fresh("capture_json").join("store");
    let all: Vec<String> = (1..=3).map(|user| address(&capture(&store, "feed", user, "monday"))).collect();
    let list = |more: &[&str]| -> Value {
        let said = with_store(&store, &[&["plan", "captures", "--json"], more].concat());
        serde_json::from_str(&said.stdout).unwrap()
    };
    assert_eq!(list(&[]), json!([{"set": "monday", "captures": 3}]));
    let listed = list(&["--set", "monday"]);
    let times: Vec<u64> = (0..3).map(|at| listed[at]["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{listed}");
    for entry in listed.as_array().unwrap() {
        assert!(all.iter().any(|address| entry["capture"] == address.as_str()), "{entry}");
        assert_eq!((&entry["plan"], &entry["ended"]), (&json!("feed"), &json!("answered")));
    }
    let users: Vec<&str> = (0..3).map(|at| listed[at]["user"].as_str().unwrap()).collect();
    assert_eq!(list(&["--set", "monday", "--most", "1"]).as_array().unwrap().len(), 1);
    assert!(["1", "2", "3"].iter().all(|user| users.contains(user)), "{users:?}");
}

#[test]
fn a_difference_names_requests_and_rows() {
    let folder = fresh("capture_examples");
    let store = folder.join("store");
    let capture = address(&capture(&store, "feed", 1, "day"));
    let fresher = changed(&folder, "fresher", |plan| plan["expr_table"]["e1"]["a"]["value"] = json!(0.25));
    let said = with_store(&store, &["plan", "diff", "feed", &fresher, "--captures", "day", "--top", "5"]);
    let lines: Vec<&str> =
        said.stdout.lines().skip_while(|line| !line.starts_with("requests")).take(5).collect();
    expect![[r#"
        requests that changed most
          capture ADDRESS, user 1
            entered: 2103
            left: 5602
            moved: 1904 from 3 to 4, 1301 from 4 to 5"#]]
    .assert_eq(&lines.join("\n").replace(&capture[..12], "ADDRESS"));
    let said = with_store(&store, &["plan", "diff", "feed", &fresher, "--captures", "day", "--json"]);
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(found["examples"][0]["capture"], json!(capture));
    assert_eq!(found["examples"][0]["user"], json!("1"));
}

/// It is the request that counts.
#[test]
fn what_cannot_be_captured_is_answered() {
    let store = fresh("capture_refused").join("store");
    let said = capture(&store, "feed", 7, "mon/day");
    assert_eq!((said.code, said.stdout.matches("\"id\":").count()), (1, 10), "{}", said.shown());
    expect![[r#"
        error: a set of captures cannot be called "mon/day": 1 to 100 letters, digits, `_`, `-` or `.`
    "#]]
    .assert_eq(&said.stderr);
}

#[test]
fn a_capture_says_why_and_what_its_nodes_made() {
    let store = fresh("capture_why").join("store");
    let address = address(&capture(&store, "feed", 1, "monday"));
    let mut told = String::new();
    for row in ["2603", "5603", "-7"] {
        let live = anabranch(&["plan", "why", "feed", row], r#"{"user_id": 1}"#);
        let captured = with_store(&store, &["plan", "why", &address, row]);
        assert_eq!(captured.shown(), live.shown());
        let json = with_store(&store, &["plan", "why", &address, row, "--json"]);
        assert!(json.stdout.contains(&format!("\"row\": {row}")), "{}", json.shown());
    }
    for args in [
        &["plan", "why", "feed", "1"][..],
        &["plan", "why", &address, "1", "--request", "{}"],
        &["plan", "replay", &address, "--node", "pge"],
        &["plan", "replay", &address, "--json"],
        &["plan", "replay", &address, "--node", "page"],
    ] {
        told += &with_store(&store, args).shown().replace(&address, "ADDRESS");
    }
    told += &anabranch(&["plan", "why", &address, "1"], "").shown().replace(&address, "ADDRESS");
    expect![[r#"
        stderr: error: no capture has an address that begins with feed
        exit 1
        stderr: error: the argument '--request <JSON>' cannot be used with '--store <DIR>'
        stderr:
        stderr: Usage: anabranch plan why --request <JSON> <FILE|NAME|ADDRESS> <ROW>
        stderr:
        stderr: For more information, try '--help'.
        exit 2
        stderr: error: plan `feed` of the capture has no node `pge` that runs; there are: viewer, followed, posts, details, loved, score, suggested, more_posts, more_details, also_loved, also_score, suggestions, all, wanted, ranked, diverse, page
        exit 1
        stderr: error: the following required arguments were not provided:
        stderr:   --node <ID>
        stderr:
        stderr: Usage: anabranch plan replay --store <DIR> --node <ID> --json <ADDRESS>
        stderr:
        stderr: For more information, try '--help'.
        exit 2
          id  likes  age_hours  author   score  popularity  topic    title
        ----  -----  ---------  ------  ------  ----------  -------  ------------------------
        5601    731         12      56  7.1158      6.5958  travel   Night train to the coast
        2603    135        9.2      26  5.5447      4.9127  food     A pot of slow beans
        1904     47        6.8      19  4.5992      3.8712  science  Why bees turn
        1301     51       13.2      13  4.4232      3.9512  rivers   Where the delta begins
        5602    255       57.3      56  4.2532      5.5452  music    Songs for long trains
        2103     73        1.5      21  4.2441      4.3041  travel   Islands in winter
        5303    133       42.7      53  4.1898      4.8978  travel   Maps I trust
        2104    137       32.5      21  3.6273      4.9273  food     The market at six
        1302     28       18.8      13  3.6153      3.3673  science  Counting stars badly
        2902     15          6      29  3.5326      2.7726  rivers   Where the delta begins
        stderr: page: 10 rows
        exit 0
        stderr: error: ADDRESS is the address of a capture; give the folder of its store: --store DIR
        exit 2
    "#]].assert_eq(&told);
    let json = with_store(&store, &["plan", "replay", &address, "--node", "page", "--json"]);
    assert_eq!(json.ids().len(), 10);
}

#[test]
fn a_failed_request_fails_the_same_again() {
    let store = fresh("capture_failed").join("store");
    let folder = fresh("capture_failed_data");
    std::fs::write(folder.join("data.json"), r#"{"lists": {"user:1": [1], "follow:1": ["x"]}}"#).unwrap();
    let examples = root().join("examples/plans");
    let project = format!(
        "[plan]\nregistry = '{0}/registry'\nplans = '{0}/plans'\nenv = 'dev'\n\
         [plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['data.json']\nstrict_values = true\n",
        examples.display()
    );
    let file = folder.join("strict.toml");
    std::fs::write(&file, project).unwrap();
    let args = ["--project", file.to_str().unwrap(), "--store", store.to_str().unwrap()];
    let request = r#"{"user_id": 1}"#;
    let said = anabranch(&[&["plan", "capture", "home"], &args[..]].concat(), request);
    let again = with_store(&store, &["plan", "replay", &address(&said)]);
    assert_eq!((said.code, again.code), (1, 1));
    let error =
        |said: &CommandOutput| said.stderr.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
    assert_eq!(error(&said), error(&again));
    let mut told = String::new();
    for args in [
        &["plan", "why", &address(&said), "1"][..],
        &["plan", "replay", &address(&said), "--node", "viewer"],
        &["plan", "replay", &address(&said), "--node", "followed"],
    ] {
        told += &with_store(&store, args).shown().replace(&address(&said), "ADDRESS");
    }
    expect![[r#"
        stderr: error: capture ADDRESS has no answer: the request failed when it was captured
        stderr:   because: node `followed` (core::follow): redis_default answered `LRANGE follow:1` with the item "x", not an id (a 64-bit integer)
        exit 1
        id
        --
         1
        stderr: viewer: 1 row
        exit 0
        stderr: error: node `followed` has no rows for this request: it failed, was not got to or given up with its region, an `if` went the other way, or it is a fallback that was not needed
        exit 1
    "#]].assert_eq(&told);
    expect![[r#"error: node `followed` (core::follow): redis_default answered `LRANGE follow:1` with the item "x", not an id (a 64-bit integer)"#]].assert_eq(&error(&again));
}

#[test]
fn plans_are_compared_on_captures() {
    let folder = fresh("capture_diff");
    let store = folder.join("store");
    for user in 1..=8 {
        assert_eq!(capture(&store, "feed", user, "week").code, 0);
    }
    let diff = |plans: &[&str], more: &[&str]| {
        let args = [&["plan", "diff"], plans, &["--captures", "week", "--examples", "0"], more].concat();
        with_store(&store, &args)
    };
    expect![[r#"
        8 captures compared, 0 not comparable
        top 10: changed for 0.0% of the requests
        per request: 0.00 rows entered, 0.00 rows left
        rows in both answers: moved by 0.00 places on average
        their `score`: changed by 0.0000 on average, by 0.0000 at most
        as captured feed
        ---
        trips per request 6.00 6.00
        waits p50, ms ...
        waits p99, ms ...
        exit 0
    "#]]
    .assert_eq(&shown(&diff(&["feed"], &[])));
    let fresher = changed(&folder, "fresher", |plan| {
        plan["expr_table"]["e1"]["a"]["value"] = json!(0.25);
        plan["nodes"][2]["params"]["fanout"] = json!(3);
    });
    expect![[r#"
        8 captures compared, 0 not comparable
        top 5: changed for 100.0% of the requests
        per request: 1.75 rows entered, 1.75 rows left
        rows in both answers: moved by 0.69 places on average
        their `score`: changed by 0.6346 on average, by 0.7500 at most
        feed fresher
        ---
        trips per request 6.00 6.00
        waits p50, ms ...
        waits p99, ms ...
        exit 0
    "#]]
    .assert_eq(&shown(&diff(&["feed", &fresher], &["--top", "5"])));
    let more = changed(&folder, "more", |plan| {
        plan["nodes"][3]["params"]["key"] = json!("article:{id}");
    });
    expect![[r#"
        0 captures compared, 8 not comparable
        8: the second plan: node `details` reads what was not captured: redis_default, `HMGET article:{id}`
        stderr: error: none of the captures could be compared
        exit 1
    "#]]
    .assert_eq(&shown(&diff(&["feed", &more], &[])));
    let said = diff(&[&fresher], &["--json", "--score", "popularity"]);
    let mut found: Value = serde_json::from_str(&said.stdout).unwrap();
    for varying in ["waits", "examples"] {
        found.as_object_mut().unwrap().remove(varying).unwrap();
    }
    expect![[r#"{"captures":{"compared":8,"not_comparable":0,"reasons":[]},"changed":1.0,"entered":2.375,"left":2.375,"rank_move":1.3442622950819672,"score":{"key":"popularity","mean":0.0,"most":0.0},"top":10,"trips":{"after":6.0,"before":6.0}}"#]].assert_eq(&found.to_string());
    expect![[r#"
        stderr: error: --score popularty: there is no key of this name
        exit 2
    "#]]
    .assert_eq(&shown(&diff(&["feed"], &["--score", "popularty"])));
}

#[test]
fn requests_of_a_load_are_captured_as_the_project_says() {
    let folder = fresh("capture_bench");
    let example = patient_examples();
    let path = |name: &str| example.join(name).to_str().unwrap().to_owned();
    let project = |captures: &str| {
        let text = format!(
            "[plan]\nregistry = '{}'\nplans = '{}'\n[plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['{}']\n{captures}",
            path("registry"),
            path("plans"),
            path("data.json"),
        );
        std::fs::write(folder.join("anabranch.toml"), text).unwrap();
    };
    let bench = || {
        in_folder(&folder, &["plan", "bench", "feed", "--requests", "40", "--warmup", "0", "--capture"], "")
    };
    project("");
    expect![[r#"
        stderr: error: captures: no project file says which requests are captured (write a table [plan.captures] with a `store` into anabranch.toml)
        exit 1
    "#]].assert_eq(&bench().shown_from(&folder));
    let every = "[plan.captures]\nstore = 'store'\none_in = 1\nper_second = 1000000\nmost_waiting = 100\nmasked_keys = ['title']\n";
    project(&format!("{every}most_bytes = 1\n"));
    let said = bench();
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(said.stderr.contains("0 captures, 40 dropped (size)"), "{}", said.stderr);
    project(every);
    let said = bench();
    assert!(said.stderr.contains("40 captures\n"), "{}", said.stderr);
    let listed = with_store(&folder.join("store"), &["plan", "captures", "--set", "live"]);
    assert_eq!(listed.stdout.matches("answered, masked").count(), 40, "{}", listed.stdout);
    let address = listed.stdout.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    let replayed = with_store(&folder.join("store"), &["plan", "replay", &address]);
    assert!(replayed.stdout.contains("\"title\":\"~"), "{}", replayed.shown());
    assert_eq!(replayed.code, 0);
}
