//! `dataset report`: as text, as JSON, and as a page in a real browser.

use std::path::{Path, PathBuf};

use anabranch_testkit::{Browser, View};
use anabranch_value::Value as PageValue;
use expect_test::expect;
use serde_json::{Value, json};

use crate::binary::in_folder;
use crate::dataset::{POEMS, check, shown, with_config};

/// Values that would do harm if they were markup.
const HOSTILE: &str = r##"
prices: {writer: {input: 0.15, output: 0.6}, judge: {input: 2, output: 8}}
columns:
  - name: '<b onclick="hurt()">mood</b>'
    column_type: sampler
    sampler_type: category
    params:
      values:
        - '<script>window.harmed = 1</script>'
        - '</style></svg></title><img src=x onerror="window.harmed = 2">'
        - "\" onmouseover=\"window.harmed = 3\" x='\u202e reversed \u0007"
  - {name: age, column_type: sampler, sampler_type: uniform, params: {low: 18, high: 90, decimal_places: 0}}
  - {name: weight, column_type: sampler, sampler_type: gaussian, params: {mean: 70, stddev: 9}}
  - {name: adult, column_type: expression, dtype: bool, expr: '{{ age > 30 }}'}
  - name: story
    column_type: llm-text
    model_alias: writer
    prompt: 'A story of somebody who is {{ age }}.'
  - {name: number, column_type: expression, dtype: int, expr: '{{ "many" if age > 80 else age }}'}
  - name: verdict
    column_type: llm-judge
    model_alias: judge
    prompt: 'Judge {{ story }}'
    scores:
      - {name: style, description: Is it well written?, options: {1: bad, 2: fair, 3: good}}
"##;

fn build(folder: &Path, rows: &str, out: &str) {
    let args =
        ["dataset", "build", "poems.yaml", "--rows", rows, "--out", out, "--demo", "--buffer-size", "40"];
    let said = in_folder(folder, &[&args[..], &["--seed", "3"]].concat(), "");
    assert_eq!(said.code, 0, "{}", said.stderr);
}

fn metadata(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("metadata.json")).unwrap()).unwrap()
}

/// The page of a dataset.
fn page(folder: &Path, out: &str) -> PathBuf {
    let said = in_folder(folder, &["dataset", "report", out, "--html"], "");
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    assert_eq!(said.stderr, format!("wrote {out}/report.html\n"));
    folder.join(out).join("report.html")
}

