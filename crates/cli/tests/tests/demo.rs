//! `demo`.

use std::io::{BufRead as _, BufReader};

use expect_test::expect;

use crate::binary::{in_folder, scratch};

#[test]
fn the_demo_shows_parallel_branches() {
    let folder = scratch("demo");
    let file = folder.join("feed.html");
    let _ = std::fs::remove_file(&file);
    let said = in_folder(&folder, &["demo", "--exit", "--out", file.to_str().unwrap()], "");
    assert_eq!(said.code, 0, "{}", said.shown());
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("more_details (lookup)"));
    // What depends on the time it took is left out.
    let (answer, _) = said.stdout.split_once("\nThe timeline, ").unwrap();
    expect![[r#"
        The feed of user 7, from a plan of 17 nodes:

            id  likes  age_hours  author   score  popularity  topic    title
          ----  -----  ---------  ------  ------  ----------  -------  --------------------------
          1301     51       13.2      13  4.4232      3.9512  rivers   Where the delta begins
          4304     51         33      43  3.6312      3.9512  travel   The border cafe
          1302     28       18.8      13  3.6153      3.3673  science  Counting stars badly
          5502     13        9.3      55  3.2671      2.6391  food     Pickles for beginners
          5904      9        1.2      59  3.2546      2.3026  food     Pickles for beginners
          4202      9          5      42  3.1026      2.3026  science  A kinder battery
          4303     14       18.3      43  2.9761      2.7081  travel   The border cafe
          4203     26       36.4      42  2.8398      3.2958  rivers   A braided river from above
          2504      7        6.7      25  2.8114      2.0794  music    Songs for long trains
          5902     20         33      59  2.7245      3.0445  food     Five ways with lentils
    "#]]
    .assert_eq(answer);
    let same: Vec<&str> = said.stdout.lines().filter(|line| line.contains("in parallel  ")).collect();
    expect!["  in parallel      followed | suggested; posts | more_posts; details | more_details; loved | also_loved"].assert_eq(&same.join("\n"));
    assert!(said.stdout.contains(file.to_str().unwrap()), "it names the page");
    // Nothing comes back of these reads, so the answer has to do without, whatever the machine is busy with.
    let (_, stalled) = said.stdout.split_once("\nThe same feed while reads of ").unwrap();
    let told = |start: &str| stalled.lines().any(|line| line.starts_with(start) && line.contains("timeout"));
    assert!(told("  followed ") && told("  suggested  suggestions "), "{stalled}");
    let (_, recipes) = said.stdout.split_once("\nRecipes: ").unwrap();
    let told = |start: &str| recipes.lines().any(|line| line.starts_with(start));
    assert!(told("  first  computed, with 7 recipes ") && told("  again  memo: "), "{recipes}");
    check_dataset(&said.stdout, &folder);
    let (_, console) = said.stdout.split_once("\nThe same once more on a server").unwrap();
    let store = format!("anabranch runs --data {}", folder.join("feed/store").display());
    assert!(console.contains(&store), "{console}");
    names_no_server(&said.stdout);
    assert!(said.stdout.contains("The rows as Parquet"), "{}", said.stdout);
    // The example's files are in a clone, and this is none.
    assert!(said.stdout.contains("plan new feed") && !said.stdout.contains("examples/"), "{}", said.stdout);
    // What the console showed is on disk.
    let said = in_folder(&folder, &["runs", "--data", "feed/store", "--json"], "");
    let runs: Vec<serde_json::Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |name: &str, value: &str| runs.iter().any(|run| run[name] == value);
    assert!(
        runs.iter().any(|run| run["name"] == "feed_stalled" && run["state"] == "degraded"),
        "{}",
        said.shown()
    );
    assert!(has("kind", "recipe") && has("kind", "dataset"), "{}", said.shown());
}

/// Nobody is asked to look at a server that has ended.
fn names_no_server(stdout: &str) {
    for text in ["  open ", "/#token=", "curl", "Ctrl-C"] {
        assert!(!stdout.contains(text), "{text}: {stdout}");
    }
}

/// A demo that goes on says how to look at its server.
#[test]
fn a_demo_that_serves_names_its_server() {
    let folder = scratch("demo_serves");
    let file = folder.join("feed.html");
    let mut demo = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["demo", "--out", file.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.skip_while(|line| !line.starts_with("  open ")).take(4).collect();
    assert!(said[0].contains("http://127.0.0.1:") && said[0].contains("/#token="), "{said:?}");
    assert!(said[1].starts_with("  call    curl ") && said[3].ends_with("Ctrl-C"), "{said:?}");
    let id = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(0));
}

#[test]
fn a_demo_that_ends_leaves_no_temporary_files() {
    let folder = scratch("demo_temporary");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let output = command.args(["demo", "--exit"]).env("TMPDIR", &folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("feed.html"), "the timeline is gone");
    assert!(!said.contains(folder.to_str().unwrap()), "no path of a file that is gone: {said}");
    names_no_server(&said);
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [] as [std::path::PathBuf; 0]);
}

