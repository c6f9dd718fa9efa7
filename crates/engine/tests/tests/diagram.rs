//! Pictures of graphs.

use anabranch_engine::diagram::{Diagram, Edge, Line, Look, Node, Sign, Table, Tone};

fn node(name: &str, level: usize, after: &[usize]) -> Node {
    let after = after.iter().map(|from| Edge::from_node(*from)).collect();
    Node { tone: Tone::Wait, lines: vec![Line::strong(name)], tooltip: name.to_owned(), level, after }
}

#[test]
fn every_class_has_a_rule_and_text_is_escaped() {
    let mut nodes = vec![node("<a> & \u{1}", 0, &[]), node("b", 1, &[0]), node("c", 2, &[0, 1])];
    let tones = [Tone::Compute, Tone::Gate, Tone::Timer, Tone::Quiet, Tone::Fault];
    for (tone, look) in
        tones.into_iter().zip([Look::Strong, Look::Muted, Look::Read, Look::Warn].into_iter().cycle())
    {
        let lines = vec![Line { look, text: "x".repeat(100) }];
        nodes.push(Node { tone, lines, ..node("", 1, &[0]) });
    }
    nodes[2].after[0] = Edge { from: 0, is_strong: true, is_dashed: true };
    let legend =
        vec![(Sign::Box(Tone::Wait), "waits"), (Sign::StrongLine, "strong"), (Sign::DashedLine, "dashed")];
    let diagram = Diagram { title: "</style>".to_owned(), summary: String::new(), legend, nodes };
    let svg = diagram.svg();
    let style = svg.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    for classes in svg.split(" class=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        for class in classes.split(' ') {
            assert!(style.contains(&format!(".{class}")), "{class} has no rule");
        }
    }
    assert!(svg.contains("&lt;a&gt; &amp; \u{fffd}") && svg.contains("&lt;/style&gt;"), "{svg}");
    assert!(!svg.contains(&"x".repeat(60)), "long lines are cut");
    assert_eq!((svg.matches("<g>").count(), svg.matches("<path").count()), (8, 10));
    let table = Table { head: vec!["name".to_owned()], rows: vec![vec!["<b>".to_owned()]] };
    let page = diagram.html(&table);
    assert!(page.contains(&svg.replace('\n', "")) && page.contains("<td>&lt;b&gt;</td>"), "{page}");
}

#[test]
fn an_empty_graph_has_a_head() {
    assert!(Diagram { title: "nothing".to_owned(), ..Diagram::default() }.svg().contains("nothing"));
}
