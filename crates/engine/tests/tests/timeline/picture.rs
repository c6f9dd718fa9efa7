//! What pictures look like, and that names stay names in them.

use std::time::Duration;

use anabranch_engine::NodeId;
use anabranch_engine::event::{Event, EventKind, ListenerItem, RunId};
use anabranch_engine::timeline::Timeline;
use expect_test::expect;

use super::hold::assert_markup;
use super::{letter, of_tape};
use crate::script::Script;
use crate::tape::{tape, zero};

#[test]
fn hostile_names_stay_text() {
    let hostile = |node: NodeId| match node.0 {
        0 => "<script>alert(1)</script>".to_owned(),
        1 => "\"&'</title></svg>]]>-->\\".to_owned(),
        _ => "a\u{0}b\u{1b}\nc\u{202e}\u{ffff}é".to_owned(),
    };
    let timeline = of_tape(
        "a; b <- a; c <- b",
        "0 run 3; 0 a start future; 9 a done; 9 b start future; 12 b fail error; 12 c drop; 12 end complete",
    );
    let svg = timeline.svg("<b>\"&'", &hostile);
    assert_markup(&svg);
    let html = timeline.html("</title><script>", &hostile);
    for text in [&svg, &html] {
        assert!(!text.contains("<script>alert") && !text.contains("]]>"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert!(text.contains("&quot;&amp;&#39;&lt;/title&gt;"));
        assert!(!text.contains(['\u{0}', '\u{1b}', '\u{ffff}']));
    }
    assert_eq!(html.matches("<script>").count(), 1, "the page's own");
    assert_eq!(html.matches("</title>").count() - svg.matches("</title>").count(), 1);
    let trace: serde_json::Value = serde_json::from_str(&timeline.trace(&hostile)).unwrap();
    let names: Vec<&str> =
        trace["traceEvents"].as_array().unwrap().iter().filter_map(|event| event["name"].as_str()).collect();
    assert!((0..3).all(|node| names.contains(&hostile(NodeId(node)).as_str())), "{names:?}");
}

/// Fifty nodes on one slot, one behind the other; the third falls back.
fn on_one_slot() -> Timeline {
    let mut events = String::from("0 run 50");
    for node in 0..50 {
        let end = if node == 3 { "fallback timeout" } else { "done" };
        events += &format!("; {node} {node} start future; {} {node} {end}", node + 1);
    }
    events += "; 50 end complete";
    let graph = anabranch_engine::Dag::new(50, &[]).unwrap();
    Timeline::new(RunId(0), &graph, &tape(&events)).unwrap()
}

#[test]
fn no_bar_covers_the_sign_of_a_fallback() {
    let svg = on_one_slot().svg("slots", &super::number);
    let plot = svg.split("class=\"view\"").nth(1).unwrap();
    let sign = plot.find(">!</text>").unwrap();
    let last = plot.rfind("<rect class=\"io").unwrap();
    assert!(sign > last, "what is drawn later is above");
    assert!(plot.contains("<rect class=\"io b cut\""), "{plot}");
}

#[test]
fn deadlines_and_timeouts_are_lines() {
    let events =
        "0 run 2; 0 a start future; 20 a fallback timeout; 20 b start future; 40 b done; 40 end complete";
    let timeline = of_tape("a; b <- a", events);
    let plain = timeline.svg("plain", &letter);
    assert!(!plain.contains("class=\"deadline\"") && !plain.contains("class=\"limit-mark\""));
    let millis = Duration::from_millis;
    let marked = timeline.with_deadline(millis(30)).with_timeouts(|node| (node.0 == 0).then_some(millis(20)));
    let svg = marked.svg("marked", &letter);
    for line in [
        "<line class=\"deadline\" x1=\"75%\"",
        "<line class=\"limit-mark\" x1=\"50%\"",
        ">deadline 30 ms</text>",
    ] {
        assert!(svg.contains(line), "{line}: {svg}");
    }
    // A deadline after the end is shown, too, unless most of the picture would be empty.
    let later = |at| of_tape("a; b <- a", events).with_deadline(millis(at)).svg("later", &letter);
    let early = later(80);
    assert!(
        early.contains("<line class=\"deadline\" x1=\"100%\"") && early.contains("data-wall=\"80000000\""),
        "{early}"
    );
    assert!(!later(81).contains("class=\"deadline\""));
    let html = marked.html("marked", &letter);
    let table = html.split("<h2>").nth(1).unwrap();
    expect![[r#"
        Failures and fallbacks</h2>
        <table>
        <tr><th>#</th><th>node</th><th>started</th><th>ended</th><th>attempts</th><th>outcome</th></tr>
        <tr><td>1</td><td>a</td><td>0</td><td>20 ms</td><td>1</td><td>fell back because of its timeout</td></tr>
        </table>
    "#]]
    .assert_eq(table);
    assert!(html.contains("<details>"), "the legend is folded");
}

#[test]
fn nothing_is_fetched_from_elsewhere() {
    let timeline = of_tape("a", "0 run 1; 0 a start future; 3 a done; 3 end complete");
    let html = timeline.html("t", &letter).replace("http://www.w3.org/2000/svg", "");
    for sign in ["http:", "https:", "//", "src=", "href=", "@import"] {
        assert!(!html.contains(sign), "{sign}");
    }
}

#[test]
fn the_axis_has_round_marks_from_nanoseconds_to_days() {
    let marks = |nanos: u64| {
        let mut heard = tape("0 run 1; 0 a start future");
        let end = zero() + Duration::from_nanos(nanos);
        heard.push(ListenerItem::Event(Event {
            run: RunId(0),
            at: end,
            kind: EventKind::Finished(NodeId(0)),
        }));
        let svg = Timeline::new(RunId(0), &Script::parse("a").dag, &heard).unwrap().svg("", &letter);
        let axis = svg.split("class=\"axis\"").nth(1).unwrap().split("</g>").next().unwrap();
        let texts: Vec<&str> = axis
            .split("</text>")
            .filter_map(|part| part.rsplit('>').next())
            .filter(|text| !text.is_empty())
            .collect();
        format!(
            "{}, {} .. {} ({})",
            texts[0],
            texts[1.min(texts.len() - 1)],
            texts[texts.len() - 1],
            texts.len()
        )
    };
    let days = 3 * 86_400_000_000_000;
    let walls =
        [0, 7, 850, 1_500, 63_000_000, 999_999_999, 1_100_000_000, 100_000_000_000, 200_000_000_000, days];
    expect![[r#"
        0, 0 .. 0 (1)
        0, 1 ns .. 7 ns (8)
        0, 100 ns .. 800 ns (9)
        0, 0.2 µs .. 1.4 µs (8)
        0, 10 ms .. 60 ms (7)
        0, 100 ms .. 900 ms (10)
        0, 0.2 s .. 1.0 s (6)
        0, 10 s .. 100 s (11)
        0, 0m 20s .. 3m 20s (11)
        0, 12h 00m .. 72h 00m (7)"#]]
    .assert_eq(&walls.map(marks).join("\n"));
}

#[test]
fn a_picture_of_three_nodes() {
    let timeline = of_tape(
        "a; b; c <- a b",
        "0 run 3; 0 a start future; 2 b limit; 4 b start pool; 5 b running; 8 b done; 10 a done
         10 c start inline; 10 c fail error; 10 end failed",
    );
    let svg = timeline.svg("three", &letter);
    let plot: Vec<&str> = svg.split("class=\"view\"").nth(1).unwrap().lines().skip(2).collect();
    expect![[r#"
        <g><title>a (#0)
        0 to 10 ms: finished
        I/O: 10 ms</title><rect class="io b" x="0%" y="28" width="100%" height="22"/><rect class="edge" x="0%" y="28" width="100%" height="22"/><text class="t" x="0%" dx="5" y="43" data-zoom="0.0">a</text></g>
        <g><title>c (#2)
        10 ms to 10 ms: failed because of an error
        waiting for inputs: 10 ms</title><rect class="cpu n cut bad" x="100%" y="28" width="0.0001%" height="22"/></g>
        <line class="link" x1="100%" x2="100%" y1="75" y2="119"/>
        <g><title>a (#0)
        0 to 10 ms: finished
        I/O: 10 ms</title><rect class="io b" x="0%" y="68" width="100%" height="14"/><rect class="edge" x="0%" y="68" width="100%" height="14"/></g>
        <g><title>b (#1)
        4 ms to 8 ms: finished
        waiting for a free slot: 2 ms
        waiting for a limit: 2 ms
        in the queue of a pool: 1 ms
        CPU: 3 ms</title><rect class="slot" x="0%" y="95" width="20%" height="4"/><rect class="limit" x="20%" y="95" width="20%" height="4"/><rect class="queue b" x="40%" y="93" width="10%" height="8"/><rect class="cpu b" x="50%" y="90" width="30%" height="14"/></g>
        <g><title>c (#2)
        10 ms to 10 ms: failed because of an error
        waiting for inputs: 10 ms</title><rect class="cpu n cut bad" x="100%" y="112" width="0.0001%" height="14"/><rect class="edge" x="100%" y="112" width="0.0001%" height="14"/></g>
        <text class="bad" x="100%" dx="-8" y="124">×</text>
        </svg></svg>
        </svg>"#]].assert_eq(&plot.join("\n"));
}