/// The dataset: its first rows, the failed cells, and its files.
fn check_dataset(stdout: &str, folder: &std::path::Path) {
    let (_, dataset) = stdout.split_once("\nDatasets: ").unwrap();
    let (records, rest) = dataset.split_once("\n  progress  ").unwrap();
    expect![[r#"
        columns by rows of samplers, templates and model calls, each cell started as soon as it can be.
        500 support tickets from the offline demo model, which makes its texts up. The first 2:

          row 0
            ticket_id: T-A44A83B7
            area: delivery
            issue: parcel is lost
            urgent: 0
            opened: 2026-03-16T15:00:00
            ticket: A few words about issue parcel delivery. A good example says more than a long
              definition. This is demo text, written offline without a language model.
            answer: In brief, about definition. Most people notice it only when something is missing.
              It works best when each part has one clear purpose. There is a simple version and a careful
              version, and both have their place. All of this is demo text from an offline stand-in.
            verdict:
              helpfulness:
                reasoning: Demo text: no text was read to come to this score.
                score: 3
              tone:
                reasoning: Demo text: no text was read to come to this score.
                score: rude
            escalation: null
          ------------------------------------------------------------
          row 1
            ticket_id: T-4AA45CDB
            area: account
            issue: cannot log in
            urgent: 0
            opened: 2026-05-25T12:00:00
            ticket: Here is a short take on issue. What matters in the end is whether it helps
              somebody. The numbers are modest, and the effect is not. It took a few attempts to get this
              right. All of this is demo text from an offline stand-in.
            answer: One way to see offline. The numbers are modest, and the effect is not. This is demo
              text, written offline without a language model.
            verdict:
              helpfulness:
                reasoning: Demo text: the option was drawn at random.
                score: 3
              tone:
                reasoning: Demo text: the option was drawn at random.
                score: neutral
            escalation: null
    "#]]
    .assert_eq(records);
    let (progress, rest) = rest.split_once('\n').unwrap();
    assert!(progress.starts_with("500 of 500 rows, ") && progress.contains(" failed, "), "{progress}");
    let told =
        |start: &str, end: &str| rest.lines().any(|line| line.starts_with(start) && line.contains(end));
    assert!(told("  built     ", " of the demo model"), "{rest}");
    // Which calls fail depends on their order; some do, and each is counted.
    let failed: usize =
        progress.split(", ").find_map(|part| part.strip_suffix(" failed")?.parse().ok()).unwrap();
    let errors = std::fs::read_to_string(folder.join("feed/support_tickets/errors.jsonl")).unwrap();
    assert_eq!((failed, failed > 0), (errors.lines().count(), true));
    assert!(told("  verdict  server_error", "kept, cell is null") || told("  answer ", "dropped"), "{rest}");
    assert!(folder.join("feed/support_tickets/parquet-files/batch_00000.parquet").is_file());
}