#[test]
fn the_report_is_a_text() {
    let folder = with_config("dataset_report_text", POEMS);
    build(&folder, "25", "out");
    let said = in_folder(&folder, &["dataset", "report", "out"], "");
    // How fast it was is another thing each time.
    let text: Vec<&str> = said.stdout.lines().filter(|line| !line.contains("rows/s")).collect();
    let text = format!("{}\n", text.join("\n"));
    let text = shown(&crate::binary::CommandOutput { stdout: text, ..said }, &folder);
    expect![[r#"
        poems: complete, 25 of 25 rows, 0 dropped, seed 3, in TIME

        topic  string, 2 distinct
          coffee                    ██████████████████████████████  13 52%
          tea                       ███████████████████████████▊    12 48%

        poem  string, 23 distinct
          ▄▂▄▄▂▄ █   ▂ █  ▂  ▂ ▆▂  min 114, 5% 119, median 166, mean 182.8, 95% 262, max 274 characters

        facts  struct<lines: int64>
          lines  int64, 9 distinct
            ▁▁▂▄▁█▂▅▁  min 1, 5% 2, median 6, mean 5.64, 95% 8, max 9

        title  string, 6 distinct, 12 null (48%)
          COFFEE, 6 lines           ██████████████████████████████  5 38%
          COFFEE, 8 lines           ██████████████████              3 23%
          COFFEE, 4 lines           ████████████                    2 15%
          COFFEE, 7 lines           ██████                          1 7.7%
          COFFEE, 3 lines           ██████                          1 7.7%
          COFFEE, 5 lines           ██████                          1 7.7%

        calls, tokens and cost
          column  model  calls  reused  tokens in  tokens out  cost
          ------  -----  -----  ------  ---------  ----------  ----
          poem    demo      25       0        125        1155
          facts   demo      25       0       2882         150
          all               50       0       3007        1305

        course of the build
          1 row group in 1 run

        sample rows
        row 0
          topic: tea
          poem: Here is a short take on the topic. What matters in the end is whether it helps somebody.
            This is demo text, written offline without a language model.
          facts:
            lines: 9
          title: null
        ------------------------------------------------------------
        row 5
          topic: coffee
          poem: A few words about coffee. The first thing that stands out is how small details change the
            whole picture. Most people notice it only when something is missing. All of this is demo text
            from an offline stand-in.
          facts:
            lines: 6
          title: COFFEE, 6 lines
        exit 0
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_folder_without_a_dataset_has_no_report() {
    let folder = with_config("dataset_report_none", POEMS);
    check(
        &folder,
        &["report", "nowhere"],
        &expect![[r#"
        stderr: error: nowhere does not exist; name the folder that `dataset build --out` wrote
        exit 1
    "#]],
    );
    check(
        &folder,
        &["report", "."],
        &expect![[r#"
        stderr: error: . holds no dataset; name the folder that `dataset build --out` wrote
        exit 1
    "#]],
    );
}

#[test]
fn numbers_are_those_of_the_metadata() {
    let folder = with_config("dataset_report_json", HOSTILE);
    build(&folder, "100", "out");
    let metadata = metadata(&folder.join("out"));
    let said = in_folder(&folder, &["dataset", "report", "out", "--json"], "");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let section = &report["sections"][0];
    assert_eq!(section["metadata"], metadata);
    assert_eq!(section["rows"], metadata["actual_num_records"]);
    assert_eq!(section["errors"]["dropped"], metadata["dropped_num_records"]);
    assert!(
        metadata["dropped_num_records"].as_u64().unwrap() > 0,
        "some rows fail, so that there is something to count"
    );
    let sum = |field: &str| -> u64 {
        metadata["models"].as_object().unwrap().values().map(|model| model[field].as_u64().unwrap()).sum()
    };
    for field in ["calls", "reused", "input_tokens", "output_tokens"] {
        assert_eq!(section["spent"][field], sum(field), "{field}");
    }
    let names: Vec<&Value> =
        section["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    let known: Vec<&Value> =
        metadata["columns"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, known);
    for column in section["columns"].as_array().unwrap() {
        assert_eq!(column["cells"], metadata["actual_num_records"], "{}", column["name"]);
    }
}

/// Adds the progress of a long build, and a plan.
fn add_course(folder: &Path) {
    let mut events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    for second in 0..90_u64 {
        let event = json!({
            "event": "progress", "at_ms": second * 1000, "rows": second * second / 90, "dropped": 0, "calls": second * second / 40,
            "limits": [{"name": "<i>writer</i>", "limit": 8 + second / 10, "in_flight": second % 9, "refused": 0}],
        });
        events.push_str(&format!("{event}\n"));
    }
    std::fs::write(folder.join("events.jsonl"), events).unwrap();
    let mut metadata = metadata(folder);
    let totals =
        json!({"calls": 200, "input_tokens": 9000, "output_tokens": 4000, "cost": 0.02, "seconds": 60.0});
    metadata["plan"] = json!({"estimated": totals, "actual": totals});
    std::fs::write(folder.join("metadata.json"), metadata.to_string()).unwrap();
    let column =
        json!({"name": "story", "calls": 100, "input_tokens": 5000, "output_tokens": 2000, "cost": 0.01});
    let mut plan = totals;
    plan["rows"] = 100.into();
    plan["columns"] = json!([column]);
    std::fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
}

/// The sum of a number over all columns.
fn spent(metadata: &Value, field: &str) -> f64 {
    let columns = metadata["spent"].as_object().unwrap();
    columns.values().map(|column| column[field].as_f64().unwrap()).sum()
}

/// The number that the page shows for a field of the metadata.
fn figure(browser: &mut Browser, field: &str) -> f64 {
    let value = browser.evaluate(&format!("Number(document.querySelector('data.{field}').value)"));
    value.as_number().unwrap_or_else(|| panic!("{field}: {}", value.to_json()))
}

#[test]
fn the_page_is_whole_in_a_browser() {
    let folder = with_config("dataset_report_page", HOSTILE);
    build(&folder, "100", "out");
    add_course(&folder.join("out"));
    let metadata = metadata(&folder.join("out"));
    let page = page(&folder, "out");
    let mut browser = Browser::start();
    for view in [
        View { width: 1200, dark: false },
        View { width: 1200, dark: true },
        View { width: 390, dark: false },
    ] {
        browser.open(&page, view);
        assert_eq!(browser.complaints(), [] as [String; 0], "{view:?}");
        let requests = browser.requests();
        assert_eq!(requests.len(), 1, "nothing but the page itself: {requests:?}");

        for field in ["target_num_records", "dropped_num_records", "seed"] {
            assert_eq!(figure(&mut browser, field), metadata[field].as_f64().unwrap(), "{field}");
        }
        assert_eq!(figure(&mut browser, "rows"), metadata["actual_num_records"].as_f64().unwrap());
        for field in ["calls", "reused", "input_tokens", "output_tokens"] {
            assert_eq!(figure(&mut browser, field), spent(&metadata, field), "{field}");
        }
        assert!(spent(&metadata, "calls") > 100.0 && spent(&metadata, "cost") > 0.0);
        assert!((figure(&mut browser, "total_cost") - spent(&metadata, "cost")).abs() < 1e-9);
        let shown = browser.evaluate("document.querySelector('.tiles').innerText");
        let rows = metadata["actual_num_records"].to_string();
        assert!(shown.as_text().unwrap().contains(&rows), "{shown:?}");

        assert_eq!(browser.evaluate("typeof window.harmed"), "undefined".into());
        assert_eq!(
            browser.evaluate("document.querySelectorAll('img, script, iframe, b, i, [onclick]').length"),
            PageValue::Int(0)
        );
        let text = browser.evaluate("document.body.innerText");
        let text = text.as_text().unwrap();
        assert!(text.contains("<script>window.harmed = 1</script>"), "hostile values are shown as they are");
        assert!(text.contains("\\u{202e} reversed \\u{7}"), "and what cannot be seen is spelled out");

        let fits = browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth");
        assert_eq!(fits, true.into(), "no part is wider than the page at {view:?}");
    }
    plots_are_there(&mut browser, &metadata);
    assert_eq!(colour(&mut browser, &page, false), "rgb(255, 255, 255)");
    assert_eq!(colour(&mut browser, &page, true), "rgb(13, 17, 23)");
}

fn colour(browser: &mut Browser, page: &Path, dark: bool) -> String {
    browser.open(page, View { width: 800, dark });
    browser.evaluate("getComputedStyle(document.body).backgroundColor").as_text().unwrap().to_owned()
}

/// Bars have sizes that follow the counts, and plots have titles.
fn plots_are_there(browser: &mut Browser, metadata: &Value) {
    let mut count = |selector: &str| {
        browser.evaluate(&format!("document.querySelectorAll('{selector}').length")).as_number().unwrap()
    };
    // Numbers: age, weight, number, style.score; lengths: story.
    assert_eq!(count("svg.histogram"), 5.0);
    assert_eq!(count("svg.course"), 4.0, "rows on disk, rows/s, calls/s, one limit");
    let plots = count("svg[role=img]");
    assert_eq!(count("svg[role=img] > title"), plots);
    assert_eq!(count("svg[role=img] > desc"), plots);
    let empty = "[...document.querySelectorAll('svg .bar, svg .line')].filter(bar => {\
                 let box = bar.getBoundingClientRect(); return bar.getAttribute('height') != '0.0' && (box.width < 0.5 || box.height < 0.5)}).length";
    assert_eq!(browser.evaluate(empty), PageValue::Int(0), "a bar of some rows can be seen");
    let heights = "[...document.querySelectorAll('svg.histogram')].map(svg => [...svg.querySelectorAll('g')]\
                   .filter(g => g.querySelector('.bar')).reduce((sum, g) => sum + Number(g.querySelector('title').textContent.split(': ').pop()), 0))";
    let sums = browser.evaluate(heights);
    let rows = metadata["actual_num_records"].as_f64().unwrap();
    assert!(sums.as_list().unwrap().iter().all(|sum| sum.as_number() == Some(rows)), "{}", sums.to_json());
    let scores = "[...document.querySelectorAll('.judge .bars tbody tr')].reduce((sum, row) => sum + Number(row.querySelector('td.num').textContent), 0)";
    assert_eq!(browser.evaluate(scores).as_number(), Some(rows), "every row has a score");
    let widths =
        "[...document.querySelectorAll('.judge .bar')].map(bar => bar.getBoundingClientRect().width)";
    let widths = browser.evaluate(widths);
    let widths: Vec<f64> = widths.as_list().unwrap().iter().filter_map(PageValue::as_number).collect();
    assert!(widths.len() > 1 && widths.iter().any(|width| *width != widths[0]), "{widths:?}");
}

#[test]
fn the_plan_of_a_continued_build_is_beside_it() {
    let folder = with_config("dataset_report_plan", POEMS);
    let options = ["poems.yaml", "--rows", "20", "--out", "out", "--demo"];
    let plan = in_folder(&folder, &[&["dataset", "plan"], &options[..], &["--save"]].concat(), "");
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    let build = [&["dataset", "build"], &options[..], &["--buffer-size", "5"]].concat();
    let stopped = in_folder(&folder, &[&build[..], &["--max-calls", "15"]].concat(), "");
    assert_eq!(stopped.code, 1, "{}", stopped.stderr);
    let report = || -> Value {
        let said = in_folder(&folder, &["dataset", "report", "out", "--json"], "");
        serde_json::from_str::<Value>(&said.stdout).unwrap()["sections"][0].take()
    };
    assert_eq!(report()["state"], "stopped");
    assert_eq!(in_folder(&folder, &build, "").code, 0);
    let (section, metadata) = (report(), metadata(&folder.join("out")));
    assert_eq!((&section["state"], &section["rows"]), (&"complete".into(), &20.into()));
    assert_eq!(section["timeline"]["starts"].as_array().unwrap().len(), 2, "two runs");
    assert_eq!(section["estimated"]["planned"], metadata["plan"]["estimated"]);
    assert_eq!(section["estimated"]["actual"], metadata["plan"]["actual"]);
    assert_eq!(section["estimated"]["columns"].as_array().unwrap().len(), 2, "the columns that ask a model");
    assert_eq!(section["estimated"]["actual"]["calls"], section["spent"]["calls"]);
    let html = std::fs::read_to_string(page(&folder, "out")).unwrap();
    assert!(html.contains("Estimated and actual") && html.contains("Rows on disk, 4 row groups"));
}

/// Two stages: topics with a list of questions each, then a row per question.
const STAGES: &str = "\
stages:
  - name: topics
    columns:
      - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
      - name: question
        column_type: llm-structured
        model_alias: writer
        prompt: 'Questions about {{ topic }}.'
        output_format: {type: array, minItems: 2, maxItems: 3, items: {type: string}}
    steps: [{explode: question}]
  - name: answers
    columns:
      - {name: answer, column_type: llm-text, model_alias: writer, prompt: 'Answer about {{ topic }}.'}
";

#[test]
fn stages_have_sections_and_rows_have_paths() {
    let folder = with_config("dataset_report_stages", STAGES);
    build(&folder, "4", "out");
    let said = in_folder(&folder, &["dataset", "report", "out"], "");
    let heads: Vec<&str> = said.stdout.lines().filter(|line| line.contains(" rows, ")).collect();
    let names: Vec<&str> = heads.iter().filter_map(|head| head.split(':').next()).collect();
    assert_eq!(names, ["poems", "poems, stage 1-topics"], "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("then explode"), "{}", said.stdout);
    assert!(said.stdout.contains("\nrow 0.0\n"), "the first item of the first row: {}", said.stdout);
    let html = std::fs::read_to_string(page(&folder, "out")).unwrap();
    assert_eq!(html.matches("<section class=\"dataset\"").count(), 2);
    assert!(html.contains("<a href=\"#s1\">1-topics</a>"));
    assert!(html.contains("<summary>row 0.0</summary>"));
}
